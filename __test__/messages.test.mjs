import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  connected,
  ended,
  failure,
  fixture,
  loggedPid,
  PATIENCE,
  received,
  soon,
  workflow,
} from './support/fixture.mjs'
import { gone, seen } from './support/processes.mjs'

const LIMIT = 100_000
const length = ({ content }) => content[0].text.length

for (const where of ['first', 'middle', 'last']) {
  test(`a message over the limit rejects its own call only, with the id ${where}`, async t => {
    const { connection } = await connected(t, [], { maxMessageBytes: LIMIT })
    // In the middle it stands between two texts.
    const fits = where === 'middle' ? LIMIT / 2 - 200 : LIMIT - 200
    const other = connection.callTool('sleep', { ms: 300 })
    const error = await failure(connection.callTool('big', { bytes: LIMIT + 1, where }))
    assert.equal(error.code, 'ERR_MCP_MESSAGE_TOO_LARGE')
    assert.equal(error.serverId, 'fixture')
    assert.deepEqual(error.details, { limit: LIMIT })
    assert.match(error.message, /maxMessageBytes/)
    assert.equal((await other).content[0].text, 'slept 300')
    assert.equal(length(await connection.callTool('big', { bytes: fits, where })), fits)
    assert.equal((await failure(connection.callTool('big', { bytes: 3 * fits, where }))).code, error.code)
    assert.equal(length(await connection.callTool('big', { bytes: 10, where })), 10)
  })
}

test('ids inside the message are not taken for its own', async t => {
  const { connection } = await connected(t, [], { maxMessageBytes: LIMIT })
  const waiting = connection.callTool('sleep', { ms: 500 })
  const nested = `"result":{"id":1,"text":"\\"id\\":2,}{","list":[{"id":3}],"fill":"${'x'.repeat(LIMIT)}"}`
  for (const line of [
    `{"jsonrpc":"2.0",${nested},"id":$ID}`,
    `{"id":$ID,${nested}}`,
    `{${nested}, "id" : "$ID" }`,
  ]) {
    const error = await failure(connection.callTool('raw', { lines: [line] }))
    assert.equal(error.code, 'ERR_MCP_MESSAGE_TOO_LARGE')
  }
  assert.equal((await waiting).content[0].text, 'slept 500')
})

test('a message over the limit that answers nobody closes the connection', async t => {
  const heard = []
  const { connection } = await connected(t, [], { maxMessageBytes: LIMIT, onClose: info => heard.push(info) })
  const other = failure(connection.callTool('silent'))
  const error = await failure(connection.callTool('big', { bytes: LIMIT + 1, where: 'none' }))
  assert.equal(error.code, 'ERR_MCP_MESSAGE_TOO_LARGE')
  assert.equal(error.serverId, 'fixture')
  assert.equal((await other).code, 'ERR_MCP_MESSAGE_TOO_LARGE')
  const info = await ended(connection)
  assert.equal(info.reason, 'protocol-error')
  assert.deepEqual(heard, [info])
})

test('a line without end closes the connection', async t => {
  const { connection } = await connected(t, [], { maxMessageBytes: LIMIT })
  const error = await failure(connection.callTool('big', { bytes: 5 * LIMIT }))
  assert.equal(error.code, 'ERR_MCP_MESSAGE_TOO_LARGE')
  assert.equal((await ended(connection)).reason, 'protocol-error')
})

for (const switches of [
  ['--instructions', 'x'.repeat(LIMIT)],
  ['--tools', '200'],
]) {
  test(`an answer over the limit fails the start, and the process is gone: ${switches[0]}`, async () => {
    const { definition, log } = fixture(switches)
    const error = await failure(workflow.connectMcpServer(definition, { maxMessageBytes: 10_000 }))
    assert.equal(error.code, 'ERR_MCP_MESSAGE_TOO_LARGE')
    assert.equal(error.serverId, 'fixture')
    assert.deepEqual(error.details, { limit: 10_000 })
    const server = seen(loggedPid(log))
    if (server) await gone(server)
  })
}

test('a large result of many kinds of characters is whole', async t => {
  const { connection } = await connected(t)
  const text = 'ä漢😀"\\\n'.repeat(200_000)
  const { content } = await connection.callTool('echo', { text })
  assert.equal(JSON.parse(content[0].text).text, text)
})

test('noise in the middle of a session is skipped, and its samples are bounded', async t => {
  const { connection } = await connected(t)
  const lines = [
    ...Array.from({ length: 50 }, (_, index) => `debug ${index} ${'x'.repeat(1_000)}`),
    '{"half":',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}',
  ]
  await connection.callTool('raw', { lines })
  const { skippedLines, skippedLineSamples } = connection.diagnostics()
  assert.equal(skippedLines, 51)
  assert.ok(skippedLineSamples.length <= 8)
  for (const sample of skippedLineSamples) assert.ok(sample.length <= 210)
  assert.match(skippedLineSamples[0], /^debug 0 x/)
})

