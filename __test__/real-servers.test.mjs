// The package against servers that others wrote: three of the official ones, and one of the official SDK for the 2026-07-28 revision.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { connectMcpServer, connectMcpServers, createMcpTools, resultFormats, toolFormats } from '../index.mjs'
import { failure, soon } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { lives, seen } from './support/processes.mjs'

/** Cold first starts of these take up to 14 s. */
const TIMEOUT = 120_000

const file = path => fileURLToPath(new URL(`../${path}`, import.meta.url))
const official = (name, ...args) => ({
  id: name,
  command: [
    process.execPath,
    file(`node_modules/@modelcontextprotocol/server-${name}/dist/index.js`),
    ...args,
  ],
  timeout: TIMEOUT,
})
const MODERN = {
  id: 'modern',
  command: [process.execPath, file('tests/fixtures/modern-server.mjs')],
  timeout: TIMEOUT,
}

async function connected(t, definition, options) {
  const connection = await connectMcpServer(definition, options)
  t.after(() => connection.close())
  return connection
}

function folder(t) {
  // Real, because server-filesystem compares real paths: on macOS the temporary folder is behind a link.
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'workflow-mcp-real-')))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

const text = result => result.content.map(({ text }) => text).join('')
const namesOf = tools => tools.map(({ name }) => name)

// ───────────────────────────── server-everything ─────────────────────────────

test('server-everything: handshake, tools as published, calls of every kind of content', async t => {
  const connection = await connected(t, official('everything'))
  assert.equal(connection.id, 'everything')
  assert.equal(connection.protocolVersion, '2025-11-25')
  assert.equal(typeof connection.serverInfo.name, 'string')
  assert.ok(connection.serverCapabilities.tools)
  assert.equal(typeof connection.instructions, 'string')
  assert.ok(lives(seen(connection.pid)))

  // It adds some tools only after it has seen what the client can do.
  await soon(async () => (await connection.listTools()).tools.length === 13, '13 tools')
  const sum = connection.tools.find(({ name }) => name === 'get-sum')
  assert.equal(sum.inputSchema.type, 'object')
  assert.deepEqual(sum.inputSchema.required, ['a', 'b'])
  assert.ok(Object.isFrozen(sum.inputSchema.properties))
  assert.ok(connection.tools.some(({ outputSchema }) => outputSchema !== undefined))

  assert.equal(text(await connection.callTool('get-sum', { a: 2, b: 3 })), 'The sum of 2 and 3 is 5.')
  assert.equal(text(await connection.callTool({ name: 'echo', arguments: { message: 'hi' } })), 'Echo: hi')
  const weather = await connection.callTool('get-structured-content', { location: 'Chicago' })
  assert.deepEqual(weather.structuredContent, {
    temperature: 36,
    conditions: 'Light rain / drizzle',
    humidity: 82,
  })
  const { content } = await connection.callTool('get-tiny-image')
  const image = content.find(({ type }) => type === 'image')
  assert.equal(image.mimeType, 'image/png')
  assert.equal(Buffer.from(image.data, 'base64').subarray(1, 4).toString(), 'PNG')
  for (const result of await Promise.all(
    Array.from({ length: 50 }, (_, a) => connection.callTool('get-sum', { a, b: 1 })),
  )) {
    assert.equal(result.isError, false)
  }
})

