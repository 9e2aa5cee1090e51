'use strict'

// What is under way in one JavaScript environment: starts operations, and hands what is delivered of them (src/node/dispatcher.rs) to
// whoever waits for it.

const { errorOf, errors } = require('./core.js')
// Taken now: a test of the host may put false timers in place of the global ones.
const { setImmediate } = require('node:timers')
const { hrtime } = process

/** What a delivery is: the numbers of src/node/batch.rs. */
const KIND = { result: 0, error: 1, progress: 2, event: 3 }

/** As many ms as deliveries may follow each other before the event loop is made to turn. */
const STRETCH = 10

/**
 * From so many operations under way on, those that are begun in one turn go out together. With fewer, every server has
 * its next call sooner, and is done with it before the thread is (measured: with 16 in flight a third fewer calls a
 * second if they wait for each other, with 64 a seventh more).
 */
const MANY = 24

/** What holds the event loop, in places of an array that both sides write: see src/node/holds.rs. */
const HOLD = { count: 0, isHeld: 1, isSeenTo: 2, places: 3 }

/** After so many results the clock is looked at: a result only settles a promise. Whatever runs code of the host is looked at by itself. */
const RESULTS_BETWEEN = 32

/** Its reactions run when what runs now is through; `queueMicrotask` would make an async resource for each. */
const SETTLED = Promise.resolve()

