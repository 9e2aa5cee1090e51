'use strict'

const { errors, readable, theCore } = require('./core.js')

const KNOWN = [
  'signal',
  'timeout',
  'resetTimeoutOnProgress',
  'maxTotalTimeout',
  'onProgress',
  'onprogress',
  'meta',
]

/** Shorter strings are not worth a second look. */
const LONG_STRING = 64 * 1024

/** Longest time a timer of the runtime takes: 2^31 - 1 ms, about 24 days. */
const LONGEST = 2 ** 31 - 1

const NONE = Object.freeze({ signal: undefined, onProgress: undefined, native: undefined })

/**
 * What a call was asked for, checked.
 *
 * @param {unknown} given an AbortSignal, McpCallOptions or nothing
 * @param {string} allowed what it may be, for whoever gave something else
 * @returns {{ signal?: AbortSignal, onProgress?: (progress: object) => void, native?: object }}
 */
function callOptions(given, allowed = 'an AbortSignal or an object of call options') {
  return given === undefined ? NONE : readable('options', () => checkedOptions(given, allowed))
}

function checkedOptions(given, allowed) {
  if (isAbortSignal(given)) return { ...NONE, signal: given }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw errors().invalidArgument('options', `must be ${allowed}`)
  }
  refuseUnknown('options', given, KNOWN)
  const { signal, timeout, resetTimeoutOnProgress, maxTotalTimeout, meta } = given
  const onProgress = given.onProgress ?? given.onprogress
  if (signal !== undefined && !isAbortSignal(signal))
    throw errors().invalidArgument('options.signal', 'must be an AbortSignal')
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw errors().invalidArgument('options.onProgress', 'must be a function')
  }
  if (resetTimeoutOnProgress !== undefined && typeof resetTimeoutOnProgress !== 'boolean') {
    throw errors().invalidArgument('options.resetTimeoutOnProgress', 'must be a boolean')
  }
  const native = {
    timeout: milliseconds('options.timeout', timeout),
    maxTotalTimeout: milliseconds('options.maxTotalTimeout', maxTotalTimeout),
    resetTimeoutOnProgress,
    wantsProgress: onProgress !== undefined,
    meta: meta === undefined ? undefined : jsonObject('options.meta', meta),
  }
  return { signal, onProgress, native }
}

function isAbortSignal(value) {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof value.aborted === 'boolean' &&
    typeof value.addEventListener === 'function' &&
    typeof value.removeEventListener === 'function'
  )
}

/**
 * As `jsonObject`. Where the object has long strings, its pieces: in turns JSON text and such a string as it is, for
 * src/node/pieces.rs to write: `JSON.stringify` takes a millisecond for a megabyte of it.
 *
 * @returns {string | string[]}
 */
function jsonPieces(path, value) {
  try {
    if (hasLongString(value)) return pieces(value)
  } catch {
    // A getter that throws: `jsonObject` has the words for it.
  }
  return jsonObject(path, value)
}

function hasLongString(value) {
  if (typeof value !== 'object' || value === null) return false
  // Arrays and boxed primitives are not written by their members; whatever else is no plain object can wait the millisecond.
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return false
  for (const key in value) {
    if (isLong(value[key])) return value.toJSON === undefined
  }
  return false
}

function isLong(value) {
  // Half a pair of surrogates has to become an escape, which no UTF-8 can say.
  return typeof value === 'string' && value.length >= LONG_STRING && value.isWellFormed?.() === true
}

function pieces(object) {
  const pieces = []
  let text = '{'
  let separator = ''
  for (const key of Object.keys(object)) {
    const value = object[key]
    if (isLong(value)) {
      pieces.push(`${text}${separator}${JSON.stringify(key)}:`, value)
      text = ''
    } else {
      // In an object of its own, so that its `toJSON` is given the key; empty where JSON leaves the value out.
      const member = JSON.stringify({ [key]: value }).slice(1, -1)
      if (member === '') continue
      text += separator + member
    }
    separator = ','
  }
  pieces.push(`${text}}`)
  return pieces
}

/** The text of a value that must be a JSON object. Nothing that cannot be sent is ever begun. */
function jsonObject(path, value) {
  let text
  try {
    text = JSON.stringify(value)
  } catch (cause) {
    throw errors().invalidArgument(
      path,
      'cannot be written as JSON (a BigInt, a cycle, or a toJSON or getter that throws)',
      {
        cause,
      },
    )
  }
  // What counts is what toJSON made of it.
  if (typeof text !== 'string' || text[0] !== '{')
    throw errors().invalidArgument(path, 'must be a JSON object')
  return text
}

function milliseconds(path, value) {
  if (value === undefined) return undefined
  if (typeof value === 'number' && value >= 1 && value <= LONGEST) return value
  throw errors().invalidArgument(path, `must be a number of milliseconds from 1 to ${LONGEST}`)
}

/** Throws at the first property of `given` that is none of `known`: ignored, a slip would look like success. */
function refuseUnknown(path, given, known) {
  const unknown = Object.keys(given).find(name => !known.includes(name) && given[name] !== undefined)
  if (unknown === undefined) return
  const core = theCore()
  const nearest = core.nearest(unknown, known)
  const hint = nearest === null ? `known are ${known.join(', ')}` : `did you mean ${nearest}?`
  throw errors().invalidArgument(core.pathOf(path, unknown), `is unknown; ${hint}`, {
    details: nearest === null ? {} : { nearest },
  })
}

/**
 * What a script asked of a call: a number is the timeout in ms. One below a second is refused, for whoever writes 30 means seconds.
 *
 * @param {unknown} given a number, McpCallOptions or nothing
 */
function scriptOptions(given) {
  if (typeof given === 'number') return callOptions({ timeout: wholeTimeout(given) })
  return callOptions(given, 'a timeout in milliseconds or an object of call options')
}

/** The same for a synchronous call, which nothing can abort and which hears of no progress: `known` are the options it has. */
function syncOptions(given, known) {
  readable('options', () => refuseUnsynchronous(given, known))
  return scriptOptions(given)
}

function refuseUnsynchronous(given, known) {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) {
    if (isAbortSignal(given))
      throw errors().invalidArgument(
        'options',
        'must not be an AbortSignal: nothing can abort while the thread is blocked',
      )
    refuseUnknown('options', given, known)
  }
}

function wholeTimeout(number) {
  if (number >= 1_000 && number <= LONGEST) return number
  throw errors().invalidArgument(
    'options',
    `as a number is the timeout in milliseconds, from 1000 to ${LONGEST}; for less write { timeout: ms }`,
  )
}

module.exports = {
  callOptions,
  isAbortSignal,
  jsonObject,
  jsonPieces,
  refuseUnknown,
  scriptOptions,
  syncOptions,
}
