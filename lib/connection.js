'use strict'

const { callOptions, isAbortSignal, jsonObject, jsonPieces, refuseUnknown } = require('./call-options.js')
const { errors, readable, theCore } = require('./core.js')
const { safely, textOf } = require('./dispatcher.js')
const { deepFreeze, progress, toolResult } = require('./results.js')

async function connectMcpServer(definition, options) {
  const core = theCore()
  const plans = core.plan(definition, options, 'one')
  const { signal, callbacks } = asked(options)
  const [{ id }] = JSON.parse(plans.normalized)
  return connect(core.dispatcher, plans, 0, id, signal, callbacks)
}

/** Starts one server of judged definitions. */
async function connect(dispatcher, plans, index, id, signal, callbacks) {
  const state = new ConnectionState(dispatcher, id, callbacks)
  let native
  try {
    const outcome = await dispatcher.perform({
      __proto__: null,
      signal,
      start: token => {
        state.listen(token)
        native = plans.connect(dispatcher.native, index, token)
      },
      cancel: () => {
        native.close()
        return false
      },
      arrived: text => state.connected(text),
      endsFirst: true,
    })
    textOf(outcome)
  } catch (error) {
    state.unlisten()
    // It has ended already, unless what it said of itself could not be taken in.
    native?.close()
    throw error
  }
  return new McpServerConnection(dispatcher, native, state)
}

/** What the JavaScript side needs of options that were judged. */
function asked(options) {
  if (options === undefined || options === null) return { callbacks: {} }
  // Own properties, as they were judged: what an object inherits was not.
  const own = readable('options', () => ({ ...options }))
  const { signal, onStderr, onLog, onToolsChanged, onWarning, onClose } = own
  if (signal !== undefined && !isAbortSignal(signal))
    throw errors().invalidArgument('options.signal', 'must be an AbortSignal')
  return { signal, callbacks: { onStderr, onLog, onToolsChanged, onWarning, onClose } }
}

/** A server that is connected, or was. */
class McpServerConnection {
  #dispatcher
  #native
  #callTool
  #state

  /**
   * @param {object} native handle of the session; when it is collected, the server ends
   * @param {ConnectionState} state what the session's events change; it knows nothing of this object, so that this can be collected
   */
  constructor(dispatcher, native, state) {
    this.#dispatcher = dispatcher
    this.#native = native
    this.#callTool = native.caller()
    this.#state = state
    // Bound, because `const { callTool, close } = connection` is how people take a connection apart.
    for (const name of ['callTool', 'listTools', 'request', 'close']) {
      Object.defineProperty(this, name, { __proto__: null, value: this[name].bind(this) })
    }
  }

  get id() {
    return this.#state.id
  }

  get tools() {
    return this.#state.tools
  }

  get pid() {
    return this.#state.welcome.pid
  }

  get protocolVersion() {
    return this.#state.welcome.protocolVersion
  }

  get serverInfo() {
    return this.#state.welcome.serverInfo
  }

  get serverCapabilities() {
    return this.#state.welcome.serverCapabilities
  }

  get instructions() {
    return this.#state.welcome.instructions
  }

  get closed() {
    return this.#state.closed
  }

  async callTool(nameOrParams, argsOrSchema, given) {
    const call = toolCall(nameOrParams, argsOrSchema, given)
    const args = call.args === undefined ? '{}' : jsonPieces('arguments', call.args)
    const outcome = await this.#dispatcher.perform(
      new Call(this, this.#native, call.options, call.name, args, this.#callTool),
    )
    return toolResult(textOf(outcome), this.id)
  }

  async request(method, params, given) {
    if (typeof method !== 'string' || method === '')
      throw errors().invalidArgument('method', 'must be a non-empty string')
    const text = params === undefined ? undefined : jsonObject('params', params)
    const outcome = await this.#dispatcher.perform(
      new Request(this, this.#native, callOptions(given), method, text),
    )
    return JSON.parse(textOf(outcome))
  }

  async listTools(_params, given) {
    const { signal, native } = callOptions(given)
    const outcome = await this.#dispatcher.perform({
      __proto__: null,
      signal,
      start: token => this.#native.listTools(token, native),
      cancel: token => {
        this.#native.cancelListing(token)
        return false
      },
      arrived: text => this.#state.setTools(text),
      owner: this,
    })
    textOf(outcome)
    return { tools: [...this.tools] }
  }

  close() {
    this.#native.close()
    return this.#state.untilClosed()
  }

  ref() {
    this.#state.ref()
    return this
  }

  unref() {
    this.#state.unref()
    return this
  }

  stderr() {
    return this.#native.stderr()
  }

  diagnostics() {
    return JSON.parse(this.#native.diagnostics())
  }
}

// What console.log shows: the private parts would show nothing.
Object.defineProperty(McpServerConnection.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  __proto__: null,
  value(_depth, options, inspect) {
    const { id, pid, protocolVersion, serverInfo, tools } = this
    return `McpServerConnection ${inspect({ id, pid, protocolVersion, serverInfo, tools: tools.length }, options)}`
  },
})

// Node has the symbol from 18.18 and 20.4 on.
if (Symbol.asyncDispose) {
  Object.defineProperty(McpServerConnection.prototype, Symbol.asyncDispose, {
    __proto__: null,
    value: async function dispose() {
      await this.close()
    },
  })
}

/**
 * What a session's events change, on behalf of a connection object that may be collected. The dispatcher holds it, so nothing here, no closure
 * either, may reach the connection or its native handle.
 */
