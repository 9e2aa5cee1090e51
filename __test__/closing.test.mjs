import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { connected, ended, failure, logged, received, SERVER, soon, workflow } from './support/fixture.mjs'
import { gone, lives, seen } from './support/processes.mjs'

/** Short waits, for servers that ignore the end of their input, or SIGTERM, or both. */
const NO_END = { shutdown: { endOfInput: 100 } }
const NO_TERM = { shutdown: { terminate: 100 } }
const NEITHER = { shutdown: { endOfInput: 100, terminate: 100 } }

const pidOf = ({ content }) => Number(content[0].text)

test('close ends the input, waits for the server and tells how it ended', async t => {
  const { connection, log } = await connected(t)
  const server = seen(connection.pid)
  const info = await connection.close()
  assert.deepEqual(info, {
    reason: 'closed',
    exitCode: 0,
    signal: null,
    ended: 'end-of-input',
    survivors: [],
  })
  assert.equal(lives(server), false)
  assert.deepEqual(logged(log).at(-1), '#end')
  assert.ok(Object.isFrozen(info) && Object.isFrozen(info.survivors))
})

test('what a server writes to stderr as it leaves is heard before its end', async () => {
  const farewell = `${'x'.repeat(1_000)}\n`.repeat(50)
  const code = `
    process.on('exit', () => require('fs').writeSync(2, ${JSON.stringify(farewell)} + 'last words\\n'))
    import(${JSON.stringify(pathToFileURL(SERVER))})`
  const heard = []
  const connection = await workflow.connectMcpServer(
    { id: 'fixture', command: [process.execPath, '-e', code] },
    { onStderr: line => heard.push(line), onClose: () => heard.push('closed') },
  )
  assert.equal((await connection.close()).ended, 'end-of-input')
  assert.deepEqual(heard.slice(-2), ['last words', 'closed'])
})

test('close is idempotent: thrice in one tick, and again later', async t => {
  const heard = []
  const { connection } = await connected(t, [], { onClose: (...given) => heard.push(given) })
  const infos = await Promise.all([connection.close(), connection.close(), connection.close()])
  infos.push(await connection.close(), await connection.closed)
  for (const info of infos) assert.equal(info, infos[0])
  assert.deepEqual(heard, [[infos[0], 'fixture']])
})

test('calls that are pending when close is called reject at once, and later ones too', async t => {
  const { connection, log } = await connected(t, ['--ignore-end', '--ignore-term'], NEITHER)
  const order = []
  const pending = [connection.callTool('silent'), connection.request('tools/call', { name: 'silent' })]
  const errors = Promise.all(pending.map(failure)).finally(() => order.push('calls'))
  await soon(() => received(log, 'tools/call').length === 2)
  await connection.close().then(() => order.push('closed'))
  for (const error of await errors) {
    assert.equal(error.code, 'ERR_MCP_CLOSED')
    assert.equal(error.serverId, 'fixture')
  }
  assert.deepEqual(order, ['calls', 'closed'])
  const later = [
    connection.callTool('echo'),
    connection.callTool('no such tool'),
    connection.request('ping'),
    connection.listTools(),
  ]
  for (const call of later) assert.equal((await failure(call)).code, 'ERR_MCP_CLOSED')
})

test('a closed connection of a server without tools refuses a listing too', async t => {
  const { connection } = await connected(t, ['--no-tools'])
  await connection.close()
  assert.equal((await failure(connection.listTools())).code, 'ERR_MCP_CLOSED')
})

test('what a connection knows stays after close', async t => {
  const { connection } = await connected(t, ['--stderr', 'ready'])
  const { tools, pid } = connection
  await connection.close()
  assert.equal(connection.tools, tools)
  assert.equal(connection.pid, pid)
  assert.equal(connection.serverInfo.name, 'fixture')
  assert.equal(connection.stderr(), 'ready')
  assert.equal(connection.diagnostics().pendingRequests, 0)
  assert.equal(connection.ref(), connection)
  assert.equal(connection.unref(), connection)
})

test('a server that ignores the end of its input is terminated', async t => {
  const { connection } = await connected(t, ['--ignore-end'], NO_END)
  const server = seen(connection.pid)
  const info = await connection.close()
  assert.deepEqual(info, {
    reason: 'closed',
    exitCode: null,
    signal: 'SIGTERM',
    ended: 'terminate',
    survivors: [],
  })
  assert.equal(lives(server), false)
})

