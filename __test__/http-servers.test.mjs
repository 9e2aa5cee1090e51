// Real servers over HTTP, each behind a recording proxy: what a script gets of them, and what they get of it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure, soon } from './support/fixture.mjs'
import { everything, modern, pythonServer } from './support/http-programs.mjs'
import { recorder } from './support/http-recorder.mjs'
import { clientOf, opened, text } from './support/project.mjs'

/** The client of a server, and the proxy in between. */
async function reach(t, server, more) {
  const wire = await recorder(t, server.url)
  return { wire, ...clientOf(t, wire, { timeout: 60_000, ...more }) }
}

const names = tools => tools.map(tool => tool.name).sort()

async function callsWithProgress(client, tool, args) {
  const seen = []
  const result = await client.call(tool, args, { onProgress: progress => seen.push(progress) })
  return { result, seen }
}

function rises(seen) {
  assert.ok(seen.length >= 1, 'some progress is told')
  const values = seen.map(({ progress }) => progress)
  assert.deepEqual(
    values,
    [...new Set(values)].sort((a, b) => a - b),
  )
}

/** Closes the project, and looks at how the session was ended: once, with its own id, and by the server's leave. */
async function endsItsSession({ wire, project }) {
  const [{ answered }] = wire.seen('initialize')
  assert.ok(answered['mcp-session-id'])
  await project.close()
  const deletions = wire.seen('DELETE')
  assert.equal(deletions.length, 1)
  assert.equal(deletions[0].headers['mcp-session-id'], answered['mcp-session-id'])
  assert.equal(deletions[0].status, 200)
  await soon(() => wire.open === 0, 'no connection is left')
}

async function endsWithoutSession({ wire, project }) {
  await project.close()
  assert.equal(wire.seen('DELETE').length, 0)
  await soon(() => wire.open === 0, 'no connection is left')
}

test('server-everything: tools, calls, progress, the end of the session', async t => {
  const server = await reach(t, await everything(t))
  const { client } = server
  const tools = await client.listTools()
  assert.ok(names(tools).includes('get-sum'))
  const sum = await client.call('get-sum', { a: 2, b: 3 })
  assert.equal(text(sum), 'The sum of 2 and 3 is 5.')
  const weather = await client.call('get-structured-content', { location: 'Chicago' })
  assert.deepEqual(weather.structuredContent, {
    temperature: 36,
    conditions: 'Light rain / drizzle',
    humidity: 82,
  })
  const { result, seen } = await callsWithProgress(client, 'trigger-long-running-operation', {
    duration: 1,
    steps: 4,
  })
  assert.equal(text(result), 'Long running operation completed. Duration: 1 seconds, Steps: 4.')
  rises(seen)
  await endsItsSession(server)
})

test('server-everything: what a server does not know is an error of its own words', async t => {
  const { client } = await reach(t, await everything(t))
  const result = await client.call('nosuch')
  assert.equal(result.isError, true)
  assert.match(text(result), /Tool nosuch not found/)
})

for (const [kind, protocol, version] of [
  ['dual', undefined, '2025-11-25'],
  ['dual', 'modern', '2026-07-28'],
  ['modern', undefined, '2026-07-28'],
  ['modern', '2026-07-28', '2026-07-28'],
]) {
  test(`the JavaScript SDK, ${kind}, protocol ${protocol ?? 'by default'}: tools, calls, progress`, async t => {
    const server = await reach(t, await modern(t, kind), protocol && { protocol })
    const { client, wire } = server
    assert.deepEqual(names(await client.listTools()), ['add', 'ask', 'echo', 'progress'])
    assert.equal(text(await client.call('echo', { text: 'Grüße 🌍' })), 'Grüße 🌍')
    assert.deepEqual((await client.call('add', { a: 2, b: 3 })).structuredContent, { sum: 5 })
    const { result, seen } = await callsWithProgress(client, 'progress', { steps: 5 })
    assert.equal(text(result), '5 steps')
    rises(seen)
    for (const { headers } of wire.seen('tools/call')) assert.equal(headers['mcp-protocol-version'], version)
    await endsWithoutSession(server)
  })
}

