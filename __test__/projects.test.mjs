// Projects: where a configuration comes from, which names there are, and what throws or rejects where there are none.

import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { failure, received, workflow } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { opened } from './support/project.mjs'
import { folder, integration, scripted, thrown } from './support/scripts.mjs'

const { openMcpProject, McpError } = workflow
const EXA = { mcpServers: { exa: { url: 'https://mcp.example.com/mcp' } } }

// ───────────────────────────── where it comes from ─────────────────────────────

test('a project file is found from a folder upwards, and says what it names', t => {
  const root = folder(t, {
    '.vscode/mcp.json':
      '{\n  // VS Code\n  "servers": {"a": {"url": "https://a.example/mcp"}, "off": {"disabled": true}},\n}',
    'deep/er/x.txt': '',
  })
  const project = openMcpProject({ from: join(root, 'deep/er') })
  assert.equal(project.file, join(root, '.vscode/mcp.json'))
  assert.deepEqual(project.serverNames, ['a'])
  assert.ok(Object.isFrozen(project) && Object.isFrozen(project.serverNames))
  assert.equal(project.mcp('a').name, 'a')
})

test('a file that is named is read as it is, and nothing is searched for', t => {
  const root = folder(t, { 'mcp.jsonc': EXA, '.mcp.json': 'no JSON' })
  chmodSync(join(root, 'mcp.jsonc'), 0o666)
  const project = openMcpProject({ config: join(root, 'mcp.jsonc'), from: root })
  assert.equal(project.file, join(root, 'mcp.jsonc'))
  assert.deepEqual(project.serverNames, ['exa'])
  const error = thrown(() => openMcpProject({ config: join(root, 'missing.json') }))
  assert.equal(error.code, 'ERR_MCP_CONFIG')
  assert.equal(error.details.file, join(root, 'missing.json'))
})

test('a configuration in code is read once: later changes of it mean nothing', t => {
  const config = structuredClone(EXA)
  const project = opened(t, config.mcpServers)
  config.mcpServers.other = { url: 'https://b.example' }
  assert.deepEqual(project.serverNames, ['exa'])
  assert.equal(project.file, undefined)
})

test('a malformed, untrusted or unreadable file is an error with its place when the project is opened', t => {
  const root = folder(t)
  const file = join(root, '.mcp.json')
  const refused = (content, mode = 0o600) => {
    writeFileSync(file, content)
    chmodSync(file, mode)
    const error = thrown(() => openMcpProject({ from: root }))
    assert.ok(McpError.is(error) && error.code === 'ERR_MCP_CONFIG', String(error))
    assert.equal(error.details.file, file)
    assert.equal(typeof error.details.reason, 'string')
    assert.ok(error.message.includes(file))
    return error
  }
  assert.equal(refused('{\n  "mcpServers": {\n    "a" 1\n').details.line, 3)
  assert.equal(refused('{\n  "servers": 5\n}').details.line, 2)
  refused('[]')
  refused('')
  if (process.platform !== 'win32') {
    assert.match(refused(JSON.stringify(EXA), 0o606).message, /everybody may write/)
  }
})

test('options are judged before anything is read', () => {
  for (const [options, path] of [
    [{ allowStdIo: true }, 'options.allowStdIo'],
    [{ config: 5 }, 'options.config'],
    [{ config: [] }, 'options.config'],
    [{ onWarning: 'x' }, 'options.onWarning'],
    [{ allowedOrigins: ['mcp.example.com'] }, 'options.allowedOrigins[0]'],
    [{ from: '/no/such/folder' }, 'options.from'],
    ['x', 'options'],
  ]) {
    const error = thrown(() => openMcpProject(options))
    assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT', path)
    assert.equal(error.details.path, path)
  }
})

// ───────────────────────────── names ─────────────────────────────

test('a name that is not there throws at once, with those that are', t => {
  const root = folder(t, {
    '.mcp.json': { mcpServers: { context7: EXA.mcpServers.exa, exa: EXA.mcpServers.exa } },
  })
  const project = openMcpProject({ from: root })
  const error = thrown(() => project.mcp('contxt7'))
  assert.equal(error.code, 'ERR_MCP_SERVER_NOT_FOUND')
  assert.equal(error.serverId, 'contxt7')
  assert.deepEqual([error.details.known, error.details.nearest], [['context7', 'exa'], 'context7'])
  assert.match(error.message, /did you mean context7\?.*context7, exa.*\.mcp\.json/)
})