test('a server that ignores SIGTERM too is killed', async t => {
  const { connection } = await connected(t, ['--ignore-end', '--ignore-term'], NEITHER)
  const server = seen(connection.pid)
  const info = await connection.close()
  assert.deepEqual(info, {
    reason: 'closed',
    exitCode: null,
    signal: 'SIGKILL',
    ended: 'kill',
    survivors: [],
  })
  assert.equal(lives(server), false)
})

test('close does not wait for a write to a server that reads no more', async t => {
  const { connection } = await connected(t, [], NO_END)
  await connection.callTool('deafen')
  const server = seen(connection.pid)
  // More than any pipe holds.
  const call = failure(connection.callTool('echo', { text: 'x'.repeat(8 << 20) }))
  const small = failure(connection.callTool('echo'))
  const info = await connection.close()
  assert.equal((await call).code, 'ERR_MCP_CLOSED')
  assert.equal((await small).code, 'ERR_MCP_CLOSED')
  assert.equal(info.ended, 'terminate')
  assert.equal(lives(server), false)
})

test('a call to a server that reads no more times out; one that was not written yet is taken back, not cancelled', async t => {
  const { connection, log } = await connected(t, [], NO_END)
  await connection.callTool('deafen')
  const large = failure(connection.callTool('echo', { text: 'x'.repeat(8 << 20) }, { timeout: 200 }))
  const queued = failure(connection.callTool('echo', { queued: true }, { timeout: 100 }))
  assert.equal((await queued).code, 'ERR_MCP_TIMEOUT')
  assert.equal((await large).code, 'ERR_MCP_TIMEOUT')
  assert.equal(received(log, 'tools/call').length, 1)
})

test('a grandchild that ignores SIGTERM is gone with the server', async t => {
  const { connection } = await connected(t, [], NO_TERM)
  const grandchild = seen(pidOf(await connection.callTool('grandchild')))
  assert.ok(lives(grandchild))
  const info = await connection.close()
  assert.equal(info.ended, 'kill')
  assert.equal(info.exitCode, 0)
  assert.deepEqual(info.survivors, [])
  assert.equal(lives(grandchild), false)
})

test('a grandchild of a server that exits by itself is gone too', async t => {
  const { connection } = await connected(t, [], NO_TERM)
  const grandchild = seen(pidOf(await connection.callTool('grandchild')))
  await failure(connection.callTool('leave', { how: '0' }))
  const info = await ended(connection)
  assert.deepEqual([info.reason, info.exitCode, info.ended], ['exited', 0, 'kill'])
  assert.equal(lives(grandchild), false)
})

test('a grandchild that holds the output open does not hold up the end of its server', async t => {
  const { connection, log } = await connected(t, [], NO_TERM)
  const grandchild = seen(pidOf(await connection.callTool('grandchild', { holds: true })))
  const call = failure(connection.callTool('silent'))
  await soon(() => received(log, 'tools/call').length === 2)
  process.kill(connection.pid, 'SIGKILL')
  assert.deepEqual((await call).details, { exitCode: null, signal: 'SIGKILL', stderr: '' })
  assert.equal((await ended(connection)).reason, 'exited')
  assert.equal(lives(grandchild), false)
})

test('a server that is ended from outside: pending calls reject with the signal, and closed tells of it', async t => {
  const { connection, log } = await connected(t)
  const call = failure(connection.callTool('silent'))
  await soon(() => received(log, 'tools/call').length === 1)
  process.kill(connection.pid, 'SIGKILL')
  const error = await call
  assert.equal(error.code, 'ERR_MCP_EXITED')
  assert.deepEqual(error.details, { exitCode: null, signal: 'SIGKILL', stderr: '' })
  const info = await ended(connection)
  assert.deepEqual(info, {
    reason: 'exited',
    exitCode: null,
    signal: 'SIGKILL',
    ended: 'by-itself',
    survivors: [],
  })
})

