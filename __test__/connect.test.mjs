import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { inspect } from 'node:util'
import {
  connected,
  failure,
  fixture,
  logged,
  loggedPid,
  PATIENCE,
  received,
  soon,
  workflow,
} from './support/fixture.mjs'
import { gone, seen } from './support/processes.mjs'

const { connectMcpServer } = workflow

test('a connection tells what the server said of itself', async t => {
  const { connection, log } = await connected(t, ['--instructions', 'Be kind.'])
  assert.equal(connection.id, 'fixture')
  assert.equal(connection.pid, loggedPid(log))
  assert.equal(connection.protocolVersion, '2025-11-25')
  assert.deepEqual(connection.serverInfo, { name: 'fixture', version: '1.2.3', title: 'Fixture' })
  assert.deepEqual(connection.serverCapabilities, { tools: { listChanged: true }, logging: {} })
  assert.equal(connection.instructions, 'Be kind.')
  assert.equal(connection.stderr(), '')
  assert.ok(connection.closed instanceof Promise)
  assert.equal(typeof connection.diagnostics(), 'object')
})

test('what a connection tells cannot be changed', async t => {
  const { connection } = await connected(t)
  const values = [
    connection.tools,
    connection.tools[0],
    connection.tools[0].inputSchema,
    connection.serverInfo,
    connection.serverCapabilities,
    connection.serverCapabilities.tools,
  ]
  assert.deepEqual(
    values.map(Object.isFrozen),
    values.map(() => true),
  )
  for (const member of ['id', 'tools', 'pid', 'protocolVersion', 'serverInfo', 'closed']) {
    assert.throws(() => Object.assign(connection, { [member]: 1 }), TypeError, member)
  }
})

test('what the server did not say is absent', async t => {
  const result = '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}'
  const { connection } = await connected(t, ['--initialize-result', result])
  assert.equal(connection.serverInfo, undefined)
  assert.equal(connection.instructions, undefined)
  assert.deepEqual(connection.serverCapabilities, { tools: {} })
})

test('the methods of a connection can be taken off it', async t => {
  const { connection } = await connected(t)
  const { callTool, listTools, request, close } = connection
  assert.equal((await callTool('echo', { a: 1 })).structuredContent.a, 1)
  assert.equal((await listTools()).tools.length, connection.tools.length)
  assert.deepEqual(await request('ping'), {})
  assert.equal((await close()).reason, 'closed')
})

test('initialize offers the newest version, declares no capabilities, and is followed by initialized', async t => {
  const { log } = await connected(t)
  const [initialize, initialized, list] = received(log)
  assert.equal(initialize.method, 'initialize')
  assert.equal(initialize.params.protocolVersion, '2025-11-25')
  assert.deepEqual(initialize.params.capabilities, {})
  assert.equal(initialize.params.clientInfo.name, 'workflow-mcp')
  assert.deepEqual(initialized, { jsonrpc: '2.0', method: 'notifications/initialized' })
  assert.equal(list.method, 'tools/list')
})

test('a server gets its arguments, its working directory and the environment that was asked for', async t => {
  const cwd = realpathSync(tmpdir())
  const definition = {
    cwd,
    environment: { MODE: 'fast', EMPTY: '' },
    inheritEnvironment: ['REGION', 'UNSET'],
  }
  const options = {
    env: { PATH: '/usr/bin:/bin', REGION: 'north', SECRET_TOKEN: 'not for servers' },
    allowedInheritedEnvKeys: ['REGION', 'UNSET'],
  }
  const { connection } = await connected(t, ['--instructions', 'a "b" $c'], options, definition)
  const { structuredContent: about } = await connection.callTool('about')
  assert.deepEqual(about.env, { PATH: '/usr/bin:/bin', MODE: 'fast', EMPTY: '', REGION: 'north' })
  assert.equal(about.cwd, cwd)
  assert.deepEqual(about.argv.slice(-2), ['--instructions', 'a "b" $c'])
  assert.equal(about.pid, connection.pid)
})

test('messages before the answer to initialize are heard, a ping is answered, anything else is refused', async t => {
  const logs = []
  const { connection, log } = await connected(t, ['--early'], { onLog: (...heard) => logs.push(heard) })
  await soon(() => received(log).some(({ id }) => id === 'early-request'), 'the answer to the early request')
  const answer = name => received(log).find(({ id }) => id === name)
  assert.deepEqual(answer('early-ping'), { jsonrpc: '2.0', id: 'early-ping', result: {} })
  assert.equal(answer('early-request').error.code, -32601)
  await soon(() => logs.length > 0, 'the early log message')
  assert.deepEqual(logs, [[{ level: 'info', logger: 'early', data: 'before the answer' }, 'fixture']])
  assert.ok(connection.tools.some(({ name }) => name === 'echo'))
  assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })
})

test('a change that is told before the answer to initialize does not empty the list', async t => {
  const changes = []
  const { connection, log } = await connected(t, ['--early', '--slow', '50'], {
    onToolsChanged: tools => changes.push(tools.length),
  })
  for (let call = 0; call < 20; call++) await connection.callTool('echo')
  assert.ok(connection.tools.length > 0)
  assert.ok(!changes.includes(0))
  assert.equal(received(log, 'tools/list').length, 1, 'the first list is newer than the change')
})