test('server-everything: progress, a tool that fails, a name that is not there, a request, cancelling', async t => {
  const connection = await connected(t, official('everything'))
  const progress = []
  const long = await connection.callTool(
    'trigger-long-running-operation',
    { duration: 1, steps: 4 },
    { onProgress: report => progress.push(report) },
  )
  assert.equal(text(long), 'Long running operation completed. Duration: 1 seconds, Steps: 4.')
  assert.ok(progress.length >= 1 && progress.every(({ total }) => total === 4))

  const failed = await connection.callTool('get-sum', { a: 'no number' })
  assert.equal(failed.isError, true)
  const missing = await failure(connection.callTool('get-summ'))
  assert.equal(missing.code, 'ERR_MCP_TOOL_NOT_FOUND')
  assert.equal(missing.details.nearest, 'get-sum')
  const { resources } = await connection.request('resources/list')
  assert.ok(Array.isArray(resources) && resources.length > 0)
  const unknown = await failure(connection.request('no/such/method'))
  assert.deepEqual([unknown.code, unknown.details.rpcCode], ['ERR_MCP_RPC', -32601])

  const abort = new AbortController()
  const reason = new Error('enough')
  const cancelled = failure(
    connection.callTool('trigger-long-running-operation', { duration: 60, steps: 60 }, abort.signal),
  )
  setTimeout(() => abort.abort(reason), 50)
  assert.equal(await cancelled, reason)
  assert.equal(text(await connection.callTool('get-sum', { a: 1, b: 1 })), 'The sum of 1 and 1 is 2.')
})

test('server-everything sees the environment it was given and no more', async t => {
  const connection = await connected(
    t,
    { ...official('everything'), environment: { MODE: 'quiet' }, inheritEnvironment: ['NOTES_TOKEN'] },
    { env: { PATH: '/usr/bin', NOTES_TOKEN: 't0ken', OTHER: 'x' }, allowedInheritedEnvKeys: ['NOTES_TOKEN'] },
  )
  const env = JSON.parse(text(await connection.callTool('get-env')))
  delete env.__CF_USER_TEXT_ENCODING
  assert.deepEqual(env, { PATH: '/usr/bin', MODE: 'quiet', NOTES_TOKEN: 't0ken' })
})

// ───────────────────────────── server-filesystem, server-memory ─────────────────────────────

test('server-filesystem reads a file inside of its folder, and nothing outside', async t => {
  const path = folder(t)
  writeFileSync(join(path, 'hello.txt'), 'Grüße \u{1f600}\n')
  const connection = await connected(t, official('filesystem', path))
  assert.equal(connection.tools.length, 14)
  assert.ok(connection.tools.every(({ outputSchema }) => outputSchema))
  const read = await connection.callTool('read_text_file', { path: join(path, 'hello.txt') })
  assert.equal(text(read), 'Grüße \u{1f600}\n')
  assert.deepEqual(read.structuredContent, { content: 'Grüße \u{1f600}\n' })
  const outside = await connection.callTool('read_text_file', { path: '/etc/passwd' })
  assert.equal(outside.isError, true)
  assert.match(text(outside), /Access denied/)
})

test('tools.include and tools.exclude choose among what a server publishes', async t => {
  const warnings = []
  const tools = {
    include: ['read_text_file', 'list_directory', 'read_txt_file'],
    exclude: ['list_directory'],
  }
  const connection = await connected(
    t,
    { ...official('filesystem', folder(t)), tools },
    {
      onWarning: warning => warnings.push(warning),
    },
  )
  assert.deepEqual(namesOf(connection.tools), ['read_text_file'])
  assert.equal((await failure(connection.callTool('list_directory', {}))).code, 'ERR_MCP_TOOL_NOT_FOUND')
  await soon(() => warnings.length > 0, 'a warning')
  assert.deepEqual(
    warnings.map(({ code, details }) => [code, details]),
    [['WARN_MCP_UNKNOWN_TOOL', { tool: 'read_txt_file' }]],
  )
})

test('server-memory keeps what it is told in the file it is given', async t => {
  const environment = { MEMORY_FILE_PATH: join(folder(t), 'memory.jsonl') }
  const definition = { ...official('memory'), environment }
  const entities = [{ name: 'A', entityType: 't', observations: ['o1'] }]
  const first = await connected(t, definition)
  assert.equal(first.tools.length, 9)
  const created = await first.callTool('create_entities', { entities })
  assert.deepEqual(created.structuredContent, { entities })
  await first.close()
  const second = await connected(t, definition)
  const graph = await second.callTool('read_graph')
  assert.deepEqual(graph.structuredContent.entities, entities)
  const deleted = await second.callTool('delete_entities', { entityNames: ['A'] })
  assert.equal(deleted.structuredContent.success, true)
})