for (const [how, exitCode, signal] of [
  ['0', 0, null],
  ['7', 7, null],
  ['SIGABRT', null, 'SIGABRT'],
]) {
  test(`a server that leaves in mid-call (${how}) rejects all that is pending, with the end of its stderr`, async t => {
    const heard = []
    const { connection, log } = await connected(t, [], { onClose: (...given) => heard.push(given) })
    const { tools } = connection
    const pending = Array.from({ length: 5 }, () => failure(connection.callTool('silent')))
    await soon(() => received(log, 'tools/call').length === 5)
    pending.push(failure(connection.callTool('leave', { how, stderr: 'first line\nout of memory' })))
    for (const error of await Promise.all(pending)) {
      assert.equal(error.code, 'ERR_MCP_EXITED')
      assert.equal(error.serverId, 'fixture')
      assert.deepEqual(error.details, { exitCode, signal, stderr: 'first line\nout of memory' })
      assert.match(error.message, /out of memory/)
    }
    const info = await ended(connection)
    assert.deepEqual(info, { reason: 'exited', exitCode, signal, ended: 'by-itself', survivors: [] })
    assert.deepEqual(heard, [[info, 'fixture']])
    for (const later of [connection.callTool('echo'), connection.request('ping'), connection.listTools()]) {
      const error = await failure(later)
      assert.equal(error.code, 'ERR_MCP_CLOSED')
      assert.match(error.message, /^The connection to fixture is closed: it .*out of memory/)
      assert.deepEqual([error.cause.code, error.cause.details.exitCode], ['ERR_MCP_EXITED', exitCode])
    }
    assert.equal(await connection.close(), info)
    assert.equal(connection.tools, tools)
    assert.deepEqual(heard.length, 1)
  })
}

test('a server that closes its output and stays has ended the session', async t => {
  const { connection } = await connected(t)
  const server = seen(connection.pid)
  const error = await failure(connection.callTool('close', { which: 'output' }))
  assert.equal(error.code, 'ERR_MCP_EXITED')
  assert.deepEqual([error.details.exitCode, error.details.signal], [null, null])
  assert.match(error.message, /stdout/)
  assert.equal((await ended(connection)).reason, 'protocol-error')
  assert.equal(lives(server), false)
})

test('a server that closes its input and stays has ended the session', async t => {
  const { connection } = await connected(t, [], NO_END)
  const server = seen(connection.pid)
  await connection.callTool('close', { which: 'input' })
  const errors = await Promise.all([
    failure(connection.callTool('silent')),
    failure(connection.callTool('echo')),
  ])
  for (const error of errors) assert.equal(error.code, 'ERR_MCP_EXITED')
  assert.match(errors[0].message, /stdin/)
  assert.equal((await ended(connection)).reason, 'protocol-error')
  assert.equal(lives(server), false)
})

test('an answer that was written before the exit still arrives', async t => {
  const { connection } = await connected(t)
  const answered = connection.callTool('big', { bytes: 3_000_000 })
  const left = failure(connection.callTool('leave', { how: '0' }))
  assert.equal((await answered).content[0].text.length, 3_000_000)
  assert.equal((await left).code, 'ERR_MCP_EXITED')
})

test('Symbol.asyncDispose closes, where the runtime has it', { skip: !Symbol.asyncDispose }, async t => {
  const { connection } = await connected(t)
  const server = seen(connection.pid)
  assert.equal(await connection[Symbol.asyncDispose](), undefined)
  assert.equal((await connection.closed).reason, 'closed')
  await gone(server)
})

test('a callback may close the connection, or call it', async t => {
  const { connection } = await connected(t, [], {
    onStderr: () => connection.callTool('echo').then(({ isError }) => heard.push(isError)),
    onClose: () => connection.close().then(({ reason }) => heard.push(reason)),
  })
  const heard = []
  await connection.callTool('say', { stderr: ['a line'] })
  await soon(() => heard.length === 1)
  const onProgress = () => connection.close()
  const error = await failure(connection.callTool('sleep', { ms: 20_000, progress: 100 }, { onProgress }))
  assert.equal(error.code, 'ERR_MCP_CLOSED')
  await soon(() => heard.length === 2)
  assert.deepEqual(heard, [false, 'closed'])
})

test('close in the middle of many calls settles every one of them', async t => {
  const { connection } = await connected(t)
  const controller = new AbortController()
  const calls = Array.from({ length: 300 }, (_, index) =>
    [
      () => connection.callTool('echo', { index }),
      () => connection.callTool('silent', {}, { timeout: 1 + (index % 20) }),
      () => connection.callTool('silent', {}, controller.signal),
      () => connection.listTools(),
      () => connection.request('ping'),
    ][index % 5](),
  )
  const settled = Promise.allSettled(calls)
  await calls[0]
  controller.abort('enough')
  await connection.close()
  for (const { status, reason } of await settled) {
    if (status === 'fulfilled' || reason === 'enough') continue
    assert.ok(['ERR_MCP_CLOSED', 'ERR_MCP_TIMEOUT'].includes(reason.code), reason)
  }
})
