import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { failure, fixture, logged, loggedPid, received, soon, workflow } from './support/fixture.mjs'
import { gone, lives, seen } from './support/processes.mjs'

const { connectMcpServer, connectMcpServers } = workflow

/** One fixture server for each list of switches: `s0`, `s1` … */
function fixtures(...switches) {
  const all = switches.map((given, index) => fixture(given, { id: `s${index}` }))
  return { definitions: all.map(({ definition }) => definition), logs: all.map(({ log }) => log) }
}

async function goneAll(logs) {
  for (const log of logs) {
    const pid = loggedPid(log)
    const server = pid && seen(pid)
    if (server) await gone(server)
  }
}

test('a group holds its connections in the order of the definitions, whoever was first', async t => {
  const { definitions, logs } = fixtures(['--slow', '400'], [], ['--slow', '100'])
  const group = await connectMcpServers(definitions)
  t.after(() => group.close())
  assert.deepEqual(
    group.connections.map(({ id }) => id),
    ['s0', 's1', 's2'],
  )
  assert.deepEqual(
    group.connections.map(({ pid }) => pid),
    logs.map(loggedPid),
  )
  assert.deepEqual(group.failures, [])
  assert.equal(group.get('s1'), group.connections[1])
  assert.equal(group.get('unknown'), undefined)
  assert.equal(group.get('__proto__'), undefined)
  assert.ok(Object.isFrozen(group.connections) && Object.isFrozen(group.failures))
})

test('servers are started side by side', async t => {
  const { definitions, logs } = fixtures(['--silent'], ['--silent'], ['--silent'])
  const controller = new AbortController()
  const connecting = failure(connectMcpServers(definitions, { signal: controller.signal }))
  t.after(() => controller.abort())
  // None of them answers, so a start that waited for another one's would not come.
  await soon(() => logs.every(log => received(log, 'initialize').length === 1))
  controller.abort('seen enough')
  assert.equal(await connecting, 'seen enough')
  assert.deepEqual(getEventListeners(controller.signal, 'abort'), [])
  await goneAll(logs)
})

test('each call goes to its own server', async t => {
  const { definitions, logs } = fixtures([], [])
  const group = await connectMcpServers(definitions)
  t.after(() => group.close())
  await Promise.all(group.connections.map(connection => connection.callTool('echo', { to: connection.id })))
  for (const [index, log] of logs.entries()) {
    assert.deepEqual(
      received(log, 'tools/call').map(({ params }) => params.arguments),
      [{ to: `s${index}` }],
    )
  }
})

test('by default one failure rejects with its error, and the others are gone', async () => {
  const { definitions, logs } = fixtures([], ['--slow', '300', '--exit-at', 'tools/list:5'], ['--silent'])
  const error = await failure(connectMcpServers(definitions))
  assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
  assert.equal(error.serverId, 's1')
  assert.equal(error.details.exitCode, 5)
  for (const log of logs) assert.equal(logged(log).filter(line => line.startsWith('#pid')).length, 1)
  await goneAll(logs)
})

test('a server that was connected before another one failed hears the end of its input', async () => {
  const { definitions, logs } = fixtures([], ['--slow', '2000', '--exit-at', 'tools/list:5'])
  await failure(connectMcpServers(definitions))
  assert.equal(logged(logs[0]).at(-1), '#end')
  await goneAll(logs)
})

test('a command that cannot be started ends the others too', async () => {
  const { definitions, logs } = fixtures([], ['--silent'])
  const error = await failure(connectMcpServers([...definitions, { id: 'gone', command: ['/nonexistent'] }]))
  assert.equal(error.code, 'ERR_MCP_SPAWN')
  assert.equal(error.serverId, 'gone')
  await goneAll(logs)
})

test('with partial a group holds what connected and what failed, each in order', async t => {
  const { definitions } = fixtures(['--exit-at', 'initialize:1'], [], ['--tools', '257'], ['--slow', '200'])
  const group = await connectMcpServers(definitions, { partial: true })
  t.after(() => group.close())
  assert.deepEqual(
    group.connections.map(({ id }) => id),
    ['s1', 's3'],
  )
  assert.deepEqual(
    group.failures.map(({ id, error }) => [id, error.serverId, error.code]),
    [
      ['s0', 's0', 'ERR_MCP_HANDSHAKE'],
      ['s2', 's2', 'ERR_MCP_TOO_MANY_TOOLS'],
    ],
  )
  assert.equal(group.get('s0'), undefined)
  assert.equal((await group.get('s3').callTool('echo', { a: 1 })).structuredContent.a, 1)
})

