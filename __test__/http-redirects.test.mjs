// Redirects: followed within the origin, with everything; never to another one, which gets to see nothing at all.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure } from './support/fixture.mjs'
import { httpServer, status, usual } from './support/http-server.mjs'
import { clientOf, text } from './support/project.mjs'

const CANARY = 'canary-7f3a91c2d4e5'
const SECRETS = { Authorization: `Bearer ${CANARY}`, 'X-Api-Key': CANARY, Cookie: `s=${CANARY}` }
const hi = { text: 'hi' }

const to = (code, location) => status(code, 'moved', { location })

for (const code of [307, 308]) {
  test(`a ${code} within the origin is followed, with method, body and headers`, async t => {
    const moved = exchange =>
      exchange.request.path === '/mcp' ? to(code, '/mcp/?x=1')(exchange) : usual(exchange)
    const server = await httpServer(t, { '*': moved })
    const { project, client } = clientOf(t, server, { headers: SECRETS })
    assert.equal(text(await client.call('echo', hi)), 'hi')
    await project.close()
    const arrived = server.requests.filter(({ path }) => path === '/mcp/?x=1')
    assert.ok(arrived.length >= 4, 'initialize, initialized, the call, and DELETE')
    for (const { headers } of arrived) assert.equal(headers['x-api-key'], CANARY)
    assert.equal(server.sessions.size, 0)
  })

  for (const method of ['initialize', 'tools/call', 'GET', 'DELETE']) {
    test(`a ${code} of ${method} to another origin is not followed`, async t => {
      const other = await httpServer(t)
      const server = await httpServer(t, { [method]: to(code, `${other.url}?q=${CANARY}`) })
      const { project, client } = clientOf(t, server, { headers: SECRETS })
      const call = client.call('echo', hi)
      if (method === 'GET' || method === 'DELETE') assert.equal(text(await call), 'hi')
      else {
        const error = await failure(call)
        assert.equal(error.code, 'ERR_MCP_HTTP')
        assert.equal(error.details.status, code)
        // Where it wanted to lead, so that a moved server can be configured anew, but nothing that may be secret.
        assert.ok(error.message.includes(new URL(other.url).host), error.message)
        assert.ok(!JSON.stringify(error).includes(CANARY))
      }
      await project.close()
      assert.equal(other.accepted, 0)
    })
  }
}

for (const [what, address] of [
  ['another name of the same machine', ({ port }) => `http://localhost:${port}/mcp`],
  ['another scheme', ({ host }) => `https://${host}/mcp`],
  ['an address without a scheme', (_, other) => `//${new URL(other.url).host}/mcp`],
  ['a scheme that is none of HTTP', () => 'file:///etc/passwd'],
  ['no address at all', () => 'http://'],
]) {
  test(`a redirect to ${what} is not followed`, async t => {
    const other = await httpServer(t)
    const server = await httpServer(t)
    server.answers['tools/call'] = to(307, address(new URL(server.url), other))
    const { client } = clientOf(t, server, { headers: SECRETS })
    const error = await failure(client.call('echo', hi))
    assert.equal(error.code, 'ERR_MCP_HTTP')
    assert.equal(error.details.status, 307)
    assert.equal(other.accepted, 0)
    assert.equal(server.seen('tools/call').length, 1)
  })
}

test('a redirect without end is an error, and soon', async t => {
  const server = await httpServer(t, { 'tools/call': to(307, '/mcp') })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('echo', hi))
  assert.ok(['ERR_MCP_HTTP', 'ERR_MCP_CONNECT'].includes(error.code), error.code)
  assert.ok(server.seen('tools/call').length <= 21)
})

for (const code of [301, 302, 303]) {
  test(`a ${code}, which may turn a call into a GET, is an error that names its target`, async t => {
    const server = await httpServer(t, { 'tools/call': to(code, '/elsewhere') })
    const { client } = clientOf(t, server)
    const error = await failure(client.call('echo', hi))
    assert.equal(error.code, 'ERR_MCP_HTTP')
    assert.equal(error.details.status, code)
    assert.ok(error.message.includes('/elsewhere'), error.message)
    assert.equal(server.requests.filter(({ path }) => path === '/elsewhere').length, 0)
  })
}

test('a redirect without an address says that it has none', async t => {
  const server = await httpServer(t, { 'tools/call': status(307, '') })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_HTTP')
  assert.match(error.message, /nowhere/)
  assert.ok(!error.message.includes('another origin'), error.message)
})
