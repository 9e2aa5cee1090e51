// Plain texts of up to 128 KB are read on the caller's own thread, too, where calls come one after the other
// (src/link/stdio/traffic.rs). They come in pieces, between which anything may happen.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filling } from '../tests/fixtures/filling.mjs'
import { connected, ended, failure, received, soon } from './support/fixture.mjs'
import { calledAlone, NEVER_HERE, readsHere } from './support/lone-calls.mjs'

const KB = 1024

/** Lengths of lines at which something is done another way: by whoever reads them, by the pipe, by V8. */
const LIMITS = [8, 32, 48, 64, 120, 128].map(limit => limit * KB)

/** What a line is longer than its text, whatever its id is; and a little more. */
const AROUND = 110

async function textOf(connection, bytes) {
  const { content } = await connection.callTool('big', { bytes })
  return content[0].text
}

async function comesWhole(connection, bytes) {
  assert.ok((await textOf(connection, bytes)) === filling(bytes), `${bytes} bytes`)
}

/** Keeps this thread for so many ms. */
function busy(ms) {
  const until = performance.now() + ms
  while (performance.now() < until);
}

/** Arguments of the tool `bytes`, for an answer with this text in pieces of so many bytes, or cut at one place. */
function pieces(text, size, ms, cut = Number.POSITIVE_INFINITY) {
  const answer = Buffer.from(
    `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":${JSON.stringify(text)}}]}}\n`,
  )
  const parts = []
  for (let from = 0; from < Math.min(cut, answer.length); from += size) {
    parts.push(answer.subarray(from, Math.min(from + size, cut)))
  }
  return { parts: parts.map(part => part.toString('base64')), ms }
}

test('texts are read on the caller’s thread up to 128 KB, and not what is longer or more than text', {
  skip: NEVER_HERE,
}, async t => {
  const { connection } = await connected(t)
  await calledAlone(connection, () => comesWhole(connection, 20_000))
  await calledAlone(connection, () => comesWhole(connection, 100_000))
  for (let time = 0; time < 40; time++) await comesWhole(connection, 200_000)
  assert.ok(!readsHere())
  await calledAlone(connection, () => comesWhole(connection, 100_000))
  const rows = Array.from({ length: 1_000 }, (_, id) => ({ id, name: `row ${id}` }))
  for (let time = 0; time < 40; time++) {
    assert.deepEqual((await connection.callTool('echo', { rows })).structuredContent, { rows })
  }
  assert.ok(!readsHere())
})

test('answers around every limit come whole, small ones and large ones in turns', async t => {
  const { connection } = await connected(t)
  await calledAlone(connection)
  for (const limit of LIMITS) {
    for (let bytes = limit - AROUND; bytes <= limit + 1; bytes++) await comesWhole(connection, bytes)
  }
  for (let round = 0; round < 30; round++) {
    for (const limit of [1, ...LIMITS, 200 * KB]) await comesWhole(connection, limit)
  }
  for (const limit of LIMITS) {
    const sizes = [1, limit, 2, 2 * limit, 3]
    const texts = await Promise.all(sizes.map(bytes => textOf(connection, bytes)))
    assert.deepEqual(
      texts.map(text => text.length),
      sizes,
    )
  }
  assert.equal(connection.diagnostics().unexpectedAnswers, 0)
})

test('a text in pieces, letters cut through, is put together', async t => {
  const { connection } = await connected(t)
  for (const [length, size] of [
    [9_000, 1_999],
    [100_000, 2_999],
    [100_000, 64 * KB + 1],
    [140_000, 29_999],
  ]) {
    const text = 'für 😀 '.repeat(length / 12)
    await calledAlone(connection, () => comesWhole(connection, 50_000))
    const { content } = await connection.callTool('bytes', pieces(text, size))
    assert.ok(content[0].text === text, `${length} in pieces of ${size}`)
  }
})

