// Headers as a function: asked for when they are needed, once for all who wait, and again after a 401.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure, soon } from './support/fixture.mjs'
import { httpServer, MODERN, status, usual } from './support/http-server.mjs'
import { clientOf, text } from './support/project.mjs'

const CHALLENGE = 'Bearer error="invalid_token"'
const unauthorized = status(401, 'expired', { 'www-authenticate': CHALLENGE })

/**
 * A server that takes one token and answers 401 to all others; the answers to calls are held back until `together` of
 * them are there, so that they fail at the same time.
 */
async function guarded(t, { together = 1, ...options } = {}) {
  const held = []
  const judge = exchange =>
    exchange.request.headers.authorization === `Bearer ${server.token}`
      ? usual(exchange)
      : unauthorized(exchange)
  const server = await httpServer(
    t,
    {
      '*': judge,
      'tools/call': exchange => {
        if (exchange.request.headers.authorization === `Bearer ${server.token}`) return usual(exchange)
        held.push(exchange)
        if (held.length === together) held.splice(0).forEach(unauthorized)
      },
    },
    options,
  )
  server.token = 'token-1'
  return server
}

/** Headers with a new token each time; `asked` is how often. */
function tokens() {
  const provider = {
    asked: 0,
    headers: async () => {
      provider.asked++
      return { Authorization: `Bearer token-${provider.asked}` }
    },
  }
  return provider
}

/** Opens the session. The stream that comes with one has been answered then: late, it would be refused for an old token by itself. */
async function settled(client, server, protocol) {
  await client.listTools()
  if (protocol === undefined) await soon(() => server.seen('GET')[0]?.body !== undefined, 'the stream')
}

const calls = (client, count) => Array.from({ length: count }, (_, i) => client.call('echo', { text: i }))

for (const options of [{}, { revision: MODERN, protocol: 'modern' }]) {
  const { protocol } = options
  test(`the headers are asked for once, however many requests follow (${protocol ?? 'auto'})`, async t => {
    const server = await guarded(t, options)
    const provider = tokens()
    const { project, client } = clientOf(t, server, { headers: provider.headers, protocol })
    await Promise.all(calls(client, 5))
    await project.close()
    assert.equal(provider.asked, 1)
    assert.ok(server.requests.every(request => request.headers.authorization === 'Bearer token-1'))
  })

  test(`calls that get a 401 together share one refresh, and are sent once more (${protocol ?? 'auto'})`, async t => {
    const server = await guarded(t, { together: 5, ...options })
    const provider = tokens()
    const { client } = clientOf(t, server, { headers: provider.headers, protocol })
    await settled(client, server, protocol)
    server.token = 'token-2'
    const results = await Promise.all(calls(client, 5))
    assert.deepEqual(results.map(text), ['0', '1', '2', '3', '4'])
    assert.equal(provider.asked, 2)
    assert.equal(server.seen('tools/call').length, 10)
    assert.equal(server.seen('initialize').length, protocol ? 0 : 1)
  })

  test(`a 401 that stays is an error with the challenge, after one refresh (${protocol ?? 'auto'})`, async t => {
    const server = await guarded(t, options)
    const provider = tokens()
    const { client } = clientOf(t, server, { headers: provider.headers, protocol })
    await settled(client, server, protocol)
    server.token = 'another'
    const error = await failure(client.call('echo', { text: 'hi' }))
    assert.equal(error.code, 'ERR_MCP_AUTH_REQUIRED')
    assert.deepEqual([error.details.status, error.details.wwwAuthenticate], [401, CHALLENGE])
    assert.equal(provider.asked, 2)
    assert.equal(server.seen('tools/call').length, 2)
    assert.ok(!JSON.stringify(error).includes('token-'))
  })
}

test('a refresh that fails is an error for all who wait for it, and the next call asks again', async t => {
  const server = await guarded(t, { together: 5 })
  let asked = 0
  const headers = async () => {
    asked++
    if (asked === 2) throw new Error('the login service is down')
    return { Authorization: `Bearer token-${asked}` }
  }
  const { client } = clientOf(t, server, { headers })
  await settled(client, server)
  server.token = 'token-3'
  const errors = await Promise.all(calls(client, 5).map(failure))
  for (const error of errors) {
    assert.equal(error.code, 'ERR_MCP_AUTH_REQUIRED')
    assert.equal(error.cause.message, 'the login service is down')
  }
  assert.equal(asked, 2)
  assert.equal(text(await client.call('echo', { text: 'again' })), 'again')
  assert.equal(asked, 3)
})

test('the very first request may be refused, too', async t => {
  const server = await guarded(t)
  server.token = 'token-2'
  const provider = tokens()
  const { client } = clientOf(t, server, { headers: provider.headers })
  assert.equal(text(await client.call('echo', { text: 'hi' })), 'hi')
  assert.equal(provider.asked, 2)
  assert.equal(server.seen('initialize').length, 2)
})

test('a 403 is not mended by a new token', async t => {
  const server = await httpServer(t, { 'tools/call': status(403) })
  const provider = tokens()
  const { client } = clientOf(t, server, { headers: provider.headers })
  const error = await failure(client.call('echo', { text: 'hi' }))
  assert.equal(error.code, 'ERR_MCP_AUTH_REQUIRED')
  assert.equal(error.details.status, 403)
  assert.equal(provider.asked, 1)
  assert.equal(server.seen('tools/call').length, 1)
})

test('headers that do not change are not tried again', async t => {
  const server = await guarded(t)
  const { client } = clientOf(t, server, { headers: { Authorization: 'Bearer wrong' } })
  const error = await failure(client.call('echo', { text: 'hi' }))
  assert.equal(error.code, 'ERR_MCP_AUTH_REQUIRED')
  assert.equal(server.seen('initialize').length, 1)
})

for (const [what, headers] of [
  ['never answers', () => new Promise(() => {})],
  [
    'throws',
    () => {
      throw new Error('no login')
    },
  ],
  ['gives no headers', async () => 'Bearer x'],
  ['gives a header that cannot be sent', async () => ({ 'X-Key': 'a\nb' })],
]) {
  test(`a function that ${what} ends the call, and nothing is sent`, async t => {
    const server = await httpServer(t)
    const { project, client } = clientOf(t, server, { headers })
    const error = await failure(client.call('echo', { text: 'hi' }, { timeout: 500 }))
    assert.equal(error.name, 'McpError')
    assert.equal(error.code === 'ERR_MCP_TIMEOUT', what === 'never answers')
    await project.close()
    assert.equal(server.requests.length, 0)
  })
}

test('a synchronous call cannot ask for headers, says so at once, and sends nothing', async t => {
  const server = await httpServer(t)
  const provider = tokens()
  const { client } = clientOf(t, server, { headers: provider.headers })
  assert.throws(() => client.callSync('echo', { text: 'hi' }), { code: 'ERR_MCP_WOULD_BLOCK' })
  assert.equal(provider.asked, 0)
  assert.equal(server.accepted, 0)
})