class ConnectionState {
  #dispatcher
  #callbacks
  #resolveClosed
  #token
  #isReferenced = false
  /** What came of the tools before the connection was there. */
  #pages = []

  constructor(dispatcher, id, callbacks) {
    this.#dispatcher = dispatcher
    this.#callbacks = callbacks
    this.id = id
    this.tools = Object.freeze([])
    this.welcome = {}
    this.isClosed = false
    this.closed = new Promise(resolve => {
      this.#resolveClosed = resolve
    })
  }

  /** Hears the events that come under `token`, until the last. */
  listen(token) {
    this.#token = token
    this.#dispatcher.listen(token, this)
  }

  unlisten() {
    this.#dispatcher.unlisten(this.#token)
  }

  /** Takes what the server said of itself when it was connected. */
  connected(text) {
    const { tools, ...welcome } = JSON.parse(text)
    const pages = [...this.#pages, deepFreeze(tools)]
    this.#pages = undefined
    this.tools = Object.freeze(pages.flat())
    this.welcome = deepFreeze(welcome)
  }

  setTools(text) {
    this.tools = deepFreeze(JSON.parse(text))
  }

  /** `closed`, holding the event loop until then. */
  untilClosed() {
    if (!this.isClosed) {
      this.#dispatcher.hold()
      this.closed.then(() => this.#dispatcher.release())
    }
    return this.closed
  }

  /** Holds the event loop for as long as the connection is open. */
  ref() {
    if (this.#isReferenced || this.isClosed) return
    this.#isReferenced = true
    this.#dispatcher.hold()
  }

  unref() {
    if (!this.#isReferenced) return
    this.#isReferenced = false
    this.#dispatcher.release()
  }

  /** One event of the session: src/node/connection.rs has the list. */
  heard(event) {
    const { onStderr, onLog, onToolsChanged, onWarning, onClose } = this.#callbacks
    if (event.stderr !== undefined) {
      safely(onStderr, event.stderr, this.id)
    } else if (event.log !== undefined) {
      safely(onLog, event.log, this.id)
    } else if (event.warning !== undefined) {
      safely(onWarning, deepFreeze(event.warning), this.id)
    } else if (event.page !== undefined) {
      this.#pages.push(deepFreeze(event.page))
    } else if (event.tools !== undefined) {
      this.setTools(event.tools)
      safely(onToolsChanged, this.tools, this.id)
    } else if (event.closed !== undefined) {
      this.isClosed = true
      this.unlisten()
      this.unref()
      const info = deepFreeze(event.closed)
      this.#resolveClosed(info)
      safely(onClose, info, this.id)
    }
  }
}

/** One request, as `Dispatcher.perform` wants it. A class of its own: with a literal and closures each call cost a tenth of a microsecond more. */
class Request {
  arrived = undefined
  endsFirst = false
  id = -1

  constructor(owner, native, { signal, onProgress, native: options }, name, text) {
    this.owner = owner
    this.native = native
    this.signal = signal
    this.onProgress = onProgress && (text => onProgress(progress(text)))
    this.options = options
    this.name = name
    this.text = text
  }

  start(token) {
    this.id = this.native.request(token, this.name, this.text, this.options)
  }

  cancel() {
    return this.native.cancel(this.id)
  }
}

/** A call of a tool, with its arguments in one piece or several. */
class Call extends Request {
  constructor(owner, native, options, name, text, callTool) {
    super(owner, native, options, name, text)
    this.callTool = callTool
  }

  start(token) {
    const { native, callTool, name, text, options } = this
    if (typeof text !== 'string') this.id = native.callToolInPieces(token, name, text, options)
    else if (options === undefined) this.id = callTool(token, name, text)
    else this.id = callTool(token, name, text, options)
  }
}

/** The three shapes of `callTool`, made one. */
function toolCall(nameOrParams, argsOrSchema, given) {
  if (typeof nameOrParams === 'string') {
    return { name: nameOrParams, args: argsOrSchema, options: callOptions(given) }
  }
  return readable('params', () => toolCallOf(nameOrParams, argsOrSchema, given))
}

function toolCallOf(nameOrParams, argsOrSchema, given) {
  if (typeof nameOrParams !== 'object' || nameOrParams === null || typeof nameOrParams.name !== 'string') {
    throw errors().invalidArgument('name', 'must be the name of a tool, or an object { name, arguments }')
  }
  refuseUnknown('params', nameOrParams, ['name', 'arguments', '_meta'])
  const { name, arguments: args, _meta } = nameOrParams
  // Version 1 of the official client takes (params, resultSchema, options), version 2 (params, options): a signal that stands second
  // must not get lost.
  const options = given === undefined && !isSchema(argsOrSchema) ? (argsOrSchema ?? undefined) : given
  return { name, args, options: callOptions(_meta === undefined ? options : withMeta(options, _meta)) }
}

/** Whether it is the schema of some validator, which nobody asks here: results are not checked. */
function isSchema(value) {
  return (
    typeof value?.parse === 'function' ||
    typeof value?.safeParse === 'function' ||
    Boolean(value?.['~standard'])
  )
}

/** Call options with the `_meta` of the params worked in; what they are not stays as it is, for `callOptions` to refuse. */
function withMeta(given, meta) {
  if (isAbortSignal(given)) return { signal: given, meta }
  if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given)))
    return given
  return { ...given, meta: { ...meta, ...given?.meta } }
}

module.exports = { asked, connect, connectMcpServer }
