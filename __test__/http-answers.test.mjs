// Answers that are none: each ends its call promptly, says what came, and spoils nothing for the next call.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { failure, soon } from './support/fixture.mjs'
import { html, httpServer, json, LEGACY, MODERN, never, status } from './support/http-server.mjs'
import { clientOf, text } from './support/project.mjs'

const hi = { text: 'hi' }
const PAGE = `<!doctype html>${'<p>Grüße, this is not JSON.</p>'.repeat(1_000)}`

/** The error of a call that is answered so, after which another call works. */
async function refused(t, answer, options = {}) {
  const server = await httpServer(t, { 'tools/call slow': answer }, options)
  const { client } = clientOf(t, server)
  const error = await failure(client.call('slow'))
  assert.equal(error.name, 'McpError')
  assert.equal(error.serverId, 'server')
  assert.equal(server.seen('tools/call slow').length, 1)
  assert.equal(text(await client.call('echo', hi)), 'hi')
  return error
}

for (const revision of [LEGACY, MODERN]) {
  for (const code of [400, 405, 422, 429, 500, 502, 503]) {
    test(`${code} is an error with its status and the beginning of its text (${revision})`, async t => {
      const error = await refused(t, html(code, PAGE), { revision })
      assert.equal(error.code, 'ERR_MCP_HTTP')
      assert.equal(error.details.status, code)
      assert.ok(error.message.includes(String(code)))
      assert.ok(PAGE.startsWith(error.details.body))
      assert.ok(error.details.body.length > 100)
      assert.ok(Buffer.byteLength(error.details.body) <= 2_048)
      assert.ok(error.message.length < 1_000)
    })
  }

  for (const code of [401, 403]) {
    test(`${code} is an error with the challenge (${revision})`, async t => {
      const challenge = 'Bearer resource_metadata="https://auth.test/.well-known/x", scope="a b"'
      const answer = status(code, 'no', { 'www-authenticate': challenge })
      const error = await refused(t, answer, { revision })
      assert.equal(error.code, 'ERR_MCP_AUTH_REQUIRED')
      assert.equal(error.details.status, code)
      assert.equal(error.details.wwwAuthenticate, challenge)
    })
  }

  for (const [what, answer] of [
    ['nothing', status(200)],
    ['202 and nothing', status(202)],
    ['204', status(204)],
    ['an empty body of JSON', json(200, '')],
    ['HTML', html(200, PAGE)],
    ['plain text', status(200, 'ok', { 'content-type': 'text/plain' })],
    ['no type at all', status(200, '{"jsonrpc":"2.0"}')],
    ['half a JSON', json(200, '{"jsonrpc":"2.0","id":1,"res')],
    ['JSON that is no message', json(200, '[1]')],
    ['null', json(200, 'null')],
    ['the answer to another request', json(200, { jsonrpc: '2.0', id: 'foreign', result: { content: [] } })],
    [
      'no result and no error',
      exchange =>
        exchange.respond(200, JSON.stringify({ jsonrpc: '2.0', id: exchange.message.id }), {
          'content-type': 'application/json',
        }),
    ],
    [
      'a result that is no object',
      exchange =>
        exchange.respond(200, JSON.stringify({ ...exchange.answer({}), result: 7 }), {
          'content-type': 'application/json',
        }),
    ],
    ['a list of content that is none', exchange => exchange.result({ content: 'no' })],
  ]) {
    test(`a call that is answered with ${what} is an answer that cannot be read (${revision})`, async t => {
      const error = await refused(t, answer, { revision })
      assert.equal(error.code, 'ERR_MCP_INVALID_MESSAGE')
    })
  }
}

test('an error of the protocol is told as such', async t => {
  const error = await refused(t, exchange => exchange.error(200, -32602, 'No such thing', { hint: 'x' }))
  assert.equal(error.code, 'ERR_MCP_RPC')
  assert.equal(error.details.rpcCode, -32602)
  assert.deepEqual(error.details.data, { hint: 'x' })
  assert.match(error.message, /No such thing/)
})

for (const id of ['same', null, 'foreign']) {
  test(`an error of the protocol in a refusal is told with it, whatever its id (${id})`, async t => {
    const error = await refused(t, exchange => {
      const message = { jsonrpc: '2.0', error: { code: -32000, message: 'Bad Request: too late' } }
      json(400, { ...message, id: id === 'same' ? exchange.message.id : id })(exchange)
    })
    assert.equal(error.code, 'ERR_MCP_HTTP')
    assert.equal(error.details.status, 400)
    assert.equal(error.details.rpcCode, -32000)
    assert.match(error.message, /Bad Request: too late/)
  })
}

test('an answer that never comes is a timeout, and the server is told', async t => {
  const server = await httpServer(t, { 'tools/call slow': never })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('slow', {}, 1_000))
  assert.equal(error.code, 'ERR_MCP_TIMEOUT')
  assert.deepEqual([error.details.phase, error.details.ms], ['call', 1_000])
  const [call] = server.seen('tools/call slow')
  const [{ message }] = await soon(() => {
    const seen = server.seen('notifications/cancelled')
    return seen.length === 1 && seen
  })
  assert.equal(message.params.requestId, call.message.id)
  await call.ended
})

