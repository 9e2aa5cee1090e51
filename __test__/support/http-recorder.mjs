// A reverse proxy in front of a real server: to see what a client sends and what it is answered, and to count what is open.

import { request as ask, createServer } from 'node:http'

/**
 * `requests` are what came in, oldest first: `{ method, path, headers, body, message, status, answered, events, ended
 * }`; `status` and `answered` (the answer's headers) come with the answer, and `events` is what its body says so far.
 * `url` is to be used instead of the server's.
 */
export async function recorder(t, target) {
  const { origin, pathname } = new URL(target)
  const requests = []
  const sockets = new Set()
  const server = createServer((request, response) => pass(request, response, origin, requests))
  server.keepAliveTimeout = 0
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${server.address().port}${pathname}`,
    requests,
    /** How many connections the client has open. */
    get open() {
      return sockets.size
    },
    /** The requests of one method, of JSON-RPC or of HTTP. */
    seen: name => requests.filter(({ method, message }) => (message?.method ?? method) === name),
  }
}

function pass(request, response, origin, requests) {
  const { method, url: path } = request
  const { host: _, ...headers } = request.headers
  const record = { method, path, headers: request.headers, body: '', events: '' }
  requests.push(record)
  record.ended = new Promise(resolve => response.on('close', resolve))
  const onward = ask(`${origin}${path}`, { method, headers, agent: false }, answer => {
    record.status = answer.statusCode
    record.answered = answer.headers
    answer.on('data', chunk => {
      record.events += chunk
    })
    answer.on('error', () => response.destroy())
    response.writeHead(answer.statusCode, answer.headers).flushHeaders()
    answer.pipe(response)
  })
  onward.on('error', () => response.destroy())
  // Whoever lets go of an answer wants the server to see that.
  response.on('close', () => onward.destroy())
  request.on('data', chunk => {
    record.body += chunk
  })
  request.on('end', () => {
    record.message = record.body === '' ? undefined : JSON.parse(record.body)
  })
  request.on('error', () => onward.destroy())
  request.pipe(onward)
}