// ───────────────────────────── the 2026-07-28 revision ─────────────────────────────

for (const protocol of ['auto', 'modern', '2026-07-28']) {
  test(`a server that speaks 2026-07-28 alone is connected to with protocol: '${protocol}'`, async t => {
    const connection = await connected(t, MODERN, { protocol })
    assert.equal(connection.protocolVersion, '2026-07-28')
    assert.deepEqual(connection.serverInfo, { name: 'modern', version: '1.0.0' })
    assert.equal(connection.instructions, 'Adds numbers.')
    assert.deepEqual(namesOf(connection.tools), ['add', 'fail', 'grow'])
    const [{ result }, ...sums] = await Promise.all([
      connection.callTool('add', { a: 2, b: 3 }).then(result => ({ result })),
      ...Array.from({ length: 20 }, (_, a) => connection.callTool('add', { a, b: 1 })),
    ])
    assert.equal(text(result), '5')
    assert.equal(result.isError, false)
    assert.deepEqual(result.structuredContent, { sum: 5 })
    for (const [a, { structuredContent }] of sums.entries())
      assert.deepEqual(structuredContent, { sum: a + 1 })
    assert.equal((await connection.callTool('fail')).isError, true)
    assert.equal((await connection.callTool('add', { a: 'x' })).isError, true)
    assert.deepEqual((await connection.listTools()).tools, [...connection.tools])
    await connection.callTool('grow')
    await soon(() => namesOf(connection.tools).includes('grown'))
    assert.deepEqual((await connection.callTool('grown')).content, [])
    const [add] = await createMcpTools({ connection })
    assert.equal(resultFormats.text(await add.execute({ a: 20, b: 22 })), '42')
    const server = seen(connection.pid)
    const info = await connection.close()
    assert.deepEqual([info.exitCode, info.survivors], [0, []])
    assert.equal(lives(server), false)
  })
}

test('each side of the line is refused where only the other is allowed, and the process is gone', async () => {
  for (const protocol of ['legacy', '2025-11-25']) {
    const error = await failure(connectMcpServer(MODERN, { protocol }))
    assert.equal(error.code, 'ERR_MCP_PROTOCOL_VERSION')
    assert.deepEqual([error.details.offered, error.details.answered], ['2025-11-25', ['2026-07-28']])
    assert.match(error.message, /version 2026-07-28, this client offered 2025-11-25/)
  }
  const legacyOnly = official('memory')
  const error = await failure(connectMcpServer(legacyOnly, { protocol: 'modern' }))
  assert.ok(['ERR_MCP_PROTOCOL_VERSION', 'ERR_MCP_HANDSHAKE'].includes(error.code), error.code)
  assert.ok('rpcCode' in error.details || 'answered' in error.details)
})

// ───────────────────────────── agent tools ─────────────────────────────

