import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const read = path => readFileSync(new URL(path, import.meta.url), 'utf8')
const exportsOf = text =>
  [...text.matchAll(/^export (?:declare )?(?:abstract )?(?:interface|type|class|function|const) (\w+)/gm)]
    .map(([, name]) => name)
    .sort()
const unique = names => [...new Set(names)].sort()

const agreement = read('agreement.ts')
const compared = unique(
  [...agreement.matchAll(/^ {2}(\w+): (?:Identical|SameValue)</gm)].map(([, name]) => name),
)

test('every name of the contract is compared with index.d.ts', () => {
  assert.deepEqual(unique(exportsOf(read('contract.d.ts'))), compared)
})

test('index.d.ts exports the compared names and no others', () => {
  assert.deepEqual(unique(exportsOf(read('../../index.d.ts'))), compared)
})

test('each comparison compares a name with itself', () => {
  for (const [, key, left, right] of agreement.matchAll(
    /^ {2}(\w+): Identical<actual\.(\w+), contract\.(\w+)>/gm,
  )) {
    assert.deepEqual([left, right], [key, key])
  }
  for (const [, key, name] of agreement.matchAll(/^ {2}(\w+): SameValue<'(\w+)'>/gm)) assert.equal(name, key)
})