test('an answer that stops in the middle is a timeout, too', async t => {
  const answer = exchange => {
    exchange.response.writeHead(200, { 'content-type': 'application/json' })
    exchange.response.write('{"jsonrpc":"2.0","id":')
  }
  const server = await httpServer(t, { 'tools/call slow': answer })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('slow', {}, { timeout: 500 }))
  assert.equal(error.code, 'ERR_MCP_TIMEOUT')
  await server.seen('tools/call slow')[0].ended
  assert.equal(text(await client.call('echo', hi)), 'hi')
})

test('an answer that comes in drops counts when it is whole', async t => {
  const answer = async exchange => {
    exchange.response.writeHead(200, { 'content-type': 'application/json' })
    for (const piece of JSON.stringify(exchange.answer({ content: [] })).match(/.{1,7}/g)) {
      exchange.response.write(piece)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    exchange.response.end()
  }
  const server = await httpServer(t, { 'tools/call slow': answer })
  const { client } = clientOf(t, server)
  assert.deepEqual((await client.call('slow')).content, [])
})

const LIMIT = 64 * 1024 * 1024

for (const [what, begin, type] of [
  ['body', '{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"', 'application/json'],
  ['event', 'data: {"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"', 'text/event-stream'],
  ['page of a refusal', '<p>', 'text/html'],
]) {
  test(`a ${what} without end is not taken in`, async t => {
    let sent = 0
    const chunk = Buffer.alloc(1024 * 1024, 'a')
    const endless = async ({ response, request }) => {
      let left = false
      request.ended.then(() => {
        left = true
      })
      response.writeHead(type === 'text/html' ? 500 : 200, { 'content-type': type }).write(begin)
      while (!left) {
        sent += chunk.length
        if (!response.write(chunk))
          await Promise.race([request.ended, new Promise(resolve => response.once('drain', resolve))])
      }
    }
    const error = await refused(t, endless)
    assert.equal(error.code, type === 'text/html' ? 'ERR_MCP_HTTP' : 'ERR_MCP_MESSAGE_TOO_LARGE')
    // Buffers of both systems hold some of it, too.
    assert.ok(sent <= LIMIT + 32 * 1024 * 1024, `${sent} bytes were taken`)
  })
}

test('a large answer within the limit arrives as it is', async t => {
  const large = 'ä€😀'.repeat(500_000)
  const server = await httpServer(t, { 'tools/call slow': exchange => exchange.text(large) })
  const { client } = clientOf(t, server)
  assert.equal(text(await client.call('slow')), large)
})

test('fields that nobody knows, and numbers as they were written, come through', async t => {
  const result = { content: [{ type: 'new', x: [1] }], extra: { deep: null }, _meta: { a: 1 }, n: 0.1 }
  for (const streamed of [false, true]) {
    const answer = exchange =>
      streamed ? exchange.stream().send(exchange.answer(result)) : exchange.result(result)
    const server = await httpServer(t, { 'tools/call slow': answer })
    const { client } = clientOf(t, server)
    assert.deepEqual(await client.call('slow'), { ...result, isError: false })
  }
})

for (const [code, expected] of [
  [401, 'ERR_MCP_AUTH_REQUIRED'],
  [404, 'ERR_MCP_HTTP'],
  [503, 'ERR_MCP_HTTP'],
]) {
  test(`${code} counts although its body never ends`, async t => {
    const unended = ({ response }) => {
      response.writeHead(code, { 'content-type': 'text/plain', 'www-authenticate': 'Bearer realm="x"' })
      response.write('half a reason')
    }
    const error = await refused(t, unended, { sessions: false })
    assert.equal(error.code, expected)
    assert.equal(error.details.status, code)
    if (code === 401) assert.equal(error.details.wwwAuthenticate, 'Bearer realm="x"')
    else assert.equal(error.details.body, 'half a reason')
  })
}

test('what came of the body of a refusal is shown although the connection was cut', async t => {
  const cut = ({ response }) => {
    response.writeHead(500, { 'content-length': 100 })
    response.write('half a reason', () => response.destroy())
  }
  const error = await refused(t, cut)
  assert.equal(error.details.status, 500)
  assert.equal(error.details.body, 'half a reason')
})

for (const type of ['application/json', 'text/event-stream']) {
  test(`${type} that is compressed, which nobody asked for, is an error that says so`, async t => {
    let wanted
    const compressed = ({ request, response }) => {
      wanted = request.headers['accept-encoding']
      response.writeHead(200, { 'content-type': type, 'content-encoding': 'gzip' })
      // The stream stays open: nobody has to wait for its end.
      response.write(gzipSync('data: {}'))
    }
    const error = await refused(t, compressed, { sessions: false })
    assert.equal(wanted, 'identity')
    assert.equal(error.code, 'ERR_MCP_INVALID_MESSAGE')
    assert.match(error.message, /encoding gzip/)
  })
}
