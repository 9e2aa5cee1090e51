'use strict'

const { McpClient } = require('./client.js')
const { McpError, fromDescription, invalidArgument } = require('./errors.js')
const { describe, errorOf, readable, theCore } = require('./core.js')
const { answersToServer } = require('./input-required.js')
const { safely } = require('./dispatcher.js')
const { deepFreeze } = require('./results.js')

/** So many rejections of headers functions are kept for the errors that name them: more are never on their way at a time. */
const REJECTIONS = 16

function openMcpProject(options) {
  const core = theCore()
  const { dispatcher } = core
  const token = dispatcher.newToken()
  const native = core.openProject(options, token)
  // What it refused by its place is not read here; a proxy that hides its properties from it may throw all the same.
  const listener = readable('options', () => new ProjectListener(dispatcher, token, options))
  dispatcher.listen(token, listener)
  return new McpProject(dispatcher, native, listener)
}

/** A project that is open, or was. */
class McpProject {
  #dispatcher
  #native
  #listener
  #clients = new Map()
  /** Ends what waits for the host itself; the native project ends the rest. */
  #closing = new AbortController()

  /**
   * @param {object} native handle of the project; when it is collected, its sessions end
   * @param {ProjectListener} listener hears its events; it knows nothing of this object, so that this can be collected
   */
  constructor(dispatcher, native, listener) {
    this.#dispatcher = dispatcher
    this.#native = native
    this.#listener = listener
    this.serverNames = Object.freeze(native.serverNames)
    this.file = native.file ?? undefined
    // Bound, because `const { mcp } = project` is how a script is given its project.
    for (const name of ['mcp', 'close']) {
      Object.defineProperty(this, name, { __proto__: null, value: this[name].bind(this) })
    }
    Object.freeze(this)
  }

  mcp(serverName) {
    if (typeof serverName !== 'string' || serverName === '')
      throw invalidArgument('serverName', 'must be the name of a server, a string')
    let client = this.#clients.get(serverName)
    if (client === undefined) {
      const refusal = this.#native.refusal(serverName)
      if (refusal !== null) throw errorOf(refusal)
      client = new McpClient(this.#dispatcher, this, serverName, {
        open: () => this.#native.server(serverName),
        errorOf: text => this.#listener.errorOf(text),
        closing: this.#closing.signal,
        onInputRequired: this.#listener.onInputRequired,
      })
      this.#clients.set(serverName, client)
    }
    return client
  }

  async close() {
    this.#closing.abort()
    await this.#dispatcher.perform({
      __proto__: null,
      start: token => this.#native.close(token),
      cancel: () => false,
      owner: this,
    })
  }
}

if (Symbol.asyncDispose) {
  Object.defineProperty(McpProject.prototype, Symbol.asyncDispose, {
    __proto__: null,
    value: function dispose() {
      return this.close()
    },
  })
}

/**
 * What a project's servers tell and ask, on behalf of a project object that may be collected. The dispatcher holds it, so
 * nothing here may reach the project or its native handle.
 */
class ProjectListener {
  #dispatcher
  #onWarning
  #headers
  /** What headers functions rejected with, by the number of the question. */
  #rejections = new Map()

  constructor(dispatcher, token, options) {
    this.#dispatcher = dispatcher
    this.token = token
    // Own properties, as they are judged.
    const { config, onInputRequired, onWarning } = { ...options }
    this.#onWarning = onWarning
    this.#headers = headersFunctions(config)
    this.onInputRequired = onInputRequired
  }

  /** One event: src/node/project.rs, server.rs and headers.rs say which there are. */
  heard(event) {
    if (event.warning !== undefined) {
      safely(this.#onWarning, deepFreeze(event.warning), event.server)
    } else if (event.headersOf !== undefined) {
      this.#giveHeaders(event.headersOf, event.question)
    } else if (event.inputOf !== undefined) {
      this.#giveInput(event.inputOf, event.question, event.request)
    } else if (event.gone !== undefined) {
      this.#dispatcher.unlisten(this.token)
    }
  }

  /** The McpError of a native description; one that stands for a rejected headers function has that rejection as its cause. */
  errorOf(text) {
    const description = JSON.parse(text)
    const { question, ...details } = description.details
    if (question === undefined) return fromDescription(description)
    const { code, message, serverId } = description
    return new McpError(
      message,
      { code, serverId, details, cause: this.#rejections.get(question) },
      this.errorOf,
    )
  }

  async #giveHeaders(serverName, question) {
    let answer
    try {
      answer = describe(await this.#headers.get(serverName)())
    } catch (reason) {
      this.#rejections.set(question, reason)
      if (this.#rejections.size > REJECTIONS) this.#rejections.delete(this.#rejections.keys().next().value)
    }
    this.#dispatcher.answer(question, answer)
  }

  async #giveInput(serverName, question, request) {
    let answer
    try {
      answer = await answersToServer(this.onInputRequired, serverName, JSON.parse(request))
    } catch {
      // The server is told that there is no answer, and not why: that is the host's own affair.
    }
    this.#dispatcher.answer(question, answer)
  }
}

/** The functions that give headers, by the names of their servers. */
function headersFunctions(config) {
  const functions = new Map()
  for (const servers of [config?.servers, config?.mcpServers]) {
    if (typeof servers !== 'object' || servers === null) continue
    for (const name of Object.keys(servers)) {
      const integration = servers[name]
      const headers = integration?.headers
      if (typeof headers === 'function') functions.set(name, () => headers.call(integration))
    }
  }
  return functions
}

module.exports = { openMcpProject }
