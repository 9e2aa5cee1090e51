// Headers: those of the configuration on every request and to their own server only, and those of the protocol.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure, soon } from './support/fixture.mjs'
import { html, httpServer, inTurn, MODERN, usual } from './support/http-server.mjs'
import { clientOf, opened, text } from './support/project.mjs'

const KEY = 'key-93b1f0c7a2'
const hi = { text: 'hi' }

for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) {
  test(`every request of a session has all its headers (${revision})`, async t => {
    const server = await httpServer(t, { GET: exchange => exchange.stream() }, { revision })
    const { project, client } = clientOf(t, server, { headers: { 'X-Api-Key': KEY } })
    await client.listTools()
    await client.call('echo', hi)
    await soon(() => server.seen('GET').length === 1, 'it asks for the stream')
    const [session] = server.sessions
    await project.close()
    const [first, ...later] = server.requests
    assert.equal(first.message.method, 'initialize')
    const kinds = later.map(({ method, message }) => message?.method ?? method).sort()
    assert.deepEqual(kinds, ['DELETE', 'GET', 'notifications/initialized', 'tools/call', 'tools/list'])
    assert.equal(first.headers['mcp-session-id'], undefined)
    for (const { headers } of later) {
      assert.equal(headers['mcp-session-id'], session)
      assert.equal(headers['mcp-protocol-version'], revision)
    }
    for (const { method, headers } of server.requests) {
      assert.equal(headers['x-api-key'], KEY)
      assert.ok(headers['user-agent'])
      if (method === 'DELETE') continue
      assert.ok(headers.accept.includes('text/event-stream'))
      if (method === 'GET') continue
      assert.ok(headers.accept.includes('application/json'))
      assert.equal(headers['content-type'], 'application/json')
    }
  })
}

test('every request of 2026-07-28 says in its headers what it is', async t => {
  const server = await httpServer(t, {}, { revision: MODERN })
  const { project, client } = clientOf(t, server, { headers: { 'X-Api-Key': KEY }, protocol: 'modern' })
  await client.listTools()
  await client.call('echo', hi)
  await project.close()
  const methods = server.requests.map(({ message }) => message.method)
  assert.equal(methods[0], 'server/discover')
  assert.deepEqual([...new Set(methods)].sort(), ['server/discover', 'tools/call', 'tools/list'])
  for (const { headers, message } of server.requests) {
    assert.equal(headers['x-api-key'], KEY)
    assert.equal(headers['mcp-protocol-version'], MODERN)
    assert.equal(headers['mcp-method'], message.method)
    assert.equal(headers['mcp-name'], message.params.name)
    assert.equal(headers['mcp-session-id'], undefined)
    const { _meta } = message.params
    assert.equal(_meta['io.modelcontextprotocol/protocolVersion'], MODERN)
    assert.deepEqual(_meta['io.modelcontextprotocol/clientCapabilities'], {})
    assert.equal(_meta['io.modelcontextprotocol/clientInfo'].name, 'workflow-mcp')
  }
})

test('headers go to their own server and to no other', async t => {
  const [one, other] = [await httpServer(t), await httpServer(t)]
  const project = opened(t, {
    one: { url: one.url, headers: { 'X-Api-Key': KEY, Authorization: `Bearer ${KEY}` } },
    other: { url: other.url },
  })
  await Promise.all([project.mcp('one').call('echo', hi), project.mcp('other').call('echo', hi)])
  await project.close()
  assert.ok(one.requests.every(({ headers }) => headers.authorization === `Bearer ${KEY}`))
  assert.ok(!JSON.stringify(other.requests).includes(KEY))
})

test('a bearer token comes from the variable that is named', async t => {
  const server = await httpServer(t)
  const options = { env: { EXA_TOKEN: KEY }, allowedInheritedEnvKeys: ['EXA_TOKEN'] }
  const { project, client } = clientOf(t, server, { bearerTokenEnv: 'EXA_TOKEN' }, options)
  await client.call('echo', hi)
  await project.close()
  for (const { headers } of server.requests) assert.equal(headers.authorization, `Bearer ${KEY}`)
})

test('a secret of a header is in no error, even if the server says it again', async t => {
  const echoing = exchange => html(500, `<p>${exchange.request.headers['x-api-key']}</p>`)(exchange)
  const server = await httpServer(t, { 'tools/call': echoing })
  const options = { env: { EXA_API_KEY: KEY }, allowedInheritedEnvKeys: ['EXA_API_KEY'] }
  const headers = { 'X-Api-Key': `\${EXA_API_KEY}` }
  const { client } = clientOf(t, server, { headers }, options)
  const error = await failure(client.call('echo', hi))
  assert.equal(server.seen('tools/call')[0].headers['x-api-key'], KEY)
  assert.equal(error.details.body, '<p>«EXA_API_KEY»</p>')
  assert.ok(!(JSON.stringify(error) + error.stack).includes(KEY))
})

const ANNOTATED = {
  name: 'weather',
  inputSchema: {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      level: { type: 'integer', 'x-mcp-header': 'Level' },
      exact: { type: 'boolean', 'x-mcp-header': 'Exact' },
      query: { type: 'string' },
    },
  },
}

test('parameters that a tool wants in headers are there, in the encoding of the standard', async t => {
  const server = await httpServer(t, {}, { revision: MODERN, tools: [ANNOTATED] })
  const { client } = clientOf(t, server)
  for (const [args, expected] of [
    [
      { region: 'eu', level: 3, exact: false, query: 'x' },
      { region: 'eu', level: '3', exact: 'false' },
    ],
    [{ region: 'Zürich' }, { region: '=?base64?WsO8cmljaA==?=' }],
    [{ region: ' eu' }, { region: '=?base64?IGV1?=' }],
    [{ region: 'a\r\nX-Evil: 1' }, { region: '=?base64?YQ0KWC1FdmlsOiAx?=' }],
    [{ region: null, query: 'x' }, {}],
    [{}, {}],
  ]) {
    await client.call('weather', args)
    const { headers } = server.seen('tools/call').at(-1)
    const mirrored = Object.entries(headers).filter(([name]) => name.startsWith('mcp-param-'))
    const wanted = Object.entries(expected).map(([name, value]) => [`mcp-param-${name}`, value])
    assert.deepEqual(Object.fromEntries(mirrored), Object.fromEntries(wanted), JSON.stringify(args))
    assert.equal(headers['x-evil'], undefined)
  }
})

test('a server that finds the headers wrong has its tools listed again, and the call sent once more', async t => {
  const tools = [{ ...ANNOTATED, inputSchema: { type: 'object' } }]
  const mismatch = exchange => exchange.error(400, -32020, 'Header mismatch')
  const outdated = exchange => {
    exchange.server.tools = [ANNOTATED]
    mismatch(exchange)
  }
  const server = await httpServer(t, { 'tools/call': inTurn(outdated, usual) }, { revision: MODERN, tools })
  const { client } = clientOf(t, server)
  assert.equal(text(await client.call('weather', { region: 'eu' })), 'weather done')
  const [before, after, ...more] = server.seen('tools/call')
  assert.equal(more.length, 0)
  assert.equal(before.headers['mcp-param-region'], undefined)
  assert.equal(after.headers['mcp-param-region'], 'eu')
  assert.notEqual(before.message.id, after.message.id)

  server.answers['tools/call'] = mismatch
  const error = await failure(client.call('weather', { region: 'eu' }))
  assert.equal(error.details.rpcCode, -32020)
  assert.equal(server.seen('tools/call').length, 4)
})
