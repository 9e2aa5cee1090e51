// The optional stream of a legacy session, on which a server speaks by itself: refused, ended, asked for again.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { soon } from './support/fixture.mjs'
import { cut, html, httpServer, inTurn, MODERN, status } from './support/http-server.mjs'
import { clientOf, text } from './support/project.mjs'

const hi = { text: 'hi' }

const ended = exchange => exchange.stream().end()

// These wait for what must not happen; they do so together.
const together = { concurrency: true }

describe('where the stream is refused', together, () => {
  for (const [what, GET] of [
    ['405', status(405)],
    ['404', status(404)],
    ['406', status(406)],
    ['400', status(400)],
    ['501', status(501)],
    ['a page of HTML', html(200)],
  ]) {
    test(`with ${what}, calls work and nobody insists`, async t => {
      const server = await httpServer(t, { GET })
      const { client } = clientOf(t, server)
      assert.equal(text(await client.call('echo', hi)), 'hi')
      await soon(() => server.seen('GET').length >= 1, 'it asks for the stream')
      await sleep(2_000)
      assert.ok(server.seen('GET').length <= 2, `it asked ${server.seen('GET').length} times in 2 s`)
      assert.equal(text(await client.call('echo', hi)), 'hi')
      assert.equal(server.seen('initialize').length, 1)
    })
  }
})

describe('gaps grow', together, () => {
  for (const [what, GET] of [
    ['ends at once', ended],
    ['is cut at once', exchange => exchange.stream().cut()],
    ['works for one moment, then not at all', inTurn(ended, cut)],
  ]) {
    test(`where the stream ${what}, and after closing nobody asks`, async t => {
      const server = await httpServer(t, { GET })
      const { project, client } = clientOf(t, server)
      await client.call('echo', hi)
      await soon(() => server.seen('GET').length >= 3, 'it asks again')
      const [first, second, third] = server.seen('GET').map(({ at }) => at)
      // From the arrival of one request, before its answer, to that of the next: a slow machine only makes a gap longer.
      assert.ok(second - first >= 400, `first gap: ${second - first} ms`)
      assert.ok(third - second >= 800, `second gap: ${third - second} ms`)
      await project.close()
      await nobodyComes(server)
    })
  }

  test('and a server that wants to be asked within a millisecond is not asked in a loop', async t => {
    const server = await httpServer(t, {
      GET: exchange => {
        const stream = exchange.stream()
        stream.send(undefined, { id: 'x', retry: 1 })
        stream.end()
      },
    })
    const { client } = clientOf(t, server)
    await client.call('echo', hi)
    await soon(() => server.seen('GET').length >= 2, 'it asks again')
    await sleep(2_000)
    assert.ok(server.seen('GET').length <= 20, `it asked ${server.seen('GET').length} times in 2 s`)
  })
})

/** Not even when the server is back: reconnects that were planned are gone. */
async function nobodyComes(server) {
  await soon(() => server.open === 0, 'no connection is left')
  const asked = server.requests.length
  await server.stop()
  await server.start()
  await sleep(5_000)
  assert.equal(server.requests.length, asked)
  assert.equal(server.open, 0)
}

test('closing ends the stream', async t => {
  const server = await httpServer(t, { GET: exchange => exchange.stream() })
  const { project, client } = clientOf(t, server)
  await client.call('echo', hi)
  const [{ ended }] = await soon(() => server.seen('GET').length === 1 && server.seen('GET'))
  await project.close()
  await ended
  await soon(() => server.open === 0, 'no connection is left')
})

test('a server that asks on the stream is answered: ping with a result, the rest with an error', async t => {
  const server = await httpServer(t, {
    GET: exchange => {
      const stream = exchange.stream()
      stream.send({ jsonrpc: '2.0', id: 'ping', method: 'ping' })
      // Answers repeat ids and methods, and a server decides how many there are.
      stream.send({ jsonrpc: '2.0', id: `long${'-'.repeat(10_000)}`, method: 'ping' })
      stream.send({ jsonrpc: '2.0', id: 'method', method: 'ü'.repeat(10_000) })
      stream.send({ jsonrpc: '2.0', id: 'roots', method: 'roots/list' })
    },
  })
  const { client } = clientOf(t, server)
  await client.call('echo', hi)
  const reply = id => server.requests.find(({ message }) => message?.id === id)?.message
  await soon(() => reply('ping') && reply('roots') && reply('method'))
  assert.deepEqual(reply('ping').result, {})
  assert.ok(reply('method').error.message.length < 300)
  assert.ok(!server.requests.some(({ message }) => String(message?.id).startsWith('long')))
  assert.equal(reply('roots').error.code, -32601)
})

test('a session that is forgotten has its stream asked for with the new one only', async t => {
  const server = await httpServer(t, { GET: exchange => exchange.stream() })
  const { client } = clientOf(t, server)
  await client.call('echo', hi)
  await soon(() => server.seen('GET').length === 1)
  const [old] = server.sessions
  server.forget()
  await client.call('echo', hi)
  const [, second] = await soon(() => server.seen('GET').length >= 2 && server.seen('GET'))
  assert.notEqual(second.headers['mcp-session-id'], old)
  await server.seen('GET')[0].ended
})

for (const options of [{ sessions: false }, { revision: MODERN }]) {
  test(`where there is no session nobody asks for its stream (${JSON.stringify(options)})`, async t => {
    const server = await httpServer(t, {}, options)
    const { project, client } = clientOf(t, server)
    await client.call('echo', hi)
    await project.close()
    assert.equal(server.seen('GET').length, 0)
  })
}

test('a server that tells of changes all the time is not asked for tools that nobody looks at', async t => {
  let told = 0
  const changing = exchange => {
    const stream = exchange.stream()
    const timer = setInterval(() => {
      stream.send({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
      told++
    }, 10)
    stream.ended.then(() => clearInterval(timer))
  }
  const server = await httpServer(t, { GET: changing })
  const { client } = clientOf(t, server)
  assert.equal(text(await client.call('echo', hi)), 'hi')
  await soon(() => told >= 50, 'changes are told')
  // What was told before is through by then.
  assert.equal(text(await client.call('echo', hi)), 'hi')
  assert.equal(server.seen('tools/list').length, 0)
})
