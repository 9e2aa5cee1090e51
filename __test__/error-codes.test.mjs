import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { connected, failure, fixture, workflow } from './support/fixture.mjs'

const { connectMcpServer, connectMcpServers, McpError, normalizeMcpServers } = workflow
const { MCP_ERROR_CODES } = createRequire(import.meta.url)('../lib/errors.js')

const start = (switches, options, more) => connectMcpServer(fixture(switches, more).definition, options)

/** A start of the fixture server of which the definition is wrong. */
const defined = (more, options) => start([], options, more)

/** A call to the fixture server. */
const called = (name, args, options, connectOptions) => async t => {
  const { connection } = await connected(t, [], connectOptions)
  await connection.callTool(name, args, options)
}

/**
 * How each code comes about for real. `serverId` is 'fixture' unless it says otherwise. `more` are
 * fields of `details` that the code has only in this case.
 */
const PRODUCED = {
  ERR_MCP_INVALID_DEFINITION: { by: () => defined({ timeout: 5 }) },
  ERR_MCP_CAPABILITY_IN_DEFINITION: {
    by: () => defined({ environment: { GITHUB_TOKEN: 'x' } }),
  },
  ERR_MCP_ENV_NOT_ALLOWED: { by: () => defined({ inheritEnvironment: ['API_TOKEN'] }) },
  ERR_MCP_TOO_MANY_SERVERS: {
    by: () =>
      connectMcpServers(Array.from({ length: 9 }, (_, index) => ({ id: `s${index}`, command: ['/x'] }))),
    serverId: undefined,
  },
  ERR_MCP_TOO_MANY_TOOLS: { by: () => start(['--tools', '257']) },
  ERR_MCP_TOO_MANY_PAGES: { by: () => start(['--endless']) },
  ERR_MCP_SPAWN: { by: () => defined({ command: ['/nonexistent/server'] }) },
  ERR_MCP_HANDSHAKE: { by: () => start(['--exit-at', 'initialize:1']) },
  ERR_MCP_PROTOCOL_VERSION: {
    by: () => start(['--protocol', '1999-01-01']),
    more: ['stderr', 'stdoutNoise', 'missingEnv'],
  },
  ERR_MCP_TIMEOUT: { by: called('silent', {}, { timeout: 20 }) },
  ERR_MCP_EXITED: { by: called('leave', { how: '3' }) },
  ERR_MCP_CLOSED: {
    async by(t) {
      const { connection } = await connected(t)
      await connection.close()
      await connection.callTool('echo')
    },
  },
  ERR_MCP_TOOL_NOT_FOUND: { by: called('ecko') },
  ERR_MCP_RPC: { by: called('rpc_error', { error: '{"code":-1,"message":"no","data":{"a":1}}' }) },
  ERR_MCP_INVALID_MESSAGE: { by: called('result', { text: '7' }) },
  ERR_MCP_MESSAGE_TOO_LARGE: { by: called('big', { bytes: 5_000 }, {}, { maxMessageBytes: 5_000 }) },
  ERR_MCP_INPUT_REQUIRED: { by: called('result', { text: '{"resultType":"input_required"}' }) },
  ERR_MCP_INVALID_ARGUMENT: { by: called('echo', null), serverId: undefined },
}

/** Produced where a copy of the package without its binary is at hand. */
const IN_NO_BINARY_TEST = ['ERR_MCP_NATIVE_LOAD']

/** Of projects and of servers over HTTP: the canary tests of both produce them. */
const OF_SCRIPTS = [
  'ERR_MCP_CONFIG',
  'ERR_MCP_SERVER_NOT_FOUND',
  'ERR_MCP_SERVER_HAS_NO_URL',
  'ERR_MCP_HTTP',
  'ERR_MCP_AUTH_REQUIRED',
  'ERR_MCP_CONNECT',
  'ERR_MCP_WOULD_BLOCK',
]

