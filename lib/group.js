'use strict'

const { asked, connect } = require('./connection.js')
const { theCore } = require('./core.js')

async function connectMcpServers(definitions, options) {
  const core = theCore()
  const plans = core.plan(definitions, options, 'group')
  const ids = JSON.parse(plans.normalized).map(({ id }) => id)
  const { signal, callbacks } = asked(options)
  const abandon = new AbortController()
  if (signal?.aborted) throw signal.reason
  const unlisten = signal && require('./aborts.js').onAbort(signal, () => abandon.abort(signal.reason))
  const starts = ids.map((id, index) => connect(core.dispatcher, plans, index, id, abandon.signal, callbacks))
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
    __proto__: null,
    value: function dispose() {
      return this.close()
    },
  })
}

module.exports = { connectMcpServers }
