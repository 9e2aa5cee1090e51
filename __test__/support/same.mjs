// Two values that are the same to the last detail: types, negative zero, own keys and their order.

import assert from 'node:assert/strict'

/** Fails with the path to the first difference. */
export function assertSame(actual, expected, path = '$') {
  if (typeof expected !== 'object' || expected === null) {
    assert.ok(Object.is(actual, expected), `${path} is ${String(actual)} and not ${String(expected)}`)
    return
  }
  assert.ok(typeof actual === 'object' && actual !== null, `${path} is ${String(actual)}`)
  assert.equal(Object.getPrototypeOf(actual), Object.getPrototypeOf(expected), path)
  const keys = Object.keys(expected)
  assert.deepEqual(Object.keys(actual), keys, path)
  for (const key of keys) assertSame(actual[key], expected[key], `${path}.${key}`)
}