for (const [what, wait] of [
  ['idle', async () => {}],
  ['busy', async () => busy(200)],
]) {
  test(`a server that stalls in the middle of a line is heard when it goes on, while the caller’s thread is ${what}`, async t => {
    const { connection } = await connected(t)
    const text = filling(100_000)
    for (const size of [1_000, 30_000, 70_000]) {
      await calledAlone(connection, () => comesWhole(connection, 100_000))
      const { parts } = pieces(text, size)
      // Without the first ones this would take its time.
      const first = Buffer.concat(parts.slice(0, -1).map(part => Buffer.from(part, 'base64')))
      const call = connection.callTool('bytes', { parts: [first.toString('base64'), parts.at(-1)], ms: 100 })
      await wait()
      const { content } = await call
      assert.ok(content[0].text === text)
      await comesWhole(connection, 100_000)
    }
  })
}

test('calls time out and are aborted in the middle of their answers, which are late then', async t => {
  const { connection, log } = await connected(t)
  // Long enough for a stall of the machine not to be longer.
  const args = pieces(filling(100_000), 60_000, 2_000)
  await calledAlone(connection, () => comesWhole(connection, 100_000))
  const late = await failure(connection.callTool('bytes', args, { timeout: 100 }))
  assert.equal(late.code, 'ERR_MCP_TIMEOUT')
  // What the server says meanwhile would stand in the middle of that line.
  await soon(() => connection.diagnostics().unexpectedAnswers === 1)
  await calledAlone(connection, () => comesWhole(connection, 100_000))
  const controller = new AbortController()
  const aborted = failure(connection.callTool('bytes', args, controller.signal))
  const called = () => received(log, 'tools/call').filter(({ params }) => params.name === 'bytes').length
  await soon(() => called() === 2)
  controller.abort('enough')
  assert.equal(await aborted, 'enough')
  await soon(() => connection.diagnostics().unexpectedAnswers === 2)
  await calledAlone(connection, () => comesWhole(connection, 100_000))
  assert.equal(received(log, 'notifications/cancelled').length, 2)
})

test('a large answer that came in time counts, however long the caller’s thread was busy with something else', async t => {
  const { connection } = await connected(t)
  let isAnswered = false
  // A slow machine may take longer than the first ones.
  for (let timeout = 30; !isAnswered && timeout < 10_000; timeout *= 2) {
    await calledAlone(connection, () => comesWhole(connection, 100_000))
    const call = connection.callTool('big', { bytes: 100_000 }, { timeout })
    busy(3 * timeout)
    isAnswered = await call.then(
      () => true,
      ({ code }) => {
        assert.equal(code, 'ERR_MCP_TIMEOUT')
        return false
      },
    )
  }
  assert.ok(isAnswered)
})

test('a line that goes over the limit costs its own call, wherever that is', async t => {
  for (const maxMessageBytes of [20_000, 70_000, 130_000]) {
    const { connection } = await connected(t, [], { maxMessageBytes })
    for (const bytes of [maxMessageBytes, 2 * maxMessageBytes]) {
      await calledAlone(connection, () => comesWhole(connection, maxMessageBytes - AROUND))
      const error = await failure(textOf(connection, bytes))
      assert.equal(error.code, 'ERR_MCP_MESSAGE_TOO_LARGE')
    }
    await calledAlone(connection, () => comesWhole(connection, maxMessageBytes - AROUND))
  }
})

test('a server that leaves in the middle of a line rejects the call and ends the connection', async t => {
  const { connection } = await connected(t)
  await calledAlone(connection, () => comesWhole(connection, 100_000))
  const call = failure(connection.callTool('bytes', pieces(filling(100_000), 30_000, 2, 60_000)))
  const leaving = failure(connection.callTool('leave', { how: '3' }))
  assert.deepEqual([(await call).code, (await leaving).code], ['ERR_MCP_EXITED', 'ERR_MCP_EXITED'])
  assert.equal((await ended(connection)).reason, 'exited')
})
