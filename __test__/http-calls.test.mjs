// Calls over HTTP: which revision they speak, how they are cancelled, what they tell meanwhile.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure, soon } from './support/fixture.mjs'
import { html, httpServer, LEGACY, MODERN, never, status } from './support/http-server.mjs'
import { clientOf, text } from './support/project.mjs'

const hi = { text: 'hi' }
const SSE_HINT = /HTTP\+SSE|legacy SSE/i

for (const [protocol, revision, spoken] of [
  [undefined, '2025-03-26', '2025-03-26'],
  [undefined, '2025-06-18', '2025-06-18'],
  [undefined, LEGACY, LEGACY],
  [undefined, MODERN, MODERN],
  ['auto', MODERN, MODERN],
  ['legacy', LEGACY, LEGACY],
  ['2025-06-18', LEGACY, '2025-06-18'],
  ['modern', MODERN, MODERN],
  [MODERN, MODERN, MODERN],
]) {
  test(`protocol ${protocol ?? 'by default'} and a server of ${revision} agree on ${spoken}`, async t => {
    const server = await httpServer(t, {}, { revision })
    const { client } = clientOf(t, server, protocol && { protocol })
    assert.equal(text(await client.call('echo', hi)), 'hi')
    const tools = await client.listTools()
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['echo', 'slow'],
    )
    const [{ headers }] = server.seen('tools/call')
    assert.equal(headers['mcp-protocol-version'], spoken)
    assert.equal(server.seen('initialize').length, protocol === 'modern' || protocol === MODERN ? 0 : 1)
    assert.equal(server.seen('server/discover').length, revision === MODERN ? 1 : 0)
  })
}

test('a server that answers with a revision that nobody asked for is refused', async t => {
  const strange = exchange =>
    exchange.result({ protocolVersion: '1999-01-01', capabilities: {}, serverInfo: { name: 'x' } })
  const server = await httpServer(t, { initialize: strange })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_PROTOCOL_VERSION')
  assert.equal(error.details.answered, '1999-01-01')
})

for (const code of [404, 405]) {
  test(`a server of the oldest transport, which answers ${code} to a POST, is named as such`, async t => {
    const server = await httpServer(t, {
      GET: exchange => exchange.stream(),
      '*': html(code),
    })
    const { client } = clientOf(t, server)
    const error = await failure(client.call('echo', hi))
    assert.equal(error.code, 'ERR_MCP_HTTP')
    assert.equal(error.details.status, code)
    assert.match(error.message, SSE_HINT)
  })
}

