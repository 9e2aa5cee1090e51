// The names of agent tools: what providers take, and the same whatever else is listed.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { named, namesOf, recorded } from './support/agent-tools.mjs'

const require = createRequire(import.meta.url)
const { createMcpTools } = require('../lib/tools.js')

test('every name is one that providers take, and the originals stay readable', async () => {
  const originals = [
    'read.file',
    'a/b',
    'with space',
    '読む',
    '💥',
    '',
    'x'.repeat(128),
    `${'y'.repeat(58)}`,
    'fine-1_2',
  ]
  const tools = await createMcpTools({ connection: recorded('srv', named(...originals)) })
  const names = tools.map(tool => tool.name)
  for (const name of names) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
  assert.equal(new Set(names).size, originals.length)
  assert.deepEqual(
    tools.map(tool => tool.metadata.toolName),
    originals,
  )
  assert.equal(names[8], 'srv__fine-1_2')
  assert.equal(names[5], 'srv__')
  assert.match(names[0], /^srv__read_file_[0-9a-f]{8}$/)
  assert.match(names[4], /^srv____[0-9a-f]{8}$/)
  assert.equal(names[6].length, 64)
  assert.match(names[6], /^srv__x{50}_[0-9a-f]{8}$/)
  // 'srv__' and 58 more are 63: nothing to cut.
  assert.equal(names[7], `srv__${'y'.repeat(58)}`)
})

test('an id of 64 characters still leaves room for different names', async () => {
  const names = await namesOf({ connection: recorded('s'.repeat(64), named('one', 'two')) })
  assert.equal(new Set(names).size, 2)
  for (const name of names) assert.match(name, /^s{55}_[0-9a-f]{8}$/)
})

test('a name does not depend on what else is listed, nor on the order', async () => {
  const all = ['read.file', 'read/file', 'read_file', 'write.file']
  const [dotted] = await namesOf({ connection: recorded('srv', named('read.file')) })
  const forwards = await namesOf({ connection: recorded('srv', named(...all)) })
  const backwards = await namesOf({ connection: recorded('srv', named(...all.slice().reverse())) })
  assert.equal(forwards[0], dotted)
  assert.deepEqual(backwards.reverse(), forwards)
  assert.equal(forwards[2], 'srv__read_file')
})

test('a tool that is called what another one is changed into keeps its name', async () => {
  const [dotted] = await namesOf({ connection: recorded('srv', named('read.file')) })
  const squatter = dotted.slice('srv__'.length)
  for (const order of [
    ['read.file', squatter],
    [squatter, 'read.file'],
  ]) {
    const tools = await createMcpTools({ connection: recorded('srv', named(...order)) })
    const byOriginal = Object.fromEntries(tools.map(tool => [tool.metadata.toolName, tool.name]))
    assert.equal(byOriginal[squatter], dotted)
    assert.notEqual(byOriginal['read.file'], dotted)
    assert.match(byOriginal['read.file'], /^srv__read_file_[0-9a-f]{8}$/)
  }
})

test('a name that is listed twice is one tool', async () => {
  const connection = recorded('srv', [...named('x'), { name: 'x', description: 'again', inputSchema: {} }])
  const tools = await createMcpTools({ connection })
  assert.equal(tools.length, 1)
  assert.equal(tools[0].description, '')
})

test('the same tool of two servers is two tools, each calling its own', async () => {
  const [one, two] = [recorded('one', named('search')), recorded('two', named('search'))]
  const tools = await createMcpTools({ connections: new Set([two, one]) })
  assert.deepEqual(
    tools.map(tool => tool.name),
    ['two__search', 'one__search'],
  )
  await tools[0].execute({ q: 1 })
  assert.deepEqual([one.calls.length, two.calls.length], [0, 1])
})
