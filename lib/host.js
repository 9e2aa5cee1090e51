'use strict'

// One per JavaScript environment (the main thread, each Worker): loads the native binary on first use and hands its deliveries to
// whoever waits for them.

const { existsSync } = require('node:fs')
const { join } = require('node:path')
// Taken now: a test of the host may put false timers in place of the global ones.
const { setImmediate } = require('node:timers')
const { hrtime } = process
const { describe } = require('./input.js')

/** What a delivery is: the numbers of src/node/dispatcher.rs. */
const KIND = { result: 0, error: 1, progress: 2, event: 3 }

/** As many ms as deliveries may follow each other before the event loop is made to turn. */
const STRETCH = 10

/** In ms. `performance`, also the global one, would take 0.6 ms to load. */
function now() {
  const [seconds, nanoseconds] = hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

let host

/** The environment's host; throws ERR_MCP_NATIVE_LOAD where there is no binary. */
function theHost() {
  host ??= new Host(loadBinding())
  return host
}

class Host {
  #binding
  #native
  #lastToken = 0
  #operations = new Map()
  #listeners = new Map()
  #holds = 0
  /** When the event loop is known to have turned last. */
  #turned = 0
  #isResting = false
  /** What is left of a batch that took too long. */
  #remainder

  constructor(binding) {
    this.#binding = binding
    this.#native = new binding.Host(() => this.#deliver(this.#native.take()), isNode())
  }

  /** Judges definitions and options; throws the first fault. `shape`: `one`, `group` or `normalize`. */
  plan(definitions, options, shape) {
    const plans = this.#native.plan(describe(definitions), describe(options), describe(process.env), shape)
    if (plans.error) throw errorOf(plans.error)
    return plans
  }

  /** Reads a project's configuration, or throws what is wrong with it. `listener` hears its events. */
  openProject(options, listener) {
    const token = ++this.#lastToken
    const native = this.#native.openProject(describe(options), describe(process.env), token)
    if (native.error) throw errorOf(native.error)
    this.listen(token, listener)
    return { native, token }
  }

  /** Answers a question that came as an event: with a value, which is judged there, or with nothing where a function failed. */
  answer(question, text) {
    this.#native.answer(question, text)
  }

  nearest(name, known) {
    return this.#binding.nearestName(name, known)
  }

  /**
   * Runs one native operation and holds the event loop until it has settled. `start` is given the token; `cancel` is called on abort and says whether
   * the operation will not settle any more. `owner` is kept reachable meanwhile: a pending call keeps its connection. `arrived` is given the text of
   * the result in its place among the events; the promise settles only after all events that came with it.
   * The promise gives the text of the result (of a tool's result with long texts `[json, index, text, …]`: lib/results.js knows) or `{ error }`; it rejects with `signal.reason` alone: at once, or with `endsFirst` when
   * what was begun has come to its end.
   */
  perform({ signal, start, cancel, onProgress, arrived, owner, endsFirst = false }) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason)
        return
      }
      const token = ++this.#lastToken
      const operation = { resolve, reject, onProgress, arrived, owner, unlisten: undefined }
      if (signal) {
        const { onAbort } = require('./aborts.js')
        operation.unlisten = onAbort(signal, () => {
          operation.unlisten()
          operation.onProgress = undefined
          if (endsFirst) operation.resolve = () => reject(signal.reason)
          else reject(signal.reason)
          if (cancel(token)) this.#finish(token)
        })
      }
      this.#operations.set(token, operation)
      this.hold()
      try {
        start(token)
      } catch (error) {
        operation.unlisten?.()
        this.#finish(token)
        reject(asMcpError(error))
      }
    })
  }

  /** Hears the events of the connection that was started under `token`. */
  listen(token, listener) {
    this.#listeners.set(token, listener)
  }

  unlisten(token) {
    this.#listeners.delete(token)
  }

  /** Keeps the event loop alive until `release`. */
  hold() {
    if (++this.#holds === 1) this.#native.hold()
  }

  release() {
    if (--this.#holds === 0) this.#native.release()
  }

  #finish(token) {
    if (this.#operations.delete(token)) this.release()
  }

  #deliver(batch) {
    // Empty while deliveries rest.
    if (batch.length === 0) return
    const begun = now()
    if (begun - this.#turned > STRETCH) this.#rest()
    this.#deliverFrom(batch, 0, begun + STRETCH)
  }

  #deliverFrom(batch, first, until) {
    for (let index = first; index < batch.length; index += 3) {
      if (now() > until) {
        this.#rest()
        this.#remainder = { batch, index }
        return
      }
      try {
        this.#deliverOne(batch[index], batch[index + 1], batch[index + 2])
      } catch (error) {
        // Whatever went wrong is one delivery's; the others of the batch have their own callers waiting.
        throwLater(error)
      }
    }
  }

  /** Lets the event loop turn before anything else is delivered: see `rest` in src/node/dispatcher.rs. */
  #rest() {
    if (this.#isResting) return
    this.#isResting = true
    this.#native.rest()
    setImmediate(() => {
      this.#isResting = false
      this.#turned = now()
      const remainder = this.#remainder
      this.#remainder = undefined
      if (remainder) this.#deliverFrom(remainder.batch, remainder.index, this.#turned + STRETCH)
      if (!this.#isResting) this.#native.resume()
    })
  }

  #deliverOne(kind, token, text) {
    if (kind === KIND.event) {
      const listener = this.#listeners.get(token)
      // Without a prototype: what a host has added to Object.prototype is no event.
      listener?.heard({ __proto__: null, ...JSON.parse(text) })
      return
    }
    const operation = this.#operations.get(token)
    if (operation === undefined) return
    if (kind === KIND.progress) {
      if (operation.onProgress) safely(operation.onProgress, text)
      return
    }
    this.#finish(token)
    try {
      operation.unlisten?.()
      if (kind !== KIND.error) operation.arrived?.(text)
    } catch (error) {
      // A signal that is none, or a list too large to be held: this promise has to settle too.
      operation.reject(asMcpError(error))
      return
    }
    operation.resolve(kind === KIND.error ? { error: text } : text)
  }
}

