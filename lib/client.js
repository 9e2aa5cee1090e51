'use strict'

const { jsonObject, scriptOptions, syncOptions } = require('./call-options.js')
const { invalidArgument } = require('./errors.js')
const { asMcpError, textOf } = require('./dispatcher.js')
const { afterInput, afterPauses } = require('./input-required.js')
const { deepFreeze, finished, progress, resultObject } = require('./results.js')

/**
 * How long one native wait of a synchronous call takes at most, in ms. In between the loop is JavaScript, which `worker.terminate()` and
 * `process.exit()` can end; a result ends a wait at once.
 */
const SLICE = 50

/** One server of a project, as a script calls it. */
class McpClient {
  #dispatcher
  #project
  #link
  #native

  /**
   * @param {object} project kept reachable for as long as this is
   * @param {{ open: () => object, errorOf: (text: string) => McpError, closing: AbortSignal, onInputRequired?: Function }} link
   */
  constructor(dispatcher, project, name, link) {
    this.#dispatcher = dispatcher
    this.#project = project
    this.#link = link
    this.name = name
    // Bound, because `const { call } = mcp('exa')` is how people take a client apart.
    for (const method of ['call', 'callSync', 'listTools', 'listToolsSync']) {
      Object.defineProperty(this, method, { __proto__: null, value: this[method].bind(this) })
    }
    Object.freeze(this)
  }

  async call(tool, args, given) {
    const params = toolParams(tool, args)
    const { signal, onProgress, native } = scriptOptions(given)
    const request = text =>
      this.#perform(signal, onProgress, token => this.#server.request(token, 'tools/call', text, native))
    const { onInputRequired, closing } = this.#link
    const result = resultObject(await request(params), this.name)
    if (onInputRequired === undefined || result.resultType !== 'input_required')
      return finished(result, this.name)
    const { name: serverName } = this
    return await afterInput(result, { onInputRequired, serverName, params, request, signal, closing })
  }

  callSync(tool, args, given) {
    const params = toolParams(tool, args)
    const { native } = syncOptions(given, ['timeout', 'meta'])
    const request = text => this.#settled(() => this.#server.requestSync('tools/call', text, native))
    const result = resultObject(request(params), this.name)
    if (this.#link.onInputRequired === undefined || result.resultType !== 'input_required')
      return finished(result, this.name)
    return afterPauses(result, { serverName: this.name, params, request })
  }

  async listTools(given) {
    const { signal, native } = scriptOptions(given)
    const text = await this.#perform(signal, undefined, token => this.#server.listTools(token, native))
    return tools(text)
  }

  listToolsSync(given) {
    const { native } = syncOptions(given, ['timeout'])
    return tools(this.#settled(() => this.#server.listToolsSync(native)))
  }

  /** The native server, made when it is needed first. */
  get #server() {
    try {
      this.#native ??= this.#link.open()
    } catch (error) {
      throw asMcpError(error)
    }
    return this.#native
  }

  async #perform(signal, onProgress, start) {
    const outcome = await this.#dispatcher.perform({
      __proto__: null,
      signal,
      onProgress: onProgress && (text => onProgress(progress(text))),
      start,
      cancel: token => this.#server.cancel(token),
      owner: [this, this.#project],
    })
    return textOf(outcome, this.#link.errorOf)
  }

  /** Blocks this thread until the outcome of what `start` begins is there. */
  #settled(start) {
    let settled = null
    try {
      const waiting = start()
      while (settled === null) settled = waiting.wait(SLICE)
    } catch (error) {
      throw asMcpError(error)
    }
    if (settled.error === undefined) return settled.result
    throw this.#link.errorOf(settled.error)
  }
}

/** The text of the params of `tools/call`. The name is sent as it is: the server judges it. */
function toolParams(tool, args) {
  if (typeof tool !== 'string' || tool === '')
    throw invalidArgument('tool', 'must be the name of a tool, a string')
  const text = args === undefined ? '{}' : jsonObject('arguments', args)
  return `{"name":${JSON.stringify(tool)},"arguments":${text}}`
}

function tools(text) {
  return [...deepFreeze(JSON.parse(text))]
}

module.exports = { McpClient }
