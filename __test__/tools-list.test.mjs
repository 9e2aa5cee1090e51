import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  connected,
  failure,
  fixture,
  logged,
  loggedPid,
  received,
  soon,
  workflow,
} from './support/fixture.mjs'
import { gone, seen } from './support/processes.mjs'

const { connectMcpServer } = workflow

const names = ({ tools }) => tools.map(({ name }) => name)

/** Keeps the warnings of a connection. */
function hearing() {
  const warnings = []
  return { warnings, options: { onWarning: (warning, serverId) => warnings.push({ ...warning, serverId }) } }
}

test('tools are as published: every field, in order, numbers and odd keys included', async t => {
  const tool =
    `{"name":"odd","title":"Odd","inputSchema":{"type":"object","properties":{"__proto__":{"maximum":9007199254740993},"b":true}},
    "outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"icons":[{"src":"data:,"}],"_meta":{"z":1,"a":1e400},"x-own":null}`.replace(
      /\n\s*/,
      '',
    )
  const { connection } = await connected(t, ['--tools', '0', '--extra', tool])
  assert.equal(JSON.stringify(connection.tools[0]), JSON.stringify(JSON.parse(tool)))
  assert.deepEqual(connection.tools[0], JSON.parse(tool))
  assert.equal({}.maximum, undefined)
})

test('a schema may be a boolean, and deeply nested', async t => {
  const deep = `{"name":"deep","inputSchema":${'{"not":'.repeat(500)}true${'}'.repeat(500)}}`
  const { connection } = await connected(t, [
    '--tools',
    '0',
    '--extra',
    '{"name":"any","inputSchema":true}',
    '--extra',
    deep,
  ])
  assert.equal(connection.tools[0].inputSchema, true)
  assert.equal(JSON.stringify(connection.tools[1]), deep)
})

test('a malformed tool costs itself and a warning', async t => {
  const malformed = [
    '7',
    'null',
    '{}',
    '{"name":"","inputSchema":{}}',
    '{"name":"no_schema"}',
    '{"name":"n","inputSchema":null}',
  ]
  const { warnings, options } = hearing()
  const extra = [...malformed, '{"name":"good","inputSchema":{}}'].flatMap(tool => ['--extra', tool])
  const { connection } = await connected(t, ['--tools', '1', ...extra], options)
  assert.deepEqual(names(connection), ['t0', 'good'])
  await soon(() => warnings.length === malformed.length)
  for (const { code, serverId } of warnings)
    assert.deepEqual([code, serverId], ['WARN_MCP_TOOL_SKIPPED', 'fixture'])
  assert.equal(warnings[4].details.tool, 'no_schema')
})

test('of two tools of one name the first counts, with a warning', async t => {
  const { warnings, options } = hearing()
  const extra = ['--extra', '{"name":"t0","description":"double","inputSchema":{}}']
  const { connection } = await connected(t, ['--tools', '2', ...extra], options)
  assert.deepEqual(names(connection), ['t0', 't1'])
  assert.equal(connection.tools[0].description, 'Tool 0')
  await soon(() => warnings.length === 1)
  assert.equal(warnings[0].code, 'WARN_MCP_DUPLICATE_TOOL')
  assert.equal(warnings[0].details.tool, 't0')
})

test('256 tools are allowed; with 257 the connect fails and the process is gone', async t => {
  const { connection } = await connected(t, ['--tools', '256'])
  assert.equal(connection.tools.length, 256)
  const { definition, log } = fixture(['--tools', '257'])
  const error = await failure(connectMcpServer(definition))
  assert.equal(error.code, 'ERR_MCP_TOO_MANY_TOOLS')
  assert.equal(error.serverId, 'fixture')
  assert.deepEqual(error.details, { limit: 256, count: 257 })
  const server = seen(loggedPid(log))
  if (server) await gone(server)
})

test('include and exclude come before the limit, and decide what can be called', async t => {
  const include = { tools: { include: ['t3', 't299', 't7'], exclude: ['t7'] } }
  const { connection, log } = await connected(t, ['--tools', '300'], {}, include)
  assert.deepEqual(names(connection), ['t3', 't299'])
  for (const hidden of ['t7', 't4']) {
    assert.equal((await failure(connection.callTool(hidden))).code, 'ERR_MCP_TOOL_NOT_FOUND')
  }
  assert.deepEqual(received(log, 'tools/call'), [])
  assert.equal((await connection.callTool('t299')).content[0].text, 't299')
  const exclude = Array.from({ length: 44 }, (_, index) => `t${index}`)
  const other = await connected(t, ['--tools', '300'], {}, { tools: { exclude } })
  assert.equal(other.connection.tools.length, 256)
})

