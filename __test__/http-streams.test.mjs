// Answers that come on an event stream, and streams that are taken up again.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { failure, PATIENCE, soon } from './support/fixture.mjs'
import { httpServer, LEGACY, MODERN } from './support/http-server.mjs'
import { clientOf, text } from './support/project.mjs'

const hi = { text: 'hi' }
const answered = exchange => exchange.answer({ content: [{ type: 'text', text: 'streamed' }] })

for (const revision of [LEGACY, MODERN]) {
  test(`an answer counts as soon as it is there, though its stream stays open (${revision})`, async t => {
    const answer = exchange => exchange.stream().send(answered(exchange))
    const server = await httpServer(t, { 'tools/call': answer }, { revision })
    const { client } = clientOf(t, server)
    assert.equal(text(await client.call('echo', hi)), 'streamed')
    const [{ ended }] = server.seen('tools/call')
    // Nobody waits for more: the client lets go of the stream.
    await within(ended, 'the stream is let go')
  })
}

test('an answer may be one body, without a session', async t => {
  const server = await httpServer(t, {}, { sessions: false })
  const { client } = clientOf(t, server)
  assert.equal(text(await client.call('echo', hi)), 'hi')
  assert.equal(server.seen('GET').length, 0)
})

test('events come in any framing that the standard allows', async t => {
  const server = await httpServer(t, {
    'tools/call': exchange => {
      const [head, tail] = JSON.stringify(answered(exchange)).split(/(?<="jsonrpc":"2.0",)/)
      exchange.response.writeHead(200, { 'content-type': 'Text/Event-Stream; charset=UTF-8' })
      exchange.response.write('\ufeff: a comment\r\n\r\nevent: message\rdata:')
      exchange.response.write(`${head}\r\ndata: ${tail}\n`)
      exchange.response.write('unknown: field\n\n')
    },
  })
  const { client } = clientOf(t, server)
  assert.equal(text(await client.call('echo', hi)), 'streamed')
})

test('other messages on the stream of an answer do no harm', async t => {
  const server = await httpServer(t, {
    'tools/call': exchange => {
      const stream = exchange.stream()
      stream.send({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } })
      stream.send({ jsonrpc: '2.0', method: 'notifications/nosuch' })
      stream.send({ jsonrpc: '2.0', id: 'other', result: {} })
      stream.send(answered(exchange))
      stream.end()
    },
  })
  const { client } = clientOf(t, server)
  assert.equal(text(await client.call('echo', hi)), 'streamed')
})

test('a server that asks is answered: ping with a result, the rest with an error', async t => {
  const asked = { ping: 'ping', roots: 'roots/list' }
  const server = await httpServer(t, {
    'tools/call': exchange => {
      const stream = exchange.stream()
      for (const [id, method] of Object.entries(asked)) stream.send({ jsonrpc: '2.0', id, method })
      server.finish = () => stream.send(answered(exchange))
    },
  })
  const { client } = clientOf(t, server)
  const call = client.call('echo', hi)
  const reply = id => server.requests.find(({ message }) => message?.id === id && !message.method)?.message
  await soon(() => reply('ping') && reply('roots'))
  assert.deepEqual(reply('ping').result, {})
  assert.equal(reply('roots').error.code, -32601)
  server.finish()
  assert.equal(text(await call), 'streamed')
})

test('a stream that ends before its answer is asked for again, after the time the server set', async t => {
  let pending
  const server = await httpServer(t, {
    'tools/call': exchange => {
      pending = exchange
      const stream = exchange.stream()
      stream.send(undefined, { id: 'first', retry: 700 })
      stream.end()
    },
    GET: exchange => {
      if (exchange.request.headers['last-event-id'] !== 'first') return exchange.respond(405)
      exchange.stream().send(answered(pending), { id: 'second' })
    },
  })
  const { client } = clientOf(t, server)
  assert.equal(text(await client.call('echo', hi)), 'streamed')
  const [call] = server.seen('tools/call')
  const resumed = server.seen('GET').find(({ headers }) => headers['last-event-id'] === 'first')
  assert.ok(resumed.at - call.at >= 690, `it came back after ${resumed.at - call.at} ms`)
  assert.equal(server.seen('tools/call').length, 1)
})

test('a stream that is cut is taken up from its last event', async t => {
  let pending
  const progress = (exchange, value) => ({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken: exchange.message.params._meta.progressToken, progress: value },
  })
  const server = await httpServer(t, {
    'tools/call': async exchange => {
      pending = exchange
      const stream = exchange.stream()
      // One by one: of progress that waits together only the latest is told.
      stream.send(progress(exchange, 1), { id: 'e1', retry: 10 })
      await soon(() => seen.length === 1)
      stream.send(progress(exchange, 2), { id: 'e2' })
      await soon(() => seen.length === 2)
      stream.cut()
    },
    GET: exchange => {
      if (exchange.request.headers['last-event-id'] !== 'e2') return exchange.respond(405)
      const stream = exchange.stream()
      stream.send(progress(pending, 3), { id: 'e3' })
      stream.send(answered(pending), { id: 'e4' })
    },
  })
  const { client } = clientOf(t, server)
  const seen = []
  const result = await client.call('echo', hi, { onProgress: ({ progress }) => seen.push(progress) })
  assert.equal(text(result), 'streamed')
  assert.deepEqual(seen, [1, 2, 3])
  assert.equal(server.seen('tools/call').length, 1)
})

test('a stream that ends without an answer and without ids is the end of its call', async t => {
  const server = await httpServer(t, { 'tools/call': exchange => exchange.stream().end() })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_CONNECT')
  assert.equal(server.seen('tools/call').length, 1)
})

test('a stream that never gives its answer is asked for a bounded number of times, and the call ends', async t => {
  const empty = exchange => {
    const stream = exchange.stream()
    stream.send(undefined, { id: 'same', retry: 1 })
    stream.end()
  }
  const server = await httpServer(t, { 'tools/call': empty, GET: empty })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('echo', hi, { timeout: 3_000 }))
  assert.ok(['ERR_MCP_CONNECT', 'ERR_MCP_TIMEOUT'].includes(error.code), error.code)
  assert.ok(server.seen('GET').length <= 20, `it asked ${server.seen('GET').length} times in 3 s`)
})

function within(promise, what) {
  const late = sleep(PATIENCE, undefined, { ref: false }).then(() => {
    throw new Error(`did not come about within ${PATIENCE} ms: ${what}`)
  })
  return Promise.race([promise, late])
}

for (const [protocol, method] of [
  ['legacy', 'initialize'],
  ['modern', 'server/discover'],
]) {
  for (const ends of ['closed', 'given up']) {
    test(`a handshake (${method}) on a stream that brings no answer leaves no connection when it is ${ends}`, async t => {
      let isOpen
      const opened = new Promise(resolve => {
        isOpen = resolve
      })
      const silent = exchange => isOpen(exchange.stream())
      const server = await httpServer(t, { [method]: silent })
      const { project, client } = clientOf(t, server, { protocol, timeout: 1_000 })
      const call = failure(client.call('echo', hi))
      await opened
      if (ends === 'closed') await project.close()
      assert.equal((await call).code, ends === 'closed' ? 'ERR_MCP_CLOSED' : 'ERR_MCP_TIMEOUT')
      await soon(() => server.open === 0, 'the connection is closed')
    })
  }
}
