'use strict'

// Describes a JavaScript value as JSON text for src/node/values.rs, which judges it: everything JSON can say stands for itself, the
// rest is tagged. Done here and not over N-API because only here a getter or a proxy that throws can be asked safely.

/** Definitions and options are four levels deep at most (see TooDeep in src/policy/input.rs). A cycle ends here too. */
const MAX_DEPTH = 6

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

/** More elements than any command line takes (2 MiB on Linux, 8 bytes and more each). A `length` costs nothing, its elements do. */
const MAX_LENGTH = 262_144

/** Objects that hold what they hold elsewhere than in properties: read as plain ones they would be empty. */
const BUILT_IN_TAGS = {
  Date: 'a Date',
  RegExp: 'a RegExp',
  Map: 'a Map',
  Set: 'a Set',
  WeakMap: 'a WeakMap',
  WeakSet: 'a WeakSet',
  Promise: 'a Promise',
  ArrayBuffer: 'an ArrayBuffer',
  SharedArrayBuffer: 'an ArrayBuffer',
  String: 'a boxed primitive',
  Number: 'a boxed primitive',
  Boolean: 'a boxed primitive',
  Symbol: 'a boxed primitive',
  BigInt: 'a boxed primitive',
  Error: 'an Error',
  Generator: 'an iterator',
  AsyncGenerator: 'an iterator',
  'Array Iterator': 'an iterator',
  'Map Iterator': 'an iterator',
  'Set Iterator': 'an iterator',
  WeakRef: 'a WeakRef',
  URL: 'a URL',
  URLSearchParams: 'a URLSearchParams',
  Headers: 'a Headers',
  FormData: 'a FormData',
}

/** JSON text that says what `value` is. Each property is read once; nothing is changed and nothing throws. */
function describe(value) {
  return JSON.stringify(description(value, 0))
}

function description(value, depth) {
  switch (typeof value) {
    case 'string':
      return isWellFormed(value) ? value : { t: 'a string that is not well-formed Unicode' }
    case 'number':
      return Number.isFinite(value) ? value : { t: String(value) }
    case 'boolean':
      return value
    case 'object':
      return value === null ? null : objectDescription(value, depth)
    case 'undefined':
    case 'function':
      return { t: typeof value }
    default:
      return { t: `a ${typeof value}` }
  }
}

function objectDescription(value, depth) {
  if (depth >= MAX_DEPTH) return { t: 'deep' }
  try {
    if (Array.isArray(value)) return listDescription(value, depth)
    const builtIn = builtInKind(value)
    if (builtIn !== undefined) return { t: builtIn }
    // Own enumerable string keys, `__proto__` included: pairs, so that no key can mean anything here.
    return { o: Object.keys(value).map(key => [wellFormed(key), memberDescription(value, key, depth)]) }
  } catch {
    return { t: 'thrown' }
  }
}

function listDescription(list, depth) {
  const { length } = list
  if (length > MAX_LENGTH) return { t: `an array of more than ${MAX_LENGTH} elements` }
  return Array.from({ length }, (_, index) =>
    index in list ? memberDescription(list, index, depth) : { t: 'hole' },
  )
}

function memberDescription(object, key, depth) {
  let value
  try {
    value = object[key]
  } catch {
    return { t: 'thrown' }
  }
  return description(value, depth + 1)
}

function builtInKind(value) {
  if (ArrayBuffer.isView(value)) return 'a typed array'
  // Also of another realm: a vm context, Electron's renderer.
  const tag = Object.prototype.toString.call(value).slice(8, -1)
  return Object.hasOwn(BUILT_IN_TAGS, tag) ? BUILT_IN_TAGS[tag] : undefined
}

/** The engine itself knows since Node 20; the first use of a pattern takes 0.1 ms. */
function isWellFormed(text) {
  return typeof text.isWellFormed === 'function' ? text.isWellFormed() : !LONE_SURROGATE.test(text)
}

/** A key with half a surrogate pair is no name of anything; U+FFFD in its place says so. */
function wellFormed(key) {
  return isWellFormed(key) ? key : key.replace(new RegExp(LONE_SURROGATE, 'g'), '\ufffd')
}

module.exports = { describe }
