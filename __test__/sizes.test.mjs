// However much a server writes, or does not read: bounded in memory and in time. Each in a host of its own, whose memory is its own.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filling } from '../tests/fixtures/filling.mjs'
import { connected, PATIENCE } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'

const MIB = 1 << 20
const IMPORTS = `
  import { failure, fixture, soon } from ${JSON.stringify(new URL('support/fixture.mjs', import.meta.url))}
  const MIB = 1 << 20
  // The most it ever was, so that nothing can hide between two looks.
  const peak = () => process.resourceUsage().maxRSS * 1024
`

/** What a host says that ends by itself. */
async function saidBy(code, flags = []) {
  const { child, ended } = host(IMPORTS + code, { flags })
  const timer = setTimeout(() => child.kill('SIGKILL'), 6 * PATIENCE)
  const { code: exitCode, signal, said, stderr } = await ended.finally(() => clearTimeout(timer))
  assert.deepEqual([exitCode, signal, stderr], [0, null, ''])
  return said
}

for (const mebibytes of [1, 16, 60]) {
  test(`a result of ${mebibytes} MiB arrives whole`, async t => {
    const { connection } = await connected(t, [], {}, { timeout: 120_000 })
    const bytes = mebibytes * MIB
    const { content } = await connection.callTool('big', { bytes })
    // Not assert.equal, whose message would hold both.
    assert.ok(content[0].text === filling(bytes))
    assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })
  })
}

test('arguments of 16 MiB arrive whole, and so does their echo', async t => {
  const { connection } = await connected(t, [], {}, { timeout: 120_000 })
  const text = filling(16 * MIB)
  assert.ok((await connection.callTool('echo', { text })).structuredContent.text === text)
})

test('a line without end costs no more than three times the limit, and its server', async () => {
  const [{ codes, reason, growth }] = await saidBy(`
    const { definition } = fixture()
    const connection = await workflow.connectMcpServer(definition, { maxMessageBytes: 8 * MIB })
    await connection.callTool('echo')
    const before = peak()
    const calls = [connection.callTool('silent'), connection.callTool('endless', { bytes: 64 * MIB })]
    const codes = await Promise.all(calls.map(async call => (await failure(call)).code))
    const { reason } = await connection.close()
    say({ codes, reason, growth: peak() - before })
  `)
  assert.deepEqual(codes, ['ERR_MCP_MESSAGE_TOO_LARGE', 'ERR_MCP_MESSAGE_TOO_LARGE'])
  assert.equal(reason, 'protocol-error')
  assert.ok(growth < 3 * 8 * MIB, `it grew by ${growth} bytes`)
})

test('messages over the limit are not kept while they go by', async () => {
  const [{ codes, growth }] = await saidBy(`
    const { definition } = fixture()
    const connection = await workflow.connectMcpServer(definition, { maxMessageBytes: 8 * MIB })
    await connection.callTool('echo')
    const before = peak()
    const codes = []
    for (const where of ['first', 'last']) {
      codes.push((await failure(connection.callTool('big', { bytes: 30 * MIB, where }))).code)
    }
    await connection.callTool('echo')
    await connection.close()
    say({ codes, growth: peak() - before })
  `)
  assert.deepEqual(codes, ['ERR_MCP_MESSAGE_TOO_LARGE', 'ERR_MCP_MESSAGE_TOO_LARGE'])
  assert.ok(growth < 3 * 8 * MIB, `it grew by ${growth} bytes`)
})

for (const [kind, listener] of [
  ['that nobody listens to', ''],
  ['that are listened to', 'onLog() {}'],
]) {
  test(`a flood of notifications ${kind} costs no memory and holds up no answer`, async () => {
    const [{ answer, growth }] = await saidBy(`
      const connection = await workflow.connectMcpServer(fixture().definition, { ${listener} })
      await connection.callTool('flood', { count: 1_000, bytes: 1_000 })
      const before = peak()
      const call = connection.callTool('flood', { count: 60_000, bytes: 1_000 })
      const end = Date.now() + 500
      while (Date.now() < end);
      const { content } = await call
      await connection.callTool('echo')
      await connection.close()
      say({ answer: content[0].text, growth: peak() - before })
    `)
    assert.equal(answer, '60000')
    assert.ok(growth < 40 * MIB, `it grew by ${growth} bytes`)
  })
}

test('a flood of progress costs no memory, and the last of it is heard before the result', async () => {
  const [{ heard, growth }] = await saidBy(`
    const connection = await workflow.connectMcpServer(fixture().definition)
    const flood = async count => {
      const heard = []
      const onProgress = ({ progress }) => heard.push(progress)
      const args = { count, bytes: 1_000, method: 'notifications/progress' }
      const call = connection.callTool('flood', args, { onProgress })
      const end = Date.now() + 500
      while (Date.now() < end);
      await call
      return heard
    }
    await flood(1_000)
    const before = peak()
    const heard = await flood(60_000)
    await connection.close()
    say({ heard: [heard.at(-1), heard.every((value, at) => at === 0 || value > heard[at - 1])], growth: peak() - before })
  `)
  assert.deepEqual(heard, [60_000, true])
  assert.ok(growth < 40 * MIB, `it grew by ${growth} bytes`)
})

test('a flood on stderr of 64 MiB costs no memory and holds up no answer', async () => {
  const [{ kept, growth }] = await saidBy(`
    const connection = await workflow.connectMcpServer(fixture().definition)
    const shout = times => connection.callTool('say', { stderr: ['x'.repeat(MIB)], times })
    await shout(4)
    const before = peak()
    for (let call = 0; call < 5; call++) await shout(13)
    const kept = connection.stderr().length
    await connection.close()
    say({ kept, growth: peak() - before })
  `)
  assert.ok(kept <= 64 * 1024)
  assert.ok(growth < 40 * MIB, `it grew by ${growth} bytes`)
})

test('a server that reads no more costs what waits for it, and that only until it times out', async () => {
  const [{ codes, growth, pending }] = await saidBy(
    `
    const shutdown = { endOfInput: 100, terminate: 10_000 }
    const connection = await workflow.connectMcpServer(fixture().definition, { shutdown })
    await connection.callTool('deafen')
    const text = 'x'.repeat(MIB)
    const round = async () => {
      const calls = Array.from({ length: 8 }, () => failure(connection.callTool('echo', { text }, { timeout: 200 })))
      const errors = await Promise.all(calls)
      gc()
      return errors.map(({ code }) => code)
    }
    for (let again = 0; again < 3; again++) await round()
    const before = process.memoryUsage().rss
    const codes = new Set()
    for (let again = 0; again < 12; again++) for (const code of await round()) codes.add(code)
    const growth = process.memoryUsage().rss - before
    const pending = connection.diagnostics().pendingRequests
    await connection.close()
    say({ codes: [...codes], growth, pending })
  `,
    ['--expose-gc'],
  )
  assert.deepEqual([codes, pending], [['ERR_MCP_TIMEOUT'], 0])
  // 96 MiB were to be sent.
  assert.ok(growth < 32 * MIB, `it grew by ${growth} bytes`)
})