test('agent tools of real servers: execute, invoke and what goes to the model', async t => {
  const path = folder(t)
  writeFileSync(join(path, 'hello.txt'), 'hello')
  const group = await connectMcpServers([official('everything'), official('filesystem', path), MODERN])
  t.after(() => group.close())
  const tools = await createMcpTools({ connections: group })
  const byName = toolFormats.record(tools)
  assert.equal(Object.keys(byName).length, tools.length)
  for (const { name, parameters } of tools) {
    assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
    assert.equal(parameters.type, 'object')
  }

  const sum = byName['everything__get-sum']
  assert.deepEqual(sum.metadata, { serverId: 'everything', toolName: 'get-sum' })
  const result = await sum.execute({ a: 2, b: 3 })
  assert.equal(text(result), 'The sum of 2 and 3 is 5.')
  assert.equal(await sum.invoke({}, '{"a":2,"b":3}'), 'The sum of 2 and 3 is 5.')
  assert.deepEqual(sum.toModelOutput({ output: result }), { type: 'text', value: 'The sum of 2 and 3 is 5.' })
  const wrong = await sum.execute({ a: 'x' })
  assert.equal(wrong.isError, true)
  assert.match(sum.toModelOutput({ output: wrong }).type, /^error/)
  assert.equal((await failure(sum.invoke({}, '[]'))).code, 'ERR_MCP_INVALID_ARGUMENT')

  const image = byName['everything__get-tiny-image']
  const shown = image.toModelOutput({ output: await image.execute({}) })
  assert.equal(shown.type, 'content')
  assert.ok(shown.value.some(({ type }) => type !== 'text'))

  const read = byName.filesystem__read_text_file
  const args = { path: join(path, 'hello.txt') }
  assert.equal((await read.execute(args)).structuredContent.content, 'hello')
  assert.match(String(await read.invoke({}, JSON.stringify(args))), /hello/)
  assert.deepEqual((await byName.modern__add.execute({ a: 1, b: 1 })).structuredContent, { sum: 2 })

  const [checked] = await createMcpTools({
    connection: group.get('everything'),
    include: tool => tool.name === 'get-sum',
    validate: true,
  })
  assert.equal((await failure(checked.execute({ a: 'x', b: 1 }))).code, 'ERR_MCP_INVALID_ARGUMENT')

  const abort = new AbortController()
  const long = byName['everything__trigger-long-running-operation']
  const pending = failure(long.execute({ duration: 60, steps: 60 }, { abortSignal: abort.signal }))
  abort.abort(new Error('enough'))
  assert.equal((await pending).message, 'enough')

  await group.close()
  assert.equal(
    sum.description,
    group.get('everything').tools.find(({ name }) => name === 'get-sum').description,
  )
  for (const call of [sum.execute({ a: 1, b: 1 }), sum.invoke({}, '{"a":1,"b":1}')]) {
    const error = await failure(call)
    assert.deepEqual([error.code, error.serverId], ['ERR_MCP_CLOSED', 'everything'])
  }
})

test('agent tools can be made of a connection that is closed', async t => {
  const connection = await connected(t, official('memory'))
  await connection.close()
  const tools = await createMcpTools({ connection })
  assert.equal(tools.length, 9)
  assert.equal((await failure(tools[0].execute({}))).code, 'ERR_MCP_CLOSED')
})

// ───────────────────────────── as written ─────────────────────────────

/** The command lines of this machine's processes. */
function commandLines() {
  if (process.platform !== 'linux')
    return execFileSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' }).split('\n')
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      } catch {
        return ''
      }
    })
}

test('the program of a host, as it is written down, leaves no process behind', async () => {
  // An argument that the server does not mind, by which it is found.
  const mark = `mark-${randomUUID()}`
  const program = host(
    `const main = async () => {
      const connection = await workflow.connectMcpServer(
        { id: "project-tools", command: given.command, inheritEnvironment: ["PROJECT_MCP_BRIDGE_TOKEN"] },
        { allowedInheritedEnvKeys: ["PROJECT_MCP_BRIDGE_TOKEN"] },
      );
      try { return await workflow.createMcpTools({ connection }); } finally { say('connected'); told(); await connection.close(); }
    }
    const tools = await main()
    say(tools.map(({ name }) => name))
    say(await tools[0].execute({}).catch(({ code }) => code))
    told()`,
    {
      given: { command: [...official('memory').command, mark] },
      env: { ...process.env, PROJECT_MCP_BRIDGE_TOKEN: 'br1dge-t0ken' },
    },
  )
  const running = () => commandLines().filter(line => line.includes(mark)).length
  assert.equal(await program.next(), 'connected')
  assert.equal(running(), 1)
  program.tell()
  const names = await program.next()
  assert.equal(names.length, 9)
  assert.ok(names.every(name => name.startsWith('project-tools__')))
  assert.equal(await program.next(), 'ERR_MCP_CLOSED')
  assert.equal(running(), 0)
  program.tell()
  const { code, stderr } = await program.ended
  assert.deepEqual([code, stderr], [0, ''])
})