test('the JavaScript SDK, 2026-07-28: requests say in headers what they are, parameters included', async t => {
  const { client, wire } = await reach(t, await modern(t, 'modern'))
  await client.call('echo', { text: 'hi', region: 'Zürich' })
  const [{ headers }] = wire.seen('tools/call')
  assert.equal(headers['mcp-method'], 'tools/call')
  assert.equal(headers['mcp-name'], 'echo')
  const encoded = `=?base64?${Buffer.from('Zürich').toString('base64')}?=`
  assert.equal(headers['mcp-param-region'], encoded)
})

test('the JavaScript SDK, 2026-07-28: what a tool asks in the middle of a call, the host answers', async t => {
  const { url } = await modern(t, 'modern')
  const onInputRequired = async () => ({ region: { action: 'accept', content: { region: 'eu' } } })
  const { client } = clientOf(t, { url }, {}, { onInputRequired })
  assert.equal(text(await client.call('ask')), 'region eu')
  // The thread that would have to answer waits for the call.
  assert.throws(() => client.callSync('ask'), { code: 'ERR_MCP_WOULD_BLOCK' })
  assert.equal(text(client.callSync('add', { a: 1, b: 2 })), '3')
})

test('the JavaScript SDK: a server of 2026-07-28 alone refuses whoever insists on an older revision', async t => {
  const { client } = await reach(t, await modern(t, 'modern'), { protocol: 'legacy' })
  const error = await failure(client.listTools())
  assert.equal(error.name, 'McpError')
  assert.match(error.message, /2026-07-28/)
})

for (const kind of ['stateful', 'json', 'polling']) {
  test(`the Python SDK, ${kind}: tools, calls, progress, the end of the session`, async t => {
    const server = await reach(t, await pythonServer(t, kind))
    const { client } = server
    assert.deepEqual(names(await client.listTools()), ['add', 'echo', 'poll', 'progress'])
    assert.equal(text(await client.call('echo', { text: 'Grüße 🌍' })), 'Grüße 🌍')
    assert.deepEqual((await client.call('add', { a: 2, b: 3 })).structuredContent, { result: 5 })
    const { result, seen } = await callsWithProgress(client, 'progress', { steps: 5 })
    assert.equal(text(result), '5 steps')
    // Where there are no streams, there is no progress.
    if (kind === 'json') assert.deepEqual(seen, [])
    else rises(seen)
    await endsItsSession(server)
  })
}

test('the Python SDK, stateless: tools, calls, progress, and no session to end', async t => {
  const server = await reach(t, await pythonServer(t, 'stateless'))
  const { client } = server
  assert.deepEqual(names(await client.listTools()), ['add', 'echo', 'poll', 'progress'])
  assert.equal(text(await client.call('add', { a: 2, b: 3 })), '5')
  const { result, seen } = await callsWithProgress(client, 'progress', { steps: 5 })
  assert.equal(text(result), '5 steps')
  rises(seen)
  await endsWithoutSession(server)
})

test('the Python SDK, polling: a call whose stream the server closes is waited for by asking again', async t => {
  const server = await reach(t, await pythonServer(t, 'polling'))
  const { client, wire } = server
  const { result, seen } = await callsWithProgress(client, 'poll', {})
  assert.equal(text(result), 'polled')
  rises(seen)
  assert.equal(wire.seen('tools/call').length, 1)
  const resumed = wire.seen('GET').filter(({ headers }) => headers['last-event-id'] !== undefined)
  assert.ok(resumed.length >= 2, `it came back ${resumed.length} times`)
  await endsItsSession(server)
})

test('the Python SDK, 2026-07-28: tools, calls, progress', async t => {
  const server = await reach(t, await pythonServer(t, 'stateful'), { protocol: 'modern' })
  const { client } = server
  assert.deepEqual(names(await client.listTools()), ['add', 'echo', 'poll', 'progress'])
  assert.equal(text(await client.call('add', { a: 2, b: 3 })), '5')
  const { result, seen } = await callsWithProgress(client, 'progress', { steps: 5 })
  assert.equal(text(result), '5 steps')
  rises(seen)
  await endsWithoutSession(server)
})

test('calls of several servers of one project run side by side', async t => {
  const [one, other] = await Promise.all([pythonServer(t, 'stateful'), modern(t, 'dual')])
  const project = opened(t, { one: { url: one.url }, other: { url: other.url } })
  const results = await Promise.all([
    project.mcp('one').call('add', { a: 1, b: 1 }),
    project.mcp('other').call('add', { a: 2, b: 2 }),
    project.mcp('one').call('echo', { text: 'three' }),
  ])
  assert.deepEqual(results.map(text), ['2', '4', 'three'])
})