test('with partial a group may hold failures alone', async () => {
  const { definitions } = fixtures(['--exit-at', 'start:1'], ['--exit-at', 'start:2'])
  const group = await connectMcpServers(definitions, { partial: true })
  assert.deepEqual(group.connections, [])
  assert.deepEqual(
    group.failures.map(({ error }) => error.details.exitCode),
    [1, 2],
  )
  await group.close()
})

test('an abort ends a partial group too', async () => {
  const { definitions, logs } = fixtures([], ['--silent'])
  const controller = new AbortController()
  const connecting = failure(connectMcpServers(definitions, { partial: true, signal: controller.signal }))
  await soon(
    () => received(logs[0], 'tools/list').length === 1 && received(logs[1], 'initialize').length === 1,
  )
  const reason = new Error('enough')
  controller.abort(reason)
  assert.equal(await connecting, reason)
  await goneAll(logs)
})

test('an abort beforehand starts nothing', async () => {
  const { definitions, logs } = fixtures([], [])
  assert.equal(await failure(connectMcpServers(definitions, { signal: AbortSignal.abort(null) })), null)
  await (await connectMcpServer(fixture().definition)).close()
  for (const log of logs) assert.deepEqual(logged(log), [])
})

test('close closes all of them, side by side', async () => {
  const { definitions } = fixtures([], ['--ignore-end'], ['--ignore-end', '--ignore-term'])
  const group = await connectMcpServers(definitions, { shutdown: { endOfInput: 100, terminate: 100 } })
  const servers = group.connections.map(({ pid }) => seen(pid))
  assert.equal(await group.close(), undefined)
  await group.close()
  assert.deepEqual(servers.map(lives), [false, false, false])
  const infos = await Promise.all(group.connections.map(({ closed }) => closed))
  assert.deepEqual(
    infos.map(({ reason, survivors }) => [reason, survivors]),
    Array(3).fill(['closed', []]),
  )
  assert.equal(infos[2].ended, 'kill')
})

test('Symbol.asyncDispose closes a group, where the runtime has it', {
  skip: !Symbol.asyncDispose,
}, async () => {
  const group = await connectMcpServers(fixtures([], []).definitions)
  await group[Symbol.asyncDispose]()
  for (const { closed } of group.connections) assert.equal((await closed).reason, 'closed')
})

test('callbacks are told whose news they hear', async t => {
  const closed = []
  const { definitions } = fixtures(['--stderr', 'from s0'], ['--stderr', 'from s1'])
  const lines = []
  const group = await connectMcpServers(definitions, {
    onStderr: (...heard) => lines.push(heard),
    onClose: (_, id) => closed.push(id),
  })
  t.after(() => group.close())
  await soon(() => lines.length === 2)
  assert.deepEqual(lines.sort(), [
    ['from s0', 's0'],
    ['from s1', 's1'],
  ])
  await group.close()
  assert.deepEqual(closed.sort(), ['s0', 's1'])
})

test('eight servers are allowed; none, and nine, are refused, and nothing is started', async t => {
  const none = await failure(connectMcpServers([]))
  assert.equal(none.code, 'ERR_MCP_INVALID_DEFINITION')
  assert.equal(none.details.path, 'servers')
  const { definitions, logs } = fixtures(...Array(9).fill([]))
  const nine = await failure(connectMcpServers(definitions))
  assert.equal(nine.code, 'ERR_MCP_TOO_MANY_SERVERS')
  assert.deepEqual(nine.details, { limit: 8, count: 9 })
  const group = await connectMcpServers(definitions.slice(0, 8))
  t.after(() => group.close())
  assert.equal(group.connections.length, 8)
  assert.deepEqual(logged(logs[8]), [])
})

test('two definitions of one id, and a fault in any definition, are refused before anything starts', async () => {
  const { definitions, logs } = fixtures([], [])
  const twice = await failure(connectMcpServers([definitions[0], { ...definitions[1], id: 's0' }]))
  assert.equal(twice.code, 'ERR_MCP_INVALID_DEFINITION')
  assert.equal(twice.details.path, 'servers[1].id')
  const fault = await failure(connectMcpServers([definitions[0], { ...definitions[1], timeout: 5 }]))
  assert.equal(fault.details.path, 'servers[1].timeout')
  for (const log of logs) assert.deepEqual(logged(log), [])
})
