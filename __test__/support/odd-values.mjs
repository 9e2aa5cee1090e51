// Every kind of value that JavaScript can pass where something else is wanted.

import vm from 'node:vm'
import { CANARY } from './refusals.mjs'

export function revoked(target) {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

/** A proxy all of whose traps throw. */
export function hostile(target) {
  const trap = () => {
    throw new Error(CANARY)
  }
  return new Proxy(target, new Proxy({}, { get: () => trap }))
}

function cyclic() {
  const object = {}
  object.id = object
  object.command = object
  return object
}

/** Every kind of value there is, with the words by which a message calls it. */
export const KINDS = [
  ['null', null, 'null'],
  ['true', true, 'a boolean'],
  ['a number with a fraction', 1.5, 'a number'],
  ['a negative number', -5, 'a number'],
  ['NaN', Number.NaN, 'NaN'],
  ['Infinity', Number.POSITIVE_INFINITY, 'an infinite number'],
  ['-Infinity', Number.NEGATIVE_INFINITY, 'an infinite number'],
  ['a BigInt', 10n, 'a bigint'],
  ['a symbol', Symbol(CANARY), 'a symbol'],
  ['a function', () => CANARY, 'a function'],
  ['a class', class Secret {}, 'a function'],
  ['a string with NUL', `/${CANARY}\0`, 'a string'],
  ['a string with half an emoji', `/${CANARY}\ud83d`, 'a string that is not well-formed Unicode'],
  ['a boxed string', Object(CANARY), 'a boxed primitive'],
  ['a boxed number', Object(1), 'a boxed primitive'],
  ['a Date', new Date(0), 'a Date'],
  ['a Date of another realm', vm.runInNewContext('new Date(0)'), 'a Date'],
  ['a RegExp', /x/, 'a RegExp'],
  ['a Map', new Map([['id', CANARY]]), 'a Map'],
  ['a Map of another realm', vm.runInNewContext('new Map()'), 'a Map'],
  ['a Set', new Set([CANARY]), 'a Set'],
  ['a WeakMap', new WeakMap(), 'a WeakMap'],
  ['a WeakSet', new WeakSet(), 'a WeakSet'],
  ['a Promise', Promise.resolve(CANARY), 'a Promise'],
  ['an Error', new Error(CANARY), 'an Error'],
  ['a generator', (function* values() {})(), 'an iterator'],
  ['an iterator', [CANARY].values(), 'an iterator'],
  ['Headers', new Headers({ id: CANARY }), 'a Headers'],
  ['a Uint8Array', new Uint8Array(2), 'a typed array'],
  ['a Float64Array', new Float64Array(2), 'a typed array'],
  ['a Buffer', Buffer.from(CANARY), 'a typed array'],
  ['a DataView', new DataView(new ArrayBuffer(2)), 'a typed array'],
  ['an ArrayBuffer', new ArrayBuffer(2), 'an ArrayBuffer'],
  ['a revoked proxy', revoked({}), 'throws'],
  ['a revoked proxy of an array', revoked([]), 'throws'],
  ['a proxy whose traps throw', hostile({}), 'throws'],
]

export const OBJECTS = [
  ['a plain object', { key: CANARY }, 'an object'],
  ['a cyclic object', cyclic(), 'an object'],
  ['an object without prototype', Object.assign(Object.create(null), { key: CANARY }), 'an object'],
]

export const ARRAYS = [
  ['an array', [CANARY], 'an array'],
  ['an array with a hole', new Array(1), 'an array'],
  ['an array of another realm', vm.runInNewContext('[1]'), 'an array'],
]
