// Arguments whose getters, proxies and methods throw, and names that nobody should read.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { connected, failure, fixture, SERVER, workflow } from './support/fixture.mjs'
import { hostile, revoked } from './support/odd-values.mjs'

const { connectMcpServers, createMcpTools, openMcpProject } = workflow

const throws = () => {
  throw new RangeError('of the host')
}

const UNREADABLE = {
  'an object with a getter that throws': () => ({
    get signal() {
      return throws()
    },
  }),
  'an object with an unknown getter that throws': () => ({
    get unknown() {
      return throws()
    },
  }),
  'a proxy whose traps throw': () => hostile({}),
  'a revoked proxy': () => revoked({}),
  'an object that only inherits from AbortSignal': () => Object.create(AbortSignal.prototype),
}

function project(t, config) {
  const opened = openMcpProject({ allowStdio: true, config })
  t.after(() => opened.close())
  return opened
}

async function assertRefused(promise, what) {
  const error = await failure(promise)
  assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT', `${what}: ${inspect(error)}`)
  return error
}

describe('what cannot be read is refused wherever it is given', () => {
  for (const [kind, make] of Object.entries(UNREADABLE)) {
    test(kind, async t => {
      const { connection } = await connected(t)
      const script = project(t, {
        servers: { fixture: { command: process.execPath, args: [SERVER] } },
      }).mcp('fixture')
      const calls = {
        'callTool(…, it)': () => connection.callTool('echo', {}, make()),
        'callTool(it)': () => connection.callTool(make()),
        'callTool({}, it)': () => connection.callTool({ name: 'echo' }, make()),
        'callTool({}, …, it)': () => connection.callTool({ name: 'echo' }, undefined, make()),
        'callTool({ _meta }, it)': () => connection.callTool({ name: 'echo', _meta: {} }, make()),
        'request(…, it)': () => connection.request('ping', {}, make()),
        'listTools(…, it)': () => connection.listTools(undefined, make()),
        'createMcpTools({ connection: it })': () => createMcpTools({ connection: make() }),
        'createMcpTools({ connections: it })': () => createMcpTools({ connections: make() }),
        'call(…, it)': () => script.call('echo', {}, make()),
        'callSync(…, it)': async () => script.callSync('echo', {}, make()),
        'listTools(it)': () => script.listTools(make()),
        'listToolsSync(it)': async () => script.listToolsSync(make()),
      }
      for (const [what, call] of Object.entries(calls)) await assertRefused(call(), what)
      assert.equal((await connection.callTool('echo', { still: 1 })).structuredContent.still, 1)
    })
  }
})

test('its own error is the cause', async t => {
  const { connection } = await connected(t)
  const options = UNREADABLE['an object with a getter that throws']()
  const { cause, details } = await assertRefused(connection.callTool('echo', {}, options))
  assert.ok(cause instanceof RangeError)
  assert.equal(details.path, 'options')
})

test('a source of tools and a project that cannot be read are refused', async () => {
  for (const make of [() => hostile({}), () => revoked({})]) {
    await assertRefused(createMcpTools(make()), 'source')
    await assertRefused((async () => openMcpProject({ config: make() }))(), 'config')
  }
  // It shows no property to whoever lists them, and throws at whoever asks for one.
  const shy = new Proxy({}, { get: (_, name) => (name === 'headers' ? throws() : undefined) })
  await assertRefused((async () => openMcpProject({ config: { servers: { shy } } }))(), 'a server')
})

test('a false signal that cannot be listened to ends its own call alone', async t => {
  const { connection } = await connected(t)
  const deaf = { aborted: false, addEventListener: throws, removeEventListener() {} }
  const mute = {
    aborted: false,
    addEventListener() {
      throw Object.create(null)
    },
    removeEventListener() {},
  }
  for (const signal of [deaf, mute]) {
    const refused = assertRefused(connection.callTool('echo', {}, { signal }))
    assert.equal((await connection.callTool('echo', { other: 1 })).structuredContent.other, 1)
    const { details } = await refused
    assert.equal(details.path, 'options.signal')
  }
})

test('a false signal that cannot be let go of replaces no outcome', async t => {
  const signal = { aborted: false, addEventListener() {}, removeEventListener: throws }
  const { connection } = await connected(t)
  const { structuredContent } = await connection.callTool('echo', { held: 1 }, { signal })
  assert.equal(structuredContent.held, 1)
  const { code } = await failure(connection.callTool('no-such-tool', {}, { signal }))
  assert.equal(code, 'ERR_MCP_TOOL_NOT_FOUND')
  const group = await connectMcpServers([fixture().definition], { signal })
  t.after(() => group.close())
  assert.equal(group.connections.length, 1)
})

test('a token that stands in the place of an option’s name is not shown, and a name without end is cut', async t => {
  const { connection } = await connected(t)
  const secret = 'k3Jx9QmZ2vLw8RtY5bNc7HdF4sGp6TaE1uXo'
  const unknown = name => [
    connection.callTool('echo', {}, { [name]: 1 }),
    connection.callTool({ name: 'echo', [name]: 1 }),
    connection.request('ping', {}, { [name]: 1 }),
    createMcpTools({ connection, [name]: 1 }),
  ]
  for (const promise of unknown(`ghp_${secret}`)) {
    const error = await assertRefused(promise)
    assert.match(error.message, /«a GitHub token»/)
    assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes(secret))
    assert.ok(!JSON.stringify(error).includes(secret))
  }
  for (const promise of unknown('n'.repeat(100_000))) {
    const { message } = await assertRefused(promise)
    assert.ok(message.length < 500, `${message.length} characters`)
  }
})