test('the first message is initialize, so that servers connect which leave on anything else', async t => {
  const { connection, log } = await connected(t, ['--strict-first'])
  assert.equal(received(log)[0].method, 'initialize')
  assert.equal(logged(log).filter(line => line.startsWith('#pid')).length, 1)
  assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })
})

test('a server that takes one version alone connects when it is asked for that, and fails with both named otherwise', async t => {
  const { connection } = await connected(t, ['--only-protocol', '2025-06-18'], { protocol: '2025-06-18' })
  assert.equal(connection.protocolVersion, '2025-06-18')
  const { definition, log } = fixture(['--only-protocol', '2025-06-18'])
  const error = await failure(connectMcpServer(definition))
  assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
  assert.equal(error.details.rpcCode, -32602)
  assert.match(error.message, /2025-11-25/)
  const server = seen(loggedPid(log))
  if (server) await gone(server)
})

test('a server that takes eleven seconds to start connects', async t => {
  const { connection } = await connected(t, ['--slow', '11000'])
  assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })
})

for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
  test(`a server may answer with version ${version}, and may be asked for it alone`, async t => {
    const { connection } = await connected(t, ['--protocol', version])
    assert.equal(connection.protocolVersion, version)
    const pinned = await connected(t, [], { protocol: version })
    assert.equal(pinned.connection.protocolVersion, version)
    assert.equal(received(pinned.log, 'initialize')[0].params.protocolVersion, version)
  })
}

test('a server that speaks 2026-07-28 alone is asked again on the same process', async t => {
  const { connection, log } = await connected(t, ['--modern'])
  assert.equal(connection.protocolVersion, '2026-07-28')
  assert.equal(connection.serverInfo.name, 'fixture')
  const methods = received(log).map(({ method }) => method)
  assert.deepEqual(methods, ['initialize', 'server/discover', 'subscriptions/listen', 'tools/list'])
  assert.equal(logged(log).filter(line => line.startsWith('#pid')).length, 1)
  await connection.callTool('echo', { a: 1 }, { meta: { traceparent: 't' } })
  const { _meta } = received(log, 'tools/call')[0].params
  assert.equal(_meta.traceparent, 't')
  assert.equal(_meta['io.modelcontextprotocol/protocolVersion'], '2026-07-28')
  assert.equal(_meta['io.modelcontextprotocol/clientInfo'].name, 'workflow-mcp')
})

for (const protocol of ['modern', '2026-07-28']) {
  test(`protocol '${protocol}' asks with server/discover alone`, async t => {
    const { connection, log } = await connected(t, ['--modern'], { protocol })
    assert.equal(connection.protocolVersion, '2026-07-28')
    assert.deepEqual(received(log, 'initialize'), [])
  })
}

test('a server that agrees to 2026-07-28 in initialize is talked to in that version', async t => {
  const { connection, log } = await connected(t, ['--protocol', '2026-07-28'])
  assert.equal(connection.protocolVersion, '2026-07-28')
  assert.deepEqual(received(log, 'notifications/initialized'), [])
  await connection.callTool('echo')
  const { _meta } = received(log, 'tools/call')[0].params
  assert.equal(_meta['io.modelcontextprotocol/protocolVersion'], '2026-07-28')
})

test("protocol 'legacy' does not ask a second time", async () => {
  const { definition, log } = fixture(['--modern'])
  const error = await failure(connectMcpServer(definition, { protocol: 'legacy' }))
  assert.equal(error.code, 'ERR_MCP_PROTOCOL_VERSION')
  assert.deepEqual(error.details.answered, ['2026-07-28'])
  assert.deepEqual(received(log, 'server/discover'), [])
})

test('a server without the capability has no tools and is not asked for them', async t => {
  const { connection, log } = await connected(t, ['--no-tools'])
  assert.deepEqual(connection.tools, [])
  assert.deepEqual(received(log, 'tools/list'), [])
  assert.equal((await failure(connection.callTool('echo'))).code, 'ERR_MCP_TOOL_NOT_FOUND')
  assert.deepEqual(await connection.request('ping'), {})
})

test('a server with the capability and without the method has no tools', async t => {
  const { connection } = await connected(t, ['--list-error=-32601'])
  assert.deepEqual(connection.tools, [])
})

test('banner lines, a byte-order mark, CRLF and foreign JSON on stdout do no harm, are counted and warned of once', async t => {
  const warnings = []
  const noise = ['Listening …', '{"level":"info"}', '', '[]', '42']
  const switches = ['--bom', '--crlf', ...noise.flatMap(line => ['--noise', line])]
  const { connection, log } = await connected(t, switches, { onWarning: (...heard) => warnings.push(heard) })
  assert.deepEqual((await connection.callTool('echo', { a: 'b' })).structuredContent, { a: 'b' })
  assert.deepEqual(
    received(log).map(({ method }) => method),
    ['initialize', 'notifications/initialized', 'tools/list', 'tools/call'],
  )
  const diagnostics = connection.diagnostics()
  assert.equal(diagnostics.skippedLines, 4)
  assert.equal(diagnostics.skippedLineSamples.length, 4)
  const noiseWarnings = warnings.filter(([{ code }]) => code === 'WARN_MCP_STDOUT_NOISE')
  assert.equal(noiseWarnings.length, 1)
  const [[warning, serverId]] = noiseWarnings
  assert.equal(serverId, 'fixture')
  assert.match(warning.message, /stdout/)
  assert.match(warning.details.samples[0], /Listening/)
})