test('a name in include that the server does not publish is a warning', async t => {
  const { warnings, options } = hearing()
  const more = { tools: { include: ['t0', 'renamed', 't1'], exclude: ['t1', 'unknown too'] } }
  const { connection } = await connected(t, ['--tools', '3'], options, more)
  assert.deepEqual(names(connection), ['t0'])
  await soon(() => warnings.length > 0)
  assert.deepEqual(
    warnings.map(({ code, details }) => [code, details.tool]),
    [['WARN_MCP_UNKNOWN_TOOL', 'renamed']],
  )
})

test('pages are put together in order', async t => {
  const { connection, log } = await connected(t, ['--tools', '64', '--page-size', '1'])
  assert.deepEqual(
    names(connection),
    Array.from({ length: 64 }, (_, index) => `t${index}`),
  )
  const cursors = received(log, 'tools/list').map(({ params }) => params?.cursor)
  assert.deepEqual(cursors.slice(0, 3), [undefined, '1', '2'])
  assert.equal(cursors.length, 64)
})

test('tools of all pages are frozen, in one array, and can be called', async t => {
  const { connection } = await connected(t, ['--tools', '5', '--page-size', '2'])
  const { tools } = connection
  assert.ok(Object.isFrozen(tools) && Array.isArray(tools))
  for (const tool of tools) assert.ok(Object.isFrozen(tool) && Object.isFrozen(tool.inputSchema))
  for (const { name } of tools) assert.equal((await connection.callTool(name)).content[0].text, name)
  assert.deepEqual((await connection.listTools()).tools, tools)
})

for (const cursor of ['same', '']) {
  test(`a cursor that is always '${cursor}' is an end only with the last page`, async t => {
    const { connection } = await connected(t, ['--tools', '5', '--page-size', '2', `--cursor=${cursor}`])
    assert.deepEqual(names(connection), ['t0', 't1', 't2', 't3', 't4'])
  })
}

test('a page that comes again is the end of the list, with a warning', async t => {
  const { warnings, options } = hearing()
  const switches = ['--tools', '5', '--page-size', '2', '--same-page']
  const { connection, log } = await connected(t, switches, options)
  assert.deepEqual(names(connection), ['t0', 't1'])
  assert.equal(received(log, 'tools/list').length, 2)
  await soon(() => warnings.length === 1)
  assert.equal(warnings[0].code, 'WARN_MCP_REPEATED_PAGE')
})

test('cursors without end: the connect fails after 64 pages and the process is gone', async () => {
  const { definition, log } = fixture(['--endless'])
  const error = await failure(connectMcpServer(definition))
  assert.equal(error.code, 'ERR_MCP_TOO_MANY_PAGES')
  assert.equal(error.details.limit, 64)
  assert.equal(received(log, 'tools/list').length, 64)
  const server = seen(loggedPid(log))
  if (server) await gone(server)
})

test('in the middle of a list without end, the timeout and an abort end the connect', async () => {
  const switches = ['--endless', '--list-slow', '30']
  const late = fixture(switches)
  const error = await failure(connectMcpServer(late.definition, { connectTimeout: 500 }))
  assert.deepEqual([error.code, error.details.phase], ['ERR_MCP_TIMEOUT', 'list'])
  const aborted = fixture(switches)
  const controller = new AbortController()
  const connecting = failure(connectMcpServer(aborted.definition, { signal: controller.signal }))
  await soon(() => received(aborted.log, 'tools/list').length > 2)
  controller.abort('enough')
  assert.equal(await connecting, 'enough')
  for (const { log } of [late, aborted]) {
    assert.ok(received(log, 'tools/list').length < 64)
    const server = seen(loggedPid(log))
    if (server) await gone(server)
  }
})

for (const result of ['null', '{}', '{"tools":{}}', '{"tools":null}', '"text"']) {
  test(`a list that cannot be read fails the connect: ${result}`, async () => {
    const { definition } = fixture(['--list-result', result])
    const error = await failure(connectMcpServer(definition))
    assert.equal(error.code, 'ERR_MCP_INVALID_MESSAGE')
    assert.equal(error.serverId, 'fixture')
  })
}

test('an error in place of the list fails the connect with its code', async () => {
  const { definition } = fixture(['--list-error=-32603'])
  const error = await failure(connectMcpServer(definition))
  assert.equal(error.code, 'ERR_MCP_RPC')
  assert.equal(error.details.rpcCode, -32603)
})

test('listTools asks again, replaces tools and gives a list that is the caller’s own', async t => {
  const { connection } = await connected(t)
  const before = connection.tools
  await connection.callTool('change', { add: ['extra'], remove: ['echo'] })
  const { tools } = await connection.listTools()
  assert.deepEqual(tools, [...connection.tools])
  assert.ok(names({ tools }).includes('extra') && !names({ tools }).includes('echo'))
  assert.ok(
    before.some(({ name }) => name === 'echo'),
    'a list that was taken stays as it was',
  )
  tools.pop()
  assert.equal(connection.tools.length, tools.length + 1)
  assert.ok(Object.isFrozen(connection.tools) && connection.tools.every(Object.isFrozen))
  assert.equal((await connection.callTool('extra')).content[0].text, 'extra')
  assert.equal((await failure(connection.callTool('echo'))).code, 'ERR_MCP_TOOL_NOT_FOUND')
})

