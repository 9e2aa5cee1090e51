// A server that is down and many who want it: attempts are made one at a time, with growing gaps, and nobody waits for long.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { soon } from './support/fixture.mjs'
import { cut, httpServer, inTurn, status, usual } from './support/http-server.mjs'
import { clientOf, text } from './support/project.mjs'

const CALLERS = 50
const STORM = 2_000
/** At most as many attempts within the two seconds: the first, and those after gaps that begin at 200 ms and double. */
const ATTEMPTS = 8

/** Fifty callers, each calling again as soon as it was refused, for two seconds; the codes of their errors. */
async function storm(client) {
  const until = performance.now() + STORM
  const codes = []
  async function caller() {
    while (performance.now() < until) {
      const error = await client.call('echo', { text: 'hi' }).then(
        () => assert.fail('the server is down'),
        error => error,
      )
      codes.push(error.code)
      // Timers and sockets of this thread go on, as in a host that does other things, too.
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  return codes
}

test('while a server fails at its handshake, there is one attempt at a time and few in all', async t => {
  let now = 0
  let most = 0
  const failing = async exchange => {
    most = Math.max(most, ++now)
    await new Promise(resolve => setTimeout(resolve, 20))
    now--
    status(503, 'not yet')(exchange)
  }
  const server = await httpServer(t, { initialize: failing })
  const { client } = clientOf(t, server)
  const codes = await storm(client)
  assert.deepEqual([...new Set(codes)], ['ERR_MCP_HTTP'])
  assert.equal(most, 1)
  assert.ok(server.requests.length >= 2, 'it is tried again')
  assert.ok(server.requests.length <= ATTEMPTS, `${server.requests.length} attempts`)
  // Most callers were refused without an attempt of their own, and so at once.
  assert.ok(codes.length >= CALLERS * 2, `${codes.length} calls`)
})

test('while connections are cut, attempts are few, too', async t => {
  const server = await httpServer(t, { initialize: cut })
  const { client } = clientOf(t, server)
  const codes = await storm(client)
  assert.deepEqual([...new Set(codes)], ['ERR_MCP_CONNECT'])
  // A client may try a fresh connection where a kept one turns out to be dead.
  assert.ok(server.accepted <= 2 * ATTEMPTS, `${server.accepted} connections`)
})

test('a server that is not there refuses everybody promptly', async t => {
  const server = await httpServer(t)
  await server.stop()
  const { client } = clientOf(t, server)
  const codes = await storm(client)
  assert.deepEqual([...new Set(codes)], ['ERR_MCP_CONNECT'])
  assert.ok(codes.length >= CALLERS * 2, `${codes.length} calls`)
})

test('when the server is back, so are the callers', async t => {
  const server = await httpServer(t, { initialize: inTurn(cut, cut, usual) })
  const { client } = clientOf(t, server)
  const call = () => client.call('echo', { text: 'hi' }).catch(() => undefined)
  assert.equal(text(await soon(call, 'a call that works')), 'hi')
  // A success forgets the failures before it.
  server.forget()
  const results = await Promise.all([call(), call(), call()])
  assert.deepEqual(results.map(text), ['hi', 'hi', 'hi'])
})