/** What the native side or we ourselves threw without meaning to: every failure has a code. */
function asMcpError(error) {
  const { McpError } = require('./errors.js')
  if (McpError.is(error)) return error
  return new McpError(`${error?.message ?? error}`, { code: 'ERR_MCP_INTERNAL', cause: error })
}

/** Calls a host's callback, if there is one; what it throws is its own uncaught exception and never keeps the rest of a batch from its callers. */
function safely(callback, ...given) {
  try {
    callback?.(...given)
  } catch (error) {
    throwLater(error)
  }
}

function throwLater(error) {
  process.nextTick(() => {
    throw error
  })
}

/** The text of a result, in one piece or several, or the error thrown: call it in the async function that the caller awaits, so that the stack names its line. */
function textOf(outcome, reasonOf = errorOf) {
  if (typeof outcome === 'string' || Array.isArray(outcome)) return outcome
  throw reasonOf(outcome.error)
}

/** The error of a description of the native side. What no start needs is loaded when it is. */
function errorOf(text) {
  return require('./errors.js').fromDescription(JSON.parse(text))
}

/** Bun and Deno, too, export some of what lies beneath Node-API; it works differently there, or not at all. */
function isNode() {
  return process.versions.bun === undefined && process.versions.deno === undefined
}

function loadBinding() {
  try {
    return bindingAtOnce() ?? require('../binding.js')
  } catch (cause) {
    const { McpError } = require('./errors.js')
    const platform = process.platform
    const arch = process.arch
    const libc = platform === 'linux' ? linuxLibc() : undefined
    const triple = [platform, arch, libc].filter(Boolean).join('-')
    const message = `No native binary of workflow-mcp could be loaded for ${triple}. Install with optional dependencies, or build it with \`npm run build\` in a checkout; in a packaged Electron app the .node file must be outside of the asar archive`
    throw new McpError(message, {
      code: 'ERR_MCP_NATIVE_LOAD',
      details: { platform, arch, ...(libc && { libc }), tried: triedPaths(cause) },
      cause,
    })
  }
}

/** Variables with which the generated loader can be told something. */
const LOADER_TOLD = ['NAPI_RS_NATIVE_LIBRARY_PATH', 'NAPI_RS_FORCE_WASI', 'NAPI_RS_ENFORCE_VERSION_CHECK']

/**
 * The binary of where it usually is, if it is there: reading the generated loader, which knows all other places and collects what failed, takes
 * 0.8 ms.
 */
function bindingAtOnce() {
  const { platform, arch, env } = process
  const abi = { linux: '-gnu', win32: '-msvc' }[platform] ?? ''
  if (LOADER_TOLD.some(name => env[name]) || (platform === 'linux' && hasMusl(arch))) return undefined
  const name = `${platform}-${arch}${abi}`
  const local = join(__dirname, '..', `workflow-mcp.${name}.node`)
  try {
    return require(existsSync(local) ? local : `workflow-mcp-${name}`)
  } catch {
    return undefined
  }
}

/** Where programs for musl can run, its own loader is in this place; on a system with both the generated loader finds out which one this is. */
function hasMusl(arch) {
  const machine = { x64: 'x86_64', arm64: 'aarch64' }[arch] ?? arch
  return existsSync(`/lib/ld-musl-${machine}.so.1`)
}

function linuxLibc() {
  const header = process.report?.getReport?.().header
  return header?.glibcVersionRuntime ? 'gnu' : 'musl'
}

/** What the loader tried: one message for each path and package, from its chain of causes. */
function triedPaths(error) {
  const tried = []
  // The first one is the generated loader's own, which blames npm whatever the reason.
  for (let cause = error.cause; cause instanceof Error && tried.length < 16; cause = cause.cause) {
    tried.push(cause.message.split('\n', 1)[0])
  }
  return tried
}

module.exports = { asMcpError, safely, textOf, theHost }