test('without any file every name is an error that says where it was looked for', t => {
  const root = folder(t)
  mkdirSync(join(root, 'a'))
  const project = openMcpProject({ from: join(root, 'a') })
  assert.deepEqual(project.serverNames, [])
  assert.equal(project.file, undefined)
  const error = thrown(() => project.mcp('exa'))
  assert.equal(error.code, 'ERR_MCP_SERVER_NOT_FOUND')
  assert.deepEqual(error.details.looked, [join(root, 'a'), root])
  assert.ok(error.message.includes(root))
})

test('a disabled server is not there, and the error says that it is disabled', t => {
  const project = opened(t, { off: { url: 'https://a.example', disabled: true } })
  const error = thrown(() => project.mcp('off'))
  assert.equal(error.code, 'ERR_MCP_SERVER_NOT_FOUND')
  assert.match(error.message, /disabled/)
})

test('a server without a url throws unless commands are allowed', t => {
  const { integration: server } = integration()
  const error = thrown(() => opened(t, { server }).mcp('server'))
  assert.equal(error.code, 'ERR_MCP_SERVER_HAS_NO_URL')
  assert.match(error.message, /allowStdio/)
  assert.equal(opened(t, { server }, { allowStdio: true }).mcp('server').name, 'server')
  const bare = thrown(() =>
    opened(t, { server: { uri: 'https://a.example' } }, { allowStdio: true }).mcp('server'),
  )
  assert.equal(bare.code, error.code)
  assert.match(bare.message, /has no url, and has uri;/)
})

test('one client stands for one name, and its methods can be taken apart', async t => {
  const { project, client } = scripted(t)
  assert.equal(project.mcp('server'), client)
  const { call, listTools } = client
  const { mcp } = project
  assert.equal(mcp('server'), client)
  assert.deepEqual((await call('echo', { a: 1 })).structuredContent, { a: 1 })
  assert.ok((await listTools()).some(({ name }) => name === 'echo'))
  assert.equal(thrown(() => mcp(5)).code, 'ERR_MCP_INVALID_ARGUMENT')
})

// ───────────────────────────── arguments ─────────────────────────────

