// A streamable HTTP server that does what a test tells it, and records all that it is asked.
//
// By itself it is a correct small server, of the legacy era (sessions, `initialize`) or the modern one (2026-07-28). A test replaces
// single answers by name: `'tools/call slow'` for a tool, `'tools/call'` and every other method, `GET`, `DELETE`, `POST` for replies, and
// `'*'` for the rest. An answer is a function of an exchange (http-exchange.mjs); `inTurn` makes one of several.

import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Exchange, LEGACY, MODERN } from './http-exchange.mjs'

export { LEGACY, MODERN }

const TOOLS = [
  {
    name: 'echo',
    description: 'Says it again',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
  { name: 'slow', description: 'Takes its time', inputSchema: { type: 'object' } },
]

/** Starts one, ended with the test. See `HttpServer` for what it gives. */
export async function httpServer(t, answers = {}, options = {}) {
  const server = new HttpServer(answers, options)
  await server.start()
  t.after(() => server.stop())
  return server
}

class HttpServer {
  /** Everything asked, oldest first: `{ method, path, headers, body, message, at, ended }`; `message` is the body as JSON. */
  requests = []
  /** The ids of sessions that are open. */
  sessions = new Set()
  /** How many connections it has accepted. */
  accepted = 0
  #sockets = new Set()
  #server
  #port = 0

  /** `sessions: false` gives out no session ids; `tls` is `{ key, cert }`. */
  constructor(answers, { revision = LEGACY, sessions = true, tools = TOOLS, tls, path = '/mcp' } = {}) {
    Object.assign(this, {
      answers,
      revision,
      tools,
      tls,
      path,
      withSessions: sessions && revision !== MODERN,
    })
  }

  get url() {
    return `${this.origin}${this.path}`
  }

  get origin() {
    return `${this.tls ? 'https' : 'http'}://127.0.0.1:${this.#port}`
  }

  /** How many connections are open at this moment. */
  get open() {
    return this.#sockets.size
  }

  /** The first time on a free port, later on the same one again. */
  async start() {
    const take = (request, response) => this.#take(request, response)
    this.#server = this.tls ? createTlsServer(this.tls, take) : createServer(take)
    // A kept-alive connection stays until the client lets it go, so that `open` speaks of the client.
    this.#server.keepAliveTimeout = 0
    this.#server.on('connection', socket => {
      this.accepted++
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
    })
    this.#server.on('tlsClientError', () => {})
    await new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.#port, '127.0.0.1', resolve)
    })
    this.#port = this.#server.address().port
  }

  /** Cuts every connection; further ones are refused. */
  async stop() {
    if (!this.#server.listening) return
    const closed = new Promise(resolve => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  newSession() {
    const id = randomUUID()
    this.sessions.add(id)
    return id
  }

  /** As after a restart: no session is known any more. */
  forget() {
    this.sessions.clear()
  }

  /** What was asked under one name: a method of JSON-RPC, `'tools/call echo'`, or a method of HTTP. */
  seen(name) {
    return this.requests.filter(request => names(request).includes(name))
  }

  async #take(request, response) {
    const record = {
      method: request.method,
      path: request.url,
      headers: request.headers,
      at: performance.now(),
    }
    this.requests.push(record)
    record.ended = new Promise(resolve => response.on('close', resolve))
    record.body = await bodyOf(request)
    if (record.body === undefined) return
    record.message = parsed(record.body)
    const exchange = new Exchange(this, record, response)
    const named = names(record).map(name => this.answers[name])
    const answer = named.find(Boolean) ?? this.answers['*'] ?? usual
    await answer(exchange)
  }
}

/** From the most to the least special. A POST without a method of JSON-RPC is the client's reply to something. */
function names({ method, message }) {
  if (message?.method === undefined) return [method]
  const { name } = message.params ?? {}
  return name === undefined ? [message.method] : [`${message.method} ${name}`, message.method]
}

/** Undefined when the client left in the middle of it. */
async function bodyOf(request) {
  let body = ''
  try {
    for await (const chunk of request.setEncoding('utf8')) body += chunk
  } catch {
    return undefined
  }
  return body
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The first answer for the first request, and so on; the last one for all that follow, and `usual` stands for what is usual. */
export function inTurn(...answers) {
  let count = 0
  return exchange => answers[Math.min(count++, answers.length - 1)](exchange)
}

export const usual = exchange => exchange.usual()

/** Never an answer, but the connection stays. */
export const never = () => {}

/** The connection is cut instead of an answer. */
export const cut = exchange => exchange.cut()

/** Nothing but a status, with a body as it is given. */
export function status(code, body = '', headers = {}) {
  return exchange => exchange.respond(code, body, headers)
}

export const html = (code, text = '<!doctype html><title>Oops</title>') =>
  status(code, text, { 'content-type': 'text/html' })

/** What a proxy's or server's own text is answered with. */
export const json = (code, value, headers = {}) =>
  status(code, typeof value === 'string' ? value : JSON.stringify(value), {
    'content-type': 'application/json',
    ...headers,
  })
