// Sessions of servers over HTTP: how they begin, what happens when a server forgets them, and how they end.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure, soon } from './support/fixture.mjs'
import { cut, html, httpServer, inTurn, MODERN, never, status, usual } from './support/http-server.mjs'
import { clientOf, opened, text } from './support/project.mjs'

const hi = { text: 'hi' }
const expired = html(404, '<h1>404 Not Found</h1>')

test('a session is opened once, however many callers come at the same time', async t => {
  const server = await httpServer(t)
  const { client } = clientOf(t, server)
  const calls = Array.from({ length: 20 }, (_, i) => client.call('echo', { text: i }))
  assert.deepEqual(
    (await Promise.all(calls)).map(text),
    calls.map((_, i) => String(i)),
  )
  assert.equal(server.seen('initialize').length, 1)
  assert.equal(server.seen('notifications/initialized').length, 1)
  assert.equal(server.sessions.size, 1)
})

test('nothing is sent before the first call', async t => {
  const server = await httpServer(t)
  const { project } = clientOf(t, server)
  await project.close()
  assert.equal(server.accepted, 0)
})

test('a session that the server forgot is opened anew, and the call is sent once more', async t => {
  const server = await httpServer(t, {
    'tools/call': inTurn(usual, expired, usual),
  })
  const { client } = clientOf(t, server)
  await client.call('echo', hi)
  server.forget()
  assert.equal(text(await client.call('echo', hi)), 'hi')
  const [first, second, ...more] = server.seen('initialize')
  assert.equal(more.length, 0)
  for (const { headers } of [first, second]) assert.equal(headers['mcp-session-id'], undefined)
  const sessions = server.seen('tools/call').map(({ headers }) => headers['mcp-session-id'])
  assert.equal(sessions.length, 3)
  assert.equal(sessions[0], sessions[1])
  assert.deepEqual([sessions[2]], [...server.sessions])
})

test('callers that find the session forgotten together open one together', async t => {
  const server = await httpServer(t)
  const { client } = clientOf(t, server)
  await client.listTools()
  server.forget()
  const calls = Array.from({ length: 10 }, (_, i) => client.call('echo', { text: i }))
  await Promise.all(calls)
  assert.equal(server.seen('initialize').length, 2)
  assert.ok(server.seen('tools/call').length <= 20)
})

test('a server that forgets every session gets one more try and no third', async t => {
  const server = await httpServer(t, { 'tools/call': expired })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_HTTP')
  assert.equal(error.details.status, 404)
  assert.equal(server.seen('tools/call').length, 2)
  assert.equal(server.seen('initialize').length, 2)
})

test('a 404 where there is no session is an error at once', async t => {
  const server = await httpServer(t, { 'tools/call': expired }, { sessions: false })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_HTTP')
  assert.equal(error.details.status, 404)
  assert.equal(server.seen('tools/call').length, 1)
})

for (const revision of ['2025-11-25', MODERN]) {
  for (const [what, answer] of [
    ['whose connection broke', cut],
    ['that the server failed at', status(500)],
    ['that the server had no time for', status(503, '', { 'retry-after': '0' })],
  ]) {
    test(`a call ${what} may have run, and is not sent again (${revision})`, async t => {
      const server = await httpServer(t, { 'tools/call slow': answer }, { revision })
      const { client } = clientOf(t, server)
      const error = await failure(client.call('slow'))
      assert.equal(error.name, 'McpError')
      assert.equal(text(await client.call('echo', hi)), 'hi')
      assert.equal(server.seen('tools/call slow').length, 1)
    })
  }
}

test('after a restart of the server the next call works', async t => {
  const server = await httpServer(t)
  const { client } = clientOf(t, server)
  await client.call('echo', hi)
  await server.stop()
  assert.equal((await failure(client.call('echo', hi))).code, 'ERR_MCP_CONNECT')
  server.forget()
  await server.start()
  // Attempts to reach a server that refuses are spaced out, so the very next one may not be made at once.
  const result = await soon(() => client.call('echo', hi).catch(() => undefined), 'a call that works')
  assert.equal(text(result), 'hi')
})

for (const [what, DELETE] of [
  ['is accepted', usual],
  ['is not allowed', status(405)],
  ['fails', status(500)],
  ['is never answered', never],
  ['is answered by a cut', cut],
]) {
  test(`closing ends the session by one DELETE, in bounded time when that ${what}`, async t => {
    const server = await httpServer(t, { DELETE })
    const { project, client } = clientOf(t, server)
    await client.call('echo', hi)
    const [session] = server.sessions
    await Promise.all([project.close(), project.close()])
    const deletions = server.seen('DELETE')
    assert.equal(deletions.length, 1)
    assert.equal(deletions[0].headers['mcp-session-id'], session)
    await soon(() => server.open === 0, 'no connection is left')
    assert.equal((await failure(client.call('echo', hi))).code, 'ERR_MCP_CLOSED')
    assert.equal(server.requests.at(-1).method, 'DELETE')
  })
}

test('closing settles the calls that wait, and ends their session', async t => {
  const server = await httpServer(t, { 'tools/call slow': never })
  const { project, client } = clientOf(t, server)
  const call = failure(client.call('slow'))
  await soon(() => server.seen('tools/call slow').length === 1)
  await project.close()
  assert.equal((await call).code, 'ERR_MCP_CLOSED')
  assert.equal(server.seen('DELETE').length, 1)
  await soon(() => server.open === 0, 'no connection is left')
})

test('closing while the session is being opened settles the call that wanted it', async t => {
  const server = await httpServer(t, { initialize: never })
  const { project, client } = clientOf(t, server)
  const call = failure(client.call('echo', hi))
  await soon(() => server.seen('initialize').length === 1)
  await project.close()
  assert.equal((await call).code, 'ERR_MCP_CLOSED')
  await soon(() => server.open === 0, 'no connection is left')
})

for (const options of [{ sessions: false }, { revision: MODERN }]) {
  test(`where there is no session there is no DELETE (${JSON.stringify(options)})`, async t => {
    const server = await httpServer(t, {}, options)
    const { project, client } = clientOf(t, server)
    await client.call('echo', hi)
    await project.close()
    assert.equal(server.seen('DELETE').length, 0)
    await soon(() => server.open === 0, 'no connection is left')
  })
}

test('a session whose handshake fails after it was given out is ended, too', async t => {
  const server = await httpServer(t, { 'notifications/initialized': status(500) })
  const { project, client } = clientOf(t, server)
  assert.equal((await failure(client.call('echo', hi))).details.status, 500)
  await project.close()
  await soon(() => server.sessions.size === 0, 'no session is left')
})

test('projects share nothing: each has its own session with the same server', async t => {
  const server = await httpServer(t)
  const [one, other] = [opened(t, { a: { url: server.url } }), opened(t, { a: { url: server.url } })]
  await Promise.all([one.mcp('a').call('echo', hi), other.mcp('a').call('echo', hi)])
  assert.equal(server.sessions.size, 2)
  await one.close()
  assert.equal(server.sessions.size, 1)
  assert.equal(text(await other.mcp('a').call('echo', hi)), 'hi')
})

test('one dead server delays no other', async t => {
  const dead = await httpServer(t, { initialize: never })
  const server = await httpServer(t)
  const project = opened(t, { dead: { url: dead.url }, server: { url: server.url } })
  const waiting = failure(project.mcp('dead').call('echo', hi))
  await soon(() => dead.seen('initialize').length === 1)
  assert.equal(text(await project.mcp('server').call('echo', hi)), 'hi')
  await project.close()
  assert.equal((await waiting).code, 'ERR_MCP_CLOSED')
})
