// One request to the HTTP server of the tests, and the ways to answer it.

export const LEGACY = '2025-11-25'
export const MODERN = '2026-07-28'

const JSON_TYPE = { 'content-type': 'application/json' }

export class Exchange {
  constructor(server, request, response) {
    Object.assign(this, { server, request, response })
  }

  get message() {
    return this.request.message
  }

  /** The arguments of the tool that is called. */
  get args() {
    return this.message.params.arguments
  }

  respond(status, body, headers = {}) {
    this.response.writeHead(status, headers).end(body)
  }

  /** The result, as one JSON body. */
  result(result, headers = {}) {
    this.respond(200, JSON.stringify(this.answer(result)), { ...JSON_TYPE, ...headers })
  }

  /** The message that carries a result for this request. */
  answer(result) {
    const stamp = this.server.revision === MODERN ? { resultType: 'complete' } : {}
    return { jsonrpc: '2.0', id: this.message.id, result: { ...stamp, ...result } }
  }

  error(status, code, message, data) {
    const id = this.message?.id ?? null
    this.respond(status, JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, data } }), JSON_TYPE)
  }

  text(text) {
    this.result({ content: [{ type: 'text', text }] })
  }

  /** Opens an event stream, which stays open until `end` or `cut`. */
  stream(headers = {}) {
    this.response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      ...headers,
    })
    this.response.flushHeaders()
    const { response } = this
    return {
      /** An event; without a message it only carries an id or a time to wait, as for priming. */
      send(message, { id, retry } = {}) {
        const data = message === undefined ? '' : JSON.stringify(message)
        const lines = [id && `id: ${id}`, retry !== undefined && `retry: ${retry}`, `data: ${data}`]
        response.write(`${lines.filter(Boolean).join('\n')}\n\n`)
      },
      end: () => response.end(),
      cut: () => this.cut(),
      ended: this.request.ended,
    }
  }

  cut() {
    this.response.socket.destroy()
  }

  /** What a correct server would do. */
  usual() {
    return this.server.revision === MODERN ? this.#modern() : this.#legacy()
  }

  #legacy() {
    const { server, request } = this
    const session = request.headers['mcp-session-id']
    if (this.message?.method === 'initialize') {
      const headers = server.withSessions ? { 'mcp-session-id': server.newSession() } : {}
      const { protocolVersion } = this.message.params
      return this.result(this.#introduction(older(server.revision, protocolVersion)), headers)
    }
    if (server.withSessions && session === undefined) return this.error(400, -32000, 'No session id')
    if (server.withSessions && !server.sessions.has(session))
      return this.error(404, -32001, 'Session not found')
    if (request.method === 'DELETE') {
      server.sessions.delete(session)
      return this.respond(200)
    }
    if (request.method !== 'POST') return this.respond(405, '', { allow: 'POST, DELETE' })
    this.#message()
  }

  #modern() {
    const version = this.request.headers['mcp-protocol-version']
    const meta = this.message?.params?._meta
    if (this.request.method !== 'POST') return this.respond(405, '', { allow: 'POST' })
    if (version !== MODERN)
      return this.error(400, -32022, 'Unsupported protocol version', { supported: [MODERN] })
    if (meta?.['io.modelcontextprotocol/protocolVersion'] !== version)
      return this.error(400, -32020, 'The header and _meta disagree')
    if (this.message.method === 'server/discover') {
      const { protocolVersion, ...rest } = this.#introduction(MODERN)
      return this.result({ ...rest, ...UNCACHED, supportedVersions: [protocolVersion] })
    }
    this.#message()
  }

  #introduction(protocolVersion) {
    return {
      protocolVersion,
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'scripted', version: '1.0.0' },
    }
  }

  #list() {
    const { tools, revision } = this.server
    this.result(revision === MODERN ? { tools, ...UNCACHED } : { tools })
  }

  #message() {
    const { id, method, params } = this.message
    // Notifications, and replies to what the server asked.
    if (id === undefined || method === undefined) return this.respond(202)
    if (method === 'ping') return this.result({})
    if (method === 'tools/list') return this.#list()
    if (method !== 'tools/call') return this.error(200, -32601, `No method ${method}`)
    this.text(params.name === 'echo' ? String(params.arguments.text) : `${params.name} done`)
  }
}

/** What results that might be kept have to say in 2026-07-28. */
const UNCACHED = { ttlMs: 0, cacheScope: 'private' }

/** Revisions are dates, so that the older one comes first. */
function older(one, other = LEGACY) {
  return [one, other].sort()[0]
}