test('an aborted connect rejects with the reason itself, and the process is gone', async () => {
  for (const reason of [new Error('enough'), 'enough', null, 0]) {
    const { definition, log } = fixture(['--silent'])
    const controller = new AbortController()
    const connecting = failure(connectMcpServer(definition, { signal: controller.signal }))
    const server = seen(await soon(() => received(log, 'initialize').length > 0 && loggedPid(log)))
    controller.abort(reason)
    assert.equal(await connecting, reason)
    await gone(server)
    assert.deepEqual(getEventListeners(controller.signal, 'abort'), [])
    assert.deepEqual(received(log, 'notifications/cancelled'), [])
  }
})

test('a connect that is aborted beforehand starts nothing', async () => {
  const { definition, log } = fixture()
  const signal = AbortSignal.abort()
  assert.equal(await failure(connectMcpServer(definition, { signal })), signal.reason)
  // Whatever had been started before the next server would have written its log by then.
  const { definition: next } = fixture()
  await (await connectMcpServer(next)).close()
  assert.deepEqual(logged(log), [])
})

test('an abort that finds the server connected, and JavaScript not yet told, rejects and ends the server too', async () => {
  const { definition, log } = fixture()
  const controller = new AbortController()
  const connecting = failure(connectMcpServer(definition, { signal: controller.signal }))
  // This thread hears nothing while it waits here, and the answer to the listing is soon there.
  const deadline = Date.now() + PATIENCE
  while (received(log, 'tools/list').length === 0 && Date.now() < deadline);
  const answered = Date.now() + 500
  while (Date.now() < answered);
  const server = seen(loggedPid(log))
  controller.abort('enough')
  assert.equal(await connecting, 'enough')
  await gone(server)
})

test('an abort that comes when the server is connected changes nothing', async t => {
  const controller = new AbortController()
  const { connection } = await connected(t, [], { signal: controller.signal })
  assert.deepEqual(getEventListeners(controller.signal, 'abort'), [])
  controller.abort()
  assert.deepEqual((await connection.callTool('echo', { a: 1 })).structuredContent, { a: 1 })
})

test('connectTimeout bounds the handshake in place of the timeout, which still bounds calls', async () => {
  const { definition, log } = fixture(['--silent'])
  const error = await failure(connectMcpServer(definition, { connectTimeout: 700 }))
  assert.equal(error.code, 'ERR_MCP_TIMEOUT')
  assert.deepEqual([error.details.phase, error.details.ms], ['connect', 700])
  const pid = loggedPid(log)
  const server = pid && seen(pid)
  if (server) await gone(server)
})

test('without connectTimeout the timeout of the definition bounds the handshake', async () => {
  const { definition } = fixture(['--silent'], { timeout: 1_000 })
  const error = await failure(connectMcpServer(definition))
  assert.equal(error.code, 'ERR_MCP_TIMEOUT')
  assert.deepEqual([error.details.phase, error.details.ms], ['connect', 1_000])
})

test('a connectTimeout longer than the timeout lets a slow server start', async t => {
  const { connection } = await connected(
    t,
    ['--slow', '1500'],
    { connectTimeout: 30_000 },
    { timeout: 1_000 },
  )
  const error = await failure(connection.callTool('silent'))
  assert.deepEqual([error.details.phase, error.details.ms], ['call', 1_000])
})

test('a name that is to be inherited and is not set is a warning, and in the diagnostics', async t => {
  const warnings = []
  const options = {
    allowedInheritedEnvKeys: ['NOTES_TOKEN'],
    env: { PATH: process.env.PATH, NOTE_TOKEN: 'a value that nobody sees' },
    onWarning: warning => warnings.push(warning),
  }
  const { connection } = await connected(t, [], options, { inheritEnvironment: ['NOTES_TOKEN'] })
  await soon(() => warnings.length === 1)
  assert.equal(warnings[0].code, 'WARN_MCP_MISSING_ENV')
  assert.deepEqual(warnings[0].details, { key: 'NOTES_TOKEN', nearest: 'NOTE_TOKEN' })
  assert.deepEqual(connection.diagnostics().missingEnv, ['NOTES_TOKEN'])
})

test('console.log shows what a connection is', async t => {
  const { connection } = await connected(t, ['--tools', '3'])
  const shown = inspect(connection)
  assert.match(shown, /^McpServerConnection \{/)
  for (const part of [
    "id: 'fixture'",
    `pid: ${connection.pid}`,
    "protocolVersion: '2025-11-25'",
    'tools: 3',
  ]) {
    assert.ok(shown.includes(part), shown)
  }
})