test('a url whose path leads to no server is asked about', async t => {
  const server = await httpServer(t, { '*': html(404) })
  const error = await failure(clientOf(t, server).client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_HTTP')
  assert.match(error.message, /HTTP 404 Not Found; is the path of its url right\?.*\/mcp\.$/)
})

test('a server of type sse is refused without a request', async t => {
  const server = await httpServer(t)
  const { client } = clientOf(t, server, { type: 'sse' })
  const error = await failure(client.call('echo', hi))
  assert.match(error.message, SSE_HINT)
  assert.equal(server.accepted, 0)
})

for (const revision of [LEGACY, MODERN]) {
  test(`an abort frees its caller at once and tells the server (${revision})`, async t => {
    const streaming = exchange => exchange.stream()
    const server = await httpServer(t, { 'tools/call slow': streaming }, { revision })
    const { client } = clientOf(t, server)
    await client.listTools()
    const controller = new AbortController()
    const call = failure(client.call('slow', {}, { signal: controller.signal }))
    const [{ message, ended }] = await soon(() => {
      const seen = server.seen('tools/call slow')
      return seen.length === 1 && seen
    })
    const reason = new Error('changed my mind')
    controller.abort(reason)
    assert.equal(await call, reason)
    // In the modern era the end of its stream is the sign; before, a message is.
    await ended
    if (revision === LEGACY) {
      await soon(() => server.seen('notifications/cancelled').length === 1)
      const [{ message: cancelled }] = server.seen('notifications/cancelled')
      assert.equal(cancelled.params.requestId, message.id)
    }
    assert.equal(text(await client.call('echo', hi)), 'hi')
    assert.equal(server.seen('notifications/cancelled').length, revision === LEGACY ? 1 : 0)
  })

  test(`a call that is aborted before it begins sends nothing (${revision})`, async t => {
    const server = await httpServer(t, {}, { revision })
    const { client } = clientOf(t, server)
    const reason = new Error('never mind')
    assert.equal(await failure(client.call('echo', hi, { signal: AbortSignal.abort(reason) })), reason)
    assert.equal(server.accepted, 0)
  })

  test(`progress is told in order, and none after the result (${revision})`, async t => {
    const counting = exchange => {
      const { progressToken } = exchange.message.params._meta
      const stream = exchange.stream()
      const tell = progress =>
        stream.send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } })
      for (let i = 1; i <= 50; i++) tell(i)
      stream.send(exchange.answer({ content: [] }))
      tell(51)
      stream.end()
    }
    const server = await httpServer(t, { 'tools/call slow': counting }, { revision })
    const { client } = clientOf(t, server)
    const seen = []
    await client.call('slow', {}, { onProgress: ({ progress }) => seen.push(progress) })
    assert.equal(seen.at(-1), 50)
    assert.deepEqual(
      seen,
      [...new Set(seen)].sort((a, b) => a - b),
    )
    await client.call('echo', hi)
    assert.equal(seen.at(-1), 50)
  })

  test(`progress restarts the timeout of a call that wants it (${revision})`, async t => {
    const steady = async exchange => {
      const { progressToken } = exchange.message.params._meta
      const stream = exchange.stream()
      for (let progress = 1; progress <= 8; progress++) {
        await new Promise(resolve => setTimeout(resolve, 250))
        stream.send({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken, progress },
        })
      }
      stream.send(exchange.answer({ content: [] }))
    }
    const server = await httpServer(t, { 'tools/call slow': steady }, { revision })
    const { client } = clientOf(t, server)
    const options = { timeout: 1_500, resetTimeoutOnProgress: true, onProgress: () => {} }
    assert.deepEqual((await client.call('slow', {}, options)).content, [])
  })

  test(`_meta of a call arrives (${revision})`, async t => {
    const server = await httpServer(t, {}, { revision })
    const { client } = clientOf(t, server)
    await client.call('echo', hi, { meta: { traceparent: '00-1-2-03' } })
    const [{ message }] = server.seen('tools/call')
    assert.equal(message.params._meta.traceparent, '00-1-2-03')
  })

  test(`a hundred calls at once are answered, each its own (${revision})`, async t => {
    const held = []
    const server = await httpServer(t, { 'tools/call': exchange => held.push(exchange) }, { revision })
    const { client } = clientOf(t, server)
    const calls = Array.from({ length: 100 }, (_, i) => client.call('echo', { text: i }))
    let answered = 0
    const answering = soon(() => {
      // The last to come is the first to be answered.
      for (const exchange of held.splice(0).reverse()) {
        exchange.usual()
        answered++
      }
      return answered === 100
    })
    assert.deepEqual((await Promise.all(calls)).map(text), [...Array(100).keys()].map(String))
    await answering
  })
}

test('tools are listed page by page', async t => {
  const page = exchange => {
    const { cursor } = exchange.message.params ?? {}
    const number = cursor === undefined ? 0 : Number(cursor)
    const tools = [{ name: `tool-${number}`, inputSchema: { type: 'object', x: { $ref: '#/y' } } }]
    exchange.result({ tools, ...(number < 3 && { nextCursor: String(number + 1) }) })
  }
  const server = await httpServer(t, { 'tools/list': page })
  const { client } = clientOf(t, server)
  const tools = await client.listTools()
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['tool-0', 'tool-1', 'tool-2', 'tool-3'],
  )
  assert.deepEqual(tools[0].inputSchema, { type: 'object', x: { $ref: '#/y' } })
})

test('a tool that is not listed is for the server to judge', async t => {
  const server = await httpServer(t)
  const { client } = clientOf(t, server)
  assert.equal(text(await client.call('hidden')), 'hidden done')
  assert.equal(server.seen('tools/list').length, 0)
  assert.deepEqual(server.seen('tools/call')[0].message.params.arguments, {})
})

test('the handshake has a deadline', async t => {
  const server = await httpServer(t, { initialize: never })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('echo', hi, { timeout: 500 }))
  assert.equal(error.code, 'ERR_MCP_TIMEOUT')
  await server.seen('initialize')[0].ended
})

test('an initialize that is refused is told with the words of the server', async t => {
  const refusing = exchange => exchange.error(200, -32603, 'The licence has expired')
  const server = await httpServer(t, { initialize: refusing, GET: status(405) })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
  assert.equal(error.details.rpcCode, -32603)
  assert.match(error.message, /The licence has expired/)
})