test('requests of the server in mid-call are answered as for a client without capabilities', async t => {
  const { connection } = await connected(t)
  const lines = [
    '{"jsonrpc":"2.0","id":"a","method":"ping"}',
    '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"own":true}}',
  ]
  assert.equal((await connection.callTool('raw', { lines })).own, true)
})

test('stderr is heard line by line, and its end is kept', async t => {
  const heard = []
  const onStderr = (line, serverId) => heard.push([line, serverId])
  const { connection } = await connected(t, ['--stderr', 'starting'], { onStderr })
  await connection.callTool('say', { stderr: ['one', '', 'two ü'] })
  await soon(() => heard.length >= 4)
  assert.deepEqual(heard, [
    ['starting', 'fixture'],
    ['one', 'fixture'],
    ['', 'fixture'],
    ['two ü', 'fixture'],
  ])
  assert.equal(connection.stderr(), 'starting\none\n\ntwo ü')
})

test('a flood on stderr never blocks the server, and at most 64 KiB of it are kept', async t => {
  const { connection } = await connected(t, ['--flood', '3000000'])
  await connection.callTool('say', { stderr: ['the last line'] })
  await soon(() => connection.stderr().endsWith('the last line'))
  const kept = connection.stderr()
  assert.ok(Buffer.byteLength(kept) <= 64 * 1024)
  assert.match(kept, /^flood/, 'it begins with a whole line')
  assert.ok(connection.diagnostics().stderrBytes > 2_900_000)
})

test('lines that a busy host cannot take are dropped and counted, and the newest stay in stderr()', async t => {
  let heard = 0
  const onStderr = () => {
    heard += 1
  }
  const { connection } = await connected(t, [], { onStderr })
  const saying = connection.callTool('say', {
    stderr: Array.from({ length: 20_000 }, (_, index) => `line ${index}`),
  })
  // Hears nothing, as long as this thread is busy.
  const deadline = Date.now() + PATIENCE
  while (!connection.stderr().endsWith('line 19999') && Date.now() < deadline);
  assert.ok(connection.stderr().endsWith('line 19999'))
  await saying
  const dropped = connection.diagnostics().droppedNotifications
  assert.ok(dropped > 0)
  await soon(() => heard + dropped === 20_000)
})

test('log messages are heard as they were sent', async t => {
  const heard = []
  const { connection } = await connected(t, [], {
    onLog: (message, serverId) => heard.push([message, serverId]),
  })
  const log = [
    { level: 'warning', logger: 'db', data: { rows: [1, null] } },
    { level: 'info', data: 'text' },
    { level: 'info', data: 'cut in the middle of an emoji: \ud83d' },
  ]
  await connection.callTool('say', { log })
  await soon(() => heard.length === log.length)
  log[2].data = 'cut in the middle of an emoji: \ufffd'
  assert.deepEqual(
    heard,
    log.map(message => [message, 'fixture']),
  )
})

test('diagnostics count what went to and fro', async t => {
  const { connection } = await connected(t)
  const before = connection.diagnostics()
  const pending = connection.callTool('sleep', { ms: 200 })
  assert.equal(connection.diagnostics().pendingRequests, 1)
  await pending
  await connection.callTool('echo', { text: 'x'.repeat(1_000) })
  const after = connection.diagnostics()
  assert.equal(after.pendingRequests, 0)
  assert.equal(after.requests - before.requests, 2)
  assert.ok(after.bytesSent - before.bytesSent > 1_000)
  assert.ok(after.bytesReceived - before.bytesReceived > 2_000)
  assert.ok(after.handshakeMs > 0)
  assert.deepEqual(
    [after.skippedLines, after.unexpectedAnswers, after.unknownMessages, after.stderrBytes],
    [0, 0, 0, 0],
  )
  for (const value of Object.values(after)) assert.notEqual(value, undefined)
})

test('a connected server that asks to be initialized is refused, and the connection lives on', async t => {
  const { connection, log } = await connected(t)
  const lines = [
    '{"jsonrpc":"2.0","id":"mine","method":"initialize","params":{}}',
    '{"jsonrpc":"2.0","id":$ID,"result":{}}',
  ]
  await connection.callTool('raw', { lines })
  assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })
  const answer = await soon(() => received(log).find(({ id }) => id === 'mine'))
  assert.equal(answer.error.code, -32601)
})
