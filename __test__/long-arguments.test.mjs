// Arguments with long strings, which JSON.stringify does not write: they arrive in its very words all the same.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connected, failure, logged } from './support/fixture.mjs'

const LONG = 70_000
const plain = 'a~'.repeat(LONG / 2)
const odd = '"\\\u0000\u0001\b\f\n\r\t\u001f\u007f\u0080é\u2028完😀'.repeat(LONG / 10)

class Row {
  #hidden = 1
  text = plain
  get inherited() {
    return this.#hidden
  }
}

const ARGUMENTS = {
  'one string': { text: plain },
  'characters that JSON escapes, and some that it could': { text: odd },
  'short members around it': { a: 1, 'k"\n': null, text: plain, ü: 'ü', list: [plain], deep: { text: odd } },
  'several strings': { a: plain, b: odd, c: plain },
  'members that JSON leaves out': { a: undefined, b: () => {}, text: plain, c: Symbol('c'), d: undefined },
  'only such members before it': { [Symbol('s')]: 1, a: undefined, text: plain },
  'values with a toJSON, which is given its key': {
    text: plain,
    at: new Date(0),
    own: { toJSON: key => `own ${key}` },
  },
  'numeric keys, which come first': { text: plain, 2: 'b', 1: odd },
  'the key __proto__': JSON.parse(`{"text":"${plain}","__proto__":{"a":1}}`),
  'an object without a prototype': Object.assign(Object.create(null), { text: plain }),
  'inherited members, which are none': Object.assign(Object.create({ more: plain }), { text: odd }),
  'an instance with a getter': new Row(),
  'its own toJSON': { text: plain, toJSON: () => ({ instead: 1 }) },
  'half an emoji': { text: `${plain}\ud83d` },
  numbers: { text: plain, a: -0, b: 1e21, c: Number.NaN, d: 0.1 },
}

test('long arguments are on the wire what JSON.stringify makes of them', async t => {
  const { connection, log } = await connected(t)
  for (const [what, args] of Object.entries(ARGUMENTS)) {
    await connection.callTool('echo', args)
    const line = logged(log)
      .filter(line => line.includes('"tools/call"'))
      .at(-1)
    const [, text] = line.match(/"arguments":(.*)\}\}$/s)
    assert.ok(text === JSON.stringify(args), what)
  }
})

test('what comes with long arguments comes along, and what is wrong with them is said', async t => {
  const { connection, log } = await connected(t)
  await connection.callTool('echo', { text: plain }, { meta: { traceparent: '00-1' } })
  const sent = JSON.parse(
    logged(log)
      .filter(line => line.includes('"tools/call"'))
      .at(-1),
  )
  assert.deepEqual(sent.params._meta, { traceparent: '00-1' })

  const throwing = Object.defineProperty({ text: plain }, 'b', {
    enumerable: true,
    get() {
      throw new Error('no')
    },
  })
  for (const args of [{ text: plain, big: 1n }, throwing, Object.assign([], { text: plain })]) {
    assert.equal((await failure(connection.callTool('echo', args))).code, 'ERR_MCP_INVALID_ARGUMENT')
  }
  assert.equal((await failure(connection.callTool('ech', { text: plain }))).code, 'ERR_MCP_TOOL_NOT_FOUND')
})

test('a long call can be given up before and while it is written', async t => {
  const { connection } = await connected(t)
  const calls = Array.from({ length: 20 }, async (_, index) => {
    const controller = new AbortController()
    const call = connection.callTool('echo', { text: plain.repeat(10) }, controller.signal)
    if (index % 2) controller.abort(index)
    return call.then(
      result => result.structuredContent.text.length,
      reason => reason,
    )
  })
  const outcomes = await Promise.all(calls)
  assert.deepEqual(
    outcomes,
    outcomes.map((_, index) => (index % 2 ? index : plain.length * 10)),
  )
})

test('what JSON writes as no object is refused, whatever long strings it has as members', async t => {
  const { connection } = await connected(t)
  for (const args of [Object.assign(new Number(5), { text: plain }), Object.assign([], { text: plain })]) {
    assert.equal((await failure(connection.callTool('echo', args))).code, 'ERR_MCP_INVALID_ARGUMENT')
  }
})