test('the timeout of a listing also bounds its wait for another one', async t => {
  const { connection } = await connected(t, ['--list-slow', '1000'])
  const order = []
  const first = connection.listTools().finally(() => order.push('first'))
  const second = failure(connection.listTools(undefined, { timeout: 50 })).finally(() => order.push('second'))
  assert.deepEqual((await second).details, { phase: 'list', ms: 50 })
  await first
  assert.deepEqual(order, ['second', 'first'])
})

test('meta goes out with each page of a listing', async t => {
  const { connection, log } = await connected(t, ['--tools', '4', '--page-size', '2'])
  await connection.listTools(undefined, { meta: { traceparent: 't' } })
  const params = received(log, 'tools/list').map(({ params }) => params)
  assert.deepEqual(params, [
    undefined,
    { cursor: '2' },
    { _meta: { traceparent: 't' } },
    { cursor: '2', _meta: { traceparent: 't' } },
  ])
})

test('when the server tells of a change, tools are the new ones and onToolsChanged hears them', async t => {
  const heard = []
  const { connection } = await connected(t, [], {
    onToolsChanged: (...given) => heard.push([...given, connection.tools]),
  })
  await connection.callTool('change', { add: ['extra'] })
  const [[tools, serverId, current]] = await soon(() => heard.length > 0 && heard)
  assert.equal(serverId, 'fixture')
  assert.equal(tools, current)
  assert.equal(tools, connection.tools)
  assert.ok(names({ tools }).includes('extra'))
  assert.ok(Object.isFrozen(tools))
  assert.equal((await connection.callTool('extra')).content[0].text, 'extra')
})

test('a change is followed without a listener too', async t => {
  const { connection } = await connected(t)
  await connection.callTool('change', { add: ['extra'] })
  await soon(() => names(connection).includes('extra'))
})

for (const [kind, switches] of [
  ['a legacy', []],
  ['a modern', ['--modern', '--subscriptions']],
]) {
  test(`many changes of ${kind} server at once end with the newest list, one listing at a time`, async t => {
    const { connection, log } = await connected(t, ['--list-slow', '30', ...switches])
    const added = Array.from({ length: 20 }, (_, index) => `extra${index}`)
    const listing = [connection.listTools(), connection.listTools()]
    await Promise.all(added.map(name => connection.callTool('change', { add: [name] })))
    await soon(() => added.every(name => names(connection).includes(name)))
    await Promise.all(listing)
    const lists = logged(log).filter(line => line === '#listed' || line.includes('"tools/list"'))
    assert.ok(lists.length < 2 * 20, 'changes while a listing waits are one listing')
    for (const [index, line] of lists.entries()) {
      assert.equal(
        line === '#listed',
        index % 2 === 1,
        'a list was asked for while another one was under way',
      )
    }
  })
}

test('a change that is told during the first listing is not lost, however late JavaScript hears of it', async t => {
  const { definition } = fixture(['--tools', '1', '--change-on-list'])
  const connecting = connectMcpServer(definition)
  // Both lists are waiting by the time this thread looks.
  const end = Date.now() + 1_500
  while (Date.now() < end);
  const connection = await connecting
  t.after(() => connection.close())
  await soon(() => names(connection).includes('added1'))
})

for (const [kind, switches] of [
  ['a legacy', []],
  ['a modern', ['--modern', '--subscriptions']],
]) {
  test(`${kind} server that tells of a change whenever it is asked is not asked without end`, async t => {
    const begun = performance.now()
    const { connection, log } = await connected(t, ['--always-changing', ...switches])
    const lists = () => received(log, 'tools/list').length
    await soon(() => lists() > 4, 'some lists')
    const count = lists()
    // One at the start, one at once for the first change, and then ten a second.
    assert.ok(count <= 2 + (performance.now() - begun) / 100, `${count} lists`)
    assert.equal((await connection.callTool('echo', { still: 1 })).structuredContent.still, 1)
  })
}

test('a refresh that fails leaves the old list, with a warning', async t => {
  const { warnings, options } = hearing()
  const { connection } = await connected(t, [], options)
  const { tools } = connection
  const add = Array.from({ length: 300 }, (_, index) => `extra${index}`)
  await connection.callTool('change', { add })
  await soon(() => warnings.length > 0)
  assert.equal(warnings[0].code, 'WARN_MCP_TOOLS_NOT_REFRESHED')
  assert.equal(warnings[0].details.error.code, 'ERR_MCP_TOO_MANY_TOOLS')
  assert.equal(connection.tools, tools)
  assert.equal((await failure(connection.listTools())).code, 'ERR_MCP_TOO_MANY_TOOLS')
  assert.equal(connection.tools, tools)
  assert.equal((await connection.callTool('echo', { a: 1 })).structuredContent.a, 1)
})