/** In ms. `performance`, also the global one, would take 0.6 ms to load. */
function now() {
  const [seconds, nanoseconds] = hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

class Dispatcher {
  /** Never moved in memory, as an array of its own buffer may be. */
  #holds = new Int32Array(new ArrayBuffer(4 * HOLD.places))
  #lastToken = 0
  /** By token. None has token 0: a map that is emptied and filled by each of the calls that come one by one is made anew each time. */
  #operations = new Map([[0, undefined]])
  #listeners = new Map()
  /** Operations that were begun since microtasks ran. */
  #begun = 0
  /** When the event loop is known to have turned last. */
  #turned = 0
  #isResting = false
  /** What is left of a batch that took too long. */
  #remainder

  constructor(binding) {
    /** Its other end, which delivers. */
    this.native = new binding.DispatcherHandle((...batch) => this.#deliver(batch), this.#holds, isNode())
  }

  /** A number that no other operation and no listener has. */
  newToken() {
    return ++this.#lastToken
  }

  /**
   * Runs one native operation and holds the event loop until it has settled. `work.start` is given the token;
   * `work.cancel` is called on abort of `work.signal` and says whether the operation will not settle any more. All that
   * `work` refers to stays reachable meanwhile, its `owner` among it: a pending call keeps its connection.
   * `work.arrived` is given the text of the result in its place among the events; the promise settles only after all
   * events that came with it. The promise gives the text of the result (of a tool's result with long texts `[json,
   * index, text, …]`: lib/results.js knows) or `{ error }`; it rejects with `signal.reason` alone: at once, or with
   * `work.endsFirst` when what was begun has come to its end.
   */
  perform(work) {
    return new Promise((resolve, reject) => {
      if (work.signal?.aborted) {
        reject(work.signal.reason)
        return
      }
      const token = this.newToken()
      const operation = new Operation(work, resolve, reject)
      if (work.signal !== undefined) this.#listensForAbort(token, operation)
      this.#operations.set(token, operation)
      this.hold()
      this.#begins()
      try {
        work.start(token)
      } catch (error) {
        operation.unlisten?.()
        this.#finish(token)
        reject(asMcpError(error))
      }
    })
  }

  #listensForAbort(token, operation) {
    const { work, reject } = operation
    const { signal } = work
    const { onAbort } = require('./aborts.js')
    operation.unlisten = onAbort(signal, () => {
      operation.unlisten()
      operation.isAborted = true
      if (work.endsFirst) operation.resolve = () => reject(signal.reason)
      else reject(signal.reason)
      if (work.cancel(token)) this.#finish(token)
    })
  }

  /** The first call of a turn goes out at once, for what comes next may take long; those after it go out together as soon as what began them is through. */
  #begins() {
    if (this.#operations.size < MANY) return
    if (++this.#begun === 1) SETTLED.then(this.#endTurn)
    else if (this.#begun === 2) this.native.gather()
  }

  #endTurn = () => {
    if (this.#begun > 1) this.native.flush()
    this.#begun = 0
  }

  /** Answers a question that came as an event: with a value, which is judged there, or with nothing where a function failed. */
  answer(question, text) {
    this.native.answer(question, text)
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
    const holds = this.#holds
    holds[HOLD.count]++
    if (holds[HOLD.isHeld] !== 0) return
    holds[HOLD.isHeld] = 1
    this.native.hold()
  }

  release() {
    const holds = this.#holds
    holds[HOLD.count]--
    if (holds[HOLD.count] !== 0 || holds[HOLD.isSeenTo] !== 0) return
    holds[HOLD.isHeld] = 0
    this.native.release()
  }

  #finish(token) {
    if (this.#operations.delete(token)) this.release()
  }

  /** Takes what there is to deliver, or is given it: code and text of each delivery, or an array of them. Given, the event loop has turned since the last time. */
  #deliver(given) {
    if (given.length === 0) this.#deliverTaken(this.native.take())
    else if (given.length === 1) this.#deliverFrom(given[0], 0, now() + STRETCH)
    else if (given.length === 2) this.#deliverSafely(given, 0)
    else this.#deliverFrom(given, 0, now() + STRETCH)
  }

  #deliverTaken(batch) {
    // Empty while deliveries rest.
    if (batch.length === 0) return
    const begun = now()
    if (begun - this.#turned > STRETCH) this.#rest()
    this.#deliverFrom(batch, 0, begun + STRETCH)
  }

  #deliverFrom(batch, first, until) {
    let results = 0
    for (let index = first; index < batch.length; index += 2) {
      const isDue = batch[index] % 4 !== KIND.result || ++results % RESULTS_BETWEEN === 0
      if (isDue && now() > until) {
        this.#rest()
        this.#remainder = { batch, index }
        return
      }
      this.#deliverSafely(batch, index)
    }
  }

  #deliverSafely(batch, index) {
    const kind = batch[index] % 4
    try {
      this.#deliverOne(kind, (batch[index] - kind) / 4, batch[index + 1])
    } catch (error) {
      // Whatever went wrong is one delivery's; the others of the batch have their own callers waiting.
      throwLater(error)
    }
  }

  /** Lets the event loop turn before anything else is delivered: see `rest` in src/node/dispatcher.rs. */
  #rest() {
    if (this.#isResting) return
    this.#isResting = true
    this.native.rest()
    setImmediate(() => {
      this.#isResting = false
      this.#turned = now()
      const remainder = this.#remainder
      this.#remainder = undefined
      if (remainder) this.#deliverFrom(remainder.batch, remainder.index, this.#turned + STRETCH)
      if (!this.#isResting) this.native.resume()
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
      const { work } = operation
      if (work.onProgress && !operation.isAborted) safely(work.onProgress, text)
      return
    }
    this.#finish(token)
    try {
      operation.unlisten?.()
      if (kind !== KIND.error) operation.work.arrived?.(text)
    } catch (error) {
      // A signal that is none, or a list too large to be held: this promise has to settle too.
      operation.reject(asMcpError(error))
      return
    }
    operation.resolve(kind === KIND.error ? { error: text } : text)
  }
}

/** What is under way, and whoever waits for it. */
class Operation {
  unlisten = undefined
  isAborted = false

  constructor(work, resolve, reject) {
    this.work = work
    this.resolve = resolve
    this.reject = reject
  }
}

/** Bun and Deno, too, export some of what lies beneath Node-API; it works differently there, or not at all. */
function isNode() {
  return process.versions.bun === undefined && process.versions.deno === undefined
}

/** What the native side or we ourselves threw without meaning to: every failure has a code. */
function asMcpError(error) {
  const { McpError } = errors()
  if (McpError.is(error)) return error
  return new McpError(messageOf(error), { code: 'ERR_MCP_INTERNAL', cause: error })
}

function messageOf(error) {
  try {
    return `${error?.message ?? error}`
  } catch {
    return 'What was thrown cannot be read'
  }
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

module.exports = { Dispatcher, asMcpError, safely, textOf }