/** Says that this package is at fault: nothing known produces it. */
const NEVER = ['ERR_MCP_INTERNAL']

const read = path => readFileSync(new URL(path, import.meta.url), 'utf8')

/** The fields of `details` that index.d.ts lists for each code: what stands in backquotes behind the first sentence. */
function documented() {
  const union = read('../index.d.ts').match(/export type McpErrorCode =([\s\S]*?)\n\n/)[1]
  const entries = union.matchAll(/\/\*\* (.*?) \*\/\s+\| '(ERR_MCP_[A-Z_]+)'/g)
  return Object.fromEntries(
    Array.from(entries, ([, comment, code]) => {
      const [, ...sentences] = comment.split('. ')
      return [code, Array.from(sentences.join('. ').matchAll(/`(\w+)`/g), ([, field]) => field)]
    }),
  )
}

test('every code is produced here, or it is said why not', () => {
  const all = [...Object.keys(PRODUCED), ...IN_NO_BINARY_TEST, ...OF_SCRIPTS, ...NEVER]
  assert.deepEqual(all.sort(), [...MCP_ERROR_CODES].sort())
  for (const code of IN_NO_BINARY_TEST) assert.ok(read('no-binary.test.mjs').includes(`'${code}'`))
  assert.deepEqual(Object.keys(documented()).sort(), [...MCP_ERROR_CODES].sort())
})

for (const [code, { by, more = [], ...expected }] of Object.entries(PRODUCED)) {
  test(`${code} is produced, with its details, its server, a stack from here, and nothing that cannot be shown`, async t => {
    async function asker() {
      await by(t)
    }
    const error = await failure(asker())
    assert.equal(error.code, code)
    assert.ok(error instanceof McpError && error instanceof Error && McpError.is(error))
    assert.equal(error.name, 'McpError')
    assert.equal(error.serverId, 'serverId' in expected ? expected.serverId : 'fixture')
    assert.deepEqual(Object.keys(error.details).sort(), [...documented()[code], ...more].sort())
    for (const value of Object.values(error.details)) assert.notEqual(value, undefined)
    assert.ok(Object.isFrozen(error.details))

    assert.match(error.message, /^\S.*[.a-z0-9?\]]$/s)
    assert.doesNotMatch(error.message, /!|undefined|\[object|NaN/)
    assert.ok(error.stack.startsWith(`McpError [${code}]: ${error.message}\n`))
    assert.match(error.stack, /asker.*error-codes\.test\.mjs/)

    const { stack, cause, ...shown } = JSON.parse(JSON.stringify(error))
    assert.deepEqual([stack, cause], [undefined, undefined])
    const { message, details } = error
    const server = error.serverId === undefined ? {} : { serverId: error.serverId }
    assert.deepEqual(shown, { name: 'McpError', code, message, ...server, details: { ...details } })
    assert.deepEqual(structuredClone(error.toJSON()), error.toJSON())
    const inspected = inspect(error)
    assert.ok(inspected.startsWith(`McpError [${code}]: `))
    assert.ok(inspected.includes(`code: '${code}'`))
  })
}

test('a fault in a definition says the same whoever finds it', async () => {
  for (const more of [
    { timeout: 5 },
    { environment: { GITHUB_TOKEN: 'x' } },
    { inheritEnvironment: ['API_TOKEN'] },
  ]) {
    const { definition } = fixture([], more)
    const normalizing = await failure(normalizeMcpServers([definition]))
    const connecting = await failure(connectMcpServers([definition]))
    assert.deepEqual(connecting.toJSON(), normalizing.toJSON())
  }
})

test('an error that many calls share is an error of each of them', async t => {
  const { connection } = await connected(t)
  const [first, second] = await Promise.all([
    failure(connection.callTool('silent')),
    failure(connection.callTool('leave', { how: '1' })),
  ])
  assert.notEqual(first, second)
  assert.deepEqual(first.toJSON(), second.toJSON())
})
