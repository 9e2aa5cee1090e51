'use strict'

const { deepFreeze } = require('./freeze.js')
const { textOf, theHost } = require('./host.js')

async function normalizeMcpServers(servers, options) {
  return deepFreeze(JSON.parse(theHost().plan(servers, options, 'normalize').normalized))
}

async function connectMcpServer(definition, options) {
  const host = theHost()
  const plans = host.plan(definition, options, 'one')
  const { signal, callbacks } = asked(options)
  const [{ id }] = JSON.parse(plans.normalized)
  return connect(host, plans, 0, id, signal, callbacks)
}

async function connectMcpServers(definitions, options) {
  const host = theHost()
  const plans = host.plan(definitions, options, 'group')
  const ids = JSON.parse(plans.normalized).map(({ id }) => id)
  const { signal, callbacks } = asked(options)
  const abandon = new AbortController()
  if (signal?.aborted) throw signal.reason
  const unlisten = signal && require('./aborts.js').onAbort(signal, () => abandon.abort(signal.reason))
  const starts = ids.map((id, index) => connect(host, plans, index, id, abandon.signal, callbacks))
  // All or nothing: the first failure ends the others' starts, and they are not waited for before they are told.
  if (!plans.partial) for (const start of starts) start.catch(reason => abandon.abort(reason))
  try {
    const outcomes = await Promise.allSettled(starts)
    if (abandon.signal.aborted) {
      const connected = outcomes.filter(({ status }) => status === 'fulfilled')
      await Promise.all(connected.map(({ value }) => value.close()))
      throw abandon.signal.reason
    }
    return new McpServerGroup(ids, outcomes)
  } finally {
    unlisten?.()
  }
}

/** Starts one server of judged definitions. */
async function connect(host, plans, index, id, signal, callbacks) {
  // Loaded with the first connection: the package takes part in the start of many programs, and in few of them at once.
  const { ConnectionState, McpServerConnection } = require('./connection.js')
  const state = new ConnectionState(host, id, callbacks)
  let native
  try {
    const outcome = await host.perform({
      __proto__: null,
      signal,
      start: token => {
        state.listen(token)
        native = plans.connect(index, token)
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
  return new McpServerConnection(host, native, state)
}

/** What the JavaScript side needs of options that were judged. */
function asked(options) {
  if (options === undefined || options === null) return { callbacks: {} }
  // Own properties, as they were judged: what an object inherits was not.
  const { signal, onStderr, onLog, onToolsChanged, onWarning, onClose } = { ...options }
  // Loaded only where there is one.
  if (signal !== undefined && !require('./aborts.js').isAbortSignal(signal))
    throw require('./errors.js').invalidArgument('options.signal', 'must be an AbortSignal')
  return { signal, callbacks: { onStderr, onLog, onToolsChanged, onWarning, onClose } }
}

/** Servers that were started together. */
class McpServerGroup {
  #byId

  constructor(ids, outcomes) {
    const connected = outcomes.filter(({ status }) => status === 'fulfilled')
    this.connections = Object.freeze(connected.map(({ value }) => value))
    const failed = outcomes.flatMap(({ status, reason }, index) =>
      status === 'rejected' ? [Object.freeze({ id: ids[index], error: reason })] : [],
    )
    this.failures = Object.freeze(failed)
    this.#byId = new Map(this.connections.map(connection => [connection.id, connection]))
    Object.freeze(this)
  }

  get(id) {
    return this.#byId.get(id)
  }

  async close() {
    await Promise.all(this.connections.map(connection => connection.close()))
  }
}

if (Symbol.asyncDispose) {
  Object.defineProperty(McpServerGroup.prototype, Symbol.asyncDispose, {
    value: function dispose() {
      return this.close()
    },
  })
}

module.exports = { connectMcpServer, connectMcpServers, normalizeMcpServers }