test('a number is a timeout in milliseconds, from a second up; options may say less', async t => {
  const { client } = scripted(t)
  for (const timeout of [0, 5, 30, 999.9, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    const error = await failure(client.call('echo', {}, timeout))
    assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT', String(timeout))
    assert.match(error.message, /milliseconds/)
    assert.equal(thrown(() => client.callSync('echo', {}, timeout)).code, 'ERR_MCP_INVALID_ARGUMENT')
    assert.equal((await failure(client.listTools(timeout))).code, 'ERR_MCP_INVALID_ARGUMENT')
  }
  assert.deepEqual((await client.call('echo', { a: 1 }, 20_000)).structuredContent, { a: 1 })
  const error = await failure(client.call('silent', {}, { timeout: 30 }))
  assert.equal(error.code, 'ERR_MCP_TIMEOUT')
  assert.deepEqual(error.details, { phase: 'call', ms: 30 })
})

test('what cannot be sent is refused, and nothing is opened for it', async t => {
  const { client, log } = scripted(t)
  for (const [tool, args, options] of [
    ['', {}],
    [5, {}],
    ['echo', []],
    ['echo', 'text'],
    ['echo', { big: 1n }],
    ['echo', {}, { timeOut: 5_000 }],
    ['echo', {}, { timeout: 0 }],
    ['echo', {}, 'soon'],
  ]) {
    assert.equal((await failure(client.call(tool, args, options))).code, 'ERR_MCP_INVALID_ARGUMENT')
    assert.equal(thrown(() => client.callSync(tool, args, options)).code, 'ERR_MCP_INVALID_ARGUMENT')
  }
  const { signal } = new AbortController()
  for (const options of [signal, { signal }, { onProgress() {} }]) {
    assert.equal(thrown(() => client.callSync('echo', {}, options)).code, 'ERR_MCP_INVALID_ARGUMENT')
  }
  assert.equal(thrown(() => client.listToolsSync({ meta: {} })).code, 'ERR_MCP_INVALID_ARGUMENT')
  assert.deepEqual(received(log), [])
})

test('calls carry progress, meta and signal as those of a connection do', async t => {
  const { client, log } = scripted(t)
  const steps = []
  const onProgress = ({ progress }) => steps.push(progress)
  await client.call('sleep', { ms: 60, progress: 2 }, { onProgress, meta: { trace: 'x' } })
  assert.equal(steps.at(-1), 2)
  const [{ params }] = received(log, 'tools/call')
  assert.equal(params._meta.trace, 'x')
  const reason = new Error('enough')
  const controller = new AbortController()
  const pending = client.call('silent', {}, { signal: controller.signal })
  setImmediate(() => controller.abort(reason))
  assert.equal(await failure(pending), reason)
  assert.equal(await failure(client.call('silent', {}, AbortSignal.abort(reason))), reason)
})

test('a result is checked as that of a connection is', async t => {
  const { client } = scripted(t)
  assert.deepEqual(await client.call('result', { text: '{}' }), { content: [], isError: false })
  assert.equal((await client.call('fail', { text: 'no' })).isError, true)
  for (const text of ['[]', '{"content":5}', '{"resultType":"strange"}']) {
    const error = await failure(client.call('result', { text }))
    assert.deepEqual([error.code, error.serverId], ['ERR_MCP_INVALID_MESSAGE', 'server'])
  }
  const error = await failure(client.call('rpc_error', { error: '{"code":-32000,"message":"no"}' }))
  assert.deepEqual([error.code, error.details.rpcCode], ['ERR_MCP_RPC', -32000])
})

test('a tool of any name is sent: the server judges it, and is not asked for a list', async t => {
  const { client, log } = scripted(t)
  assert.equal((await failure(client.call('no_such_tool'))).code, 'ERR_MCP_RPC')
  assert.deepEqual(received(log, 'tools/list'), [])
})

// ───────────────────────────── the current project ─────────────────────────────

test('mcp() takes the project of the current folder, and mcpCall rejects where it throws', async t => {
  const { integration: server, log } = integration()
  const root = folder(t, { '.mcp.json': { mcpServers: { server, web: { url: 'https://a.example' } } } })
  const { ended } = host(
    `process.chdir(given.root)
    const code = run => { try { run() } catch (error) { return error.code } }
    say(code(() => workflow.mcp('nobody')))
    say(code(() => workflow.mcp('server')))
    say(code(() => workflow.mcpCallSync('nobody', 'x')))
    say(await workflow.mcpCall('nobody', 'x').catch(error => error.code))
    say(workflow.mcp('web') === workflow.mcp('web'))
    workflow.configureMcp({ config: given.root + '/.mcp.json', allowStdio: true })
    say((await workflow.mcpCall('server', 'echo', { a: 1 })).structuredContent)
    say(workflow.mcpCallSync('server', 'echo', { a: 2 }, 20_000).structuredContent)
    const first = workflow.mcp('server')
    const pending = first.call('silent')
    say(code(() => workflow.configureMcp({ config: 5 })))
    say((await first.call('echo', { a: 3 })).structuredContent)
    workflow.configureMcp({ config: { servers: { other: { url: 'https://a.example' } } } })
    say(await pending.catch(error => error.code))
    say(await first.call('echo').catch(error => error.code))
    say(code(() => workflow.mcp('server')))`,
    { given: { root } },
  )
  const { said, code, stderr } = await ended
  assert.equal(code, 0, stderr)
  const missing = 'ERR_MCP_SERVER_NOT_FOUND'
  assert.deepEqual(said, [
    ...[missing, 'ERR_MCP_SERVER_HAS_NO_URL', missing, missing, true],
    ...[{ a: 1 }, { a: 2 }, 'ERR_MCP_INVALID_ARGUMENT', { a: 3 }],
    ...['ERR_MCP_CLOSED', 'ERR_MCP_CLOSED', missing],
  ])
  assert.equal(received(log, 'initialize').length, 1)
})

test('a broken file of the current folder is an error of the first mcp(), and mended it is read', async t => {
  const root = folder(t)
  const { ended } = host(
    `import { writeFileSync } from 'node:fs'
    process.chdir(given.root)
    const code = () => { try { return workflow.mcp('exa').name } catch (error) { return error.code } }
    say(code())
    writeFileSync('.mcp.json', '{')
    say(code())
    writeFileSync('.mcp.json', '{"servers": {"exa": {"url": "https://a.example"}}}')
    say(code())`,
    { given: { root } },
  )
  const { said, stderr } = await ended
  assert.deepEqual(said, ['ERR_MCP_SERVER_NOT_FOUND', 'ERR_MCP_CONFIG', 'exa'], stderr)
})
