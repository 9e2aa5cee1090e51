// What a server sees of its host's environment, and what anybody sees of the values that it got.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { connectMcpServer, connectMcpServers, createMcpTools } from '../index.mjs'
import { failure, fixture, soon } from './support/fixture.mjs'
import { texts } from './support/refusals.mjs'
import { assertErrorTellsNothing, assertTold, inheriting, SECRETS, telltale } from './support/secrets.mjs'

/** The environment of a server, as that process itself sees it. */
async function environmentOf(more, options) {
  const connection = await connectMcpServer(fixture([], more).definition, options)
  try {
    const { env } = (await connection.callTool('about')).structuredContent
    // macOS puts it into every process.
    delete env.__CF_USER_TEXT_ENCODING
    return env
  } finally {
    await connection.close()
  }
}

/** Sets variables of this process until the end of the test. */
function hostVariables(t, variables) {
  for (const [name, value] of Object.entries(variables)) {
    const before = process.env[name]
    t.after(() => {
      if (before === undefined) delete process.env[name]
      else process.env[name] = before
    })
    process.env[name] = value
  }
}

// ───────────────────────────── what the server gets ─────────────────────────────

const BASE = {
  HOME: '/home/somebody',
  LOGNAME: 'somebody',
  PATH: '/usr/bin:/bin',
  SHELL: '/bin/sh',
  TERM: 'dumb',
  USER: 'somebody',
  LANG: 'de_DE.UTF-8',
  LC_ALL: 'C',
  LC_CTYPE: 'C.UTF-8',
  TMPDIR: '/tmp',
  TZ: 'Europe/Berlin',
}

const posix = { skip: process.platform === 'win32' }

test('a server gets the base, what is fixed and what is inherited, and nothing else', posix, async () => {
  const env = {
    ...BASE,
    NOTES_TOKEN: 't0ken-of-the-notes',
    NOTES_EMPTY: '',
    OTHER_TOKEN: 'n0t-f0r-this-server',
    NODE_OPTIONS: '--no-such-option',
    LD_PRELOAD: '/no/such/library.so',
    npm_config_registry: 'x',
    PWD: '/',
    UNSET: undefined,
  }
  const seen = await environmentOf(
    { environment: { MODE: 'quiet', EMPTY: '' }, inheritEnvironment: ['NOTES_TOKEN', 'NOTES_EMPTY'] },
    { env, allowedInheritedEnvKeys: ['NOTES_TOKEN', 'NOTES_EMPTY', 'OTHER_TOKEN'] },
  )
  assert.deepEqual(seen, {
    ...BASE,
    MODE: 'quiet',
    EMPTY: '',
    NOTES_TOKEN: 't0ken-of-the-notes',
    NOTES_EMPTY: '',
  })
})

test("without options.env the host's own environment is read, by the same rules", posix, async t => {
  hostVariables(t, {
    NODE_OPTIONS: '--no-such-option',
    NODE_EXTRA_CA_CERTS: '/no/such/file',
    LD_PRELOAD: '/no/such/library.so',
    DYLD_INSERT_LIBRARIES: '/no/such/library.dylib',
    AWS_SECRET_ACCESS_KEY: 'n0t-f0r-this-server',
    NOTES_TOKEN: 't0ken-of-the-notes',
    TZ: 'Asia/Tokyo',
  })
  const options = { allowedInheritedEnvKeys: ['NOTES_TOKEN'] }
  const base = Object.fromEntries(
    Object.keys(BASE)
      .filter(name => process.env[name] !== undefined && !process.env[name].startsWith('()'))
      .map(name => [name, process.env[name]]),
  )
  assert.equal(base.TZ, 'Asia/Tokyo')
  assert.deepEqual(await environmentOf({}, options), base)
  assert.deepEqual(await environmentOf({ inheritEnvironment: ['NOTES_TOKEN'] }, options), {
    ...base,
    NOTES_TOKEN: 't0ken-of-the-notes',
  })
})

test('options.env stands in place of process.env, for the base too', posix, async t => {
  hostVariables(t, { NOTES_TOKEN: 'of-the-process', LANG: 'C' })
  const inherit = { inheritEnvironment: ['NOTES_TOKEN'] }
  const options = { allowedInheritedEnvKeys: ['NOTES_TOKEN'] }
  assert.deepEqual(await environmentOf(inherit, { ...options, env: { NOTES_TOKEN: 'of-the-options' } }), {
    NOTES_TOKEN: 'of-the-options',
  })
  assert.deepEqual(await environmentOf(inherit, { ...options, env: {} }), {})
})

test('what is fixed wins over the base, what is inherited too', posix, async () => {
  const seen = await environmentOf(
    { environment: { LANG: 'C', TZ: '' }, inheritEnvironment: ['HOME'] },
    { env: { ...BASE, HOME: '/root' }, allowedInheritedEnvKeys: ['HOME'] },
  )
  assert.deepEqual(seen, { ...BASE, HOME: '/root', LANG: 'C', TZ: '' })
})

test('shell functions in the base are left out', posix, async () => {
  const env = { ...BASE, TERM: '() { :; }; echo', SHELL: '()' }
  const { TERM: _, SHELL: __, ...rest } = BASE
  assert.deepEqual(await environmentOf({}, { env }), rest)
})

test('values arrive byte for byte', posix, async t => {
  const values = {
    UMLAUTS: 'Zoë — naïve façade, e\u0301 and é',
    EMOJI: '\u{1f600}\u{1f468}\u200d\u{1f469}',
    CONTROLS: 'tab\tline\nreturn\rescape\u001b[0m bell\u0007',
    EQUALS: '=a=b==',
    SPACES: '  both ends  ',
    QUOTES: `"'\`$HOME \${HOME} %HOME% \\`,
    LONG: 'é'.repeat(10_000),
  }
  const names = Object.keys(values)
  const fixed = { environment: values }
  const inherited = { inheritEnvironment: names }
  for (const [more, options] of [
    [fixed, { env: {} }],
    [inherited, { env: values, allowedInheritedEnvKeys: names }],
  ]) {
    const connection = await connectMcpServer(fixture([], more).definition, options)
    t.after(() => connection.close())
    assert.deepEqual((await connection.callTool('about')).structuredContent.env, values)
    if (process.platform === 'linux') {
      const bytes = readFileSync(`/proc/${connection.pid}/environ`)
      const expected = Object.entries(values).map(([name, value]) => `${name}=${value}\0`)
      assert.deepEqual(bytes.toString('latin1').split('\0').sort(), lines(expected))
    }
  }
})

function lines(entries) {
  return Buffer.from(entries.join('')).toString('latin1').split('\0').sort()
}

test('names that are not set are left out, and named where a start fails', async () => {
  const names = ['NOTES_TOKEN', 'NOTES_URL', 'NOTES_USER']
  const options = {
    env: { ...BASE, NOTES_URL: 'https://notes.example', NOTES_USER: '' },
    allowedInheritedEnvKeys: names,
  }
  const seen = await environmentOf({ inheritEnvironment: names }, options)
  assert.equal('NOTES_TOKEN' in seen, false)
  assert.equal(seen.NOTES_USER, '')

  const fails = {
    ERR_MCP_HANDSHAKE: [
      ['--exit-at', 'start:3'],
      ['--exit-at', 'initialize:1'],
      ['--exit-at', 'tools/list:1'],
      ['--refuse', '{"code":-32000,"message":"no"}'],
    ],
    ERR_MCP_PROTOCOL_VERSION: [['--protocol', '1.0']],
    ERR_MCP_TIMEOUT: [['--silent'], ['--list-silent']],
    ERR_MCP_RPC: [['--list-error=-32000']],
    ERR_MCP_INVALID_MESSAGE: [['--list-result', '7']],
  }
  for (const [code, switches] of Object.entries(fails).flatMap(([code, all]) =>
    all.map(each => [code, each]),
  )) {
    const { definition } = fixture(switches, { inheritEnvironment: names })
    const connectTimeout = code === 'ERR_MCP_TIMEOUT' ? 1_000 : undefined
    const error = await failure(connectMcpServer(definition, { ...options, connectTimeout }))
    assert.equal(error.code, code, inspect(error))
    assert.deepEqual(error.details.missingEnv, ['NOTES_TOKEN'])
    assert.match(error.message, /NOTES_TOKEN/)
    for (const text of texts(error)) assert.equal(text.includes('notes.example'), false, text)
  }
  const { definition } = fixture(['--exit-at', 'start:3'])
  assert.deepEqual((await failure(connectMcpServer(definition, options))).details.missingEnv, [])
})

// ───────────────────────────── what is shown of it ─────────────────────────────

test('secrets are replaced in stderr, in its lines, in log messages, in noise and in warnings', async t => {
  const heard = { stderr: [], log: [], warnings: [] }
  const connection = await connectMcpServer(telltale('serve'), {
    ...inheriting,
    onStderr: line => heard.stderr.push(line),
    onLog: message => heard.log.push(message),
    onWarning: warning => heard.warnings.push(warning),
  })
  t.after(() => connection.close())
  for (const where of ['stderr', 'log', 'noise']) await connection.callTool('tell', { where })
  const told = Object.keys(SECRETS).at(-1)
  await soon(
    () => heard.stderr.some(line => line.includes(`y=1`) && line.includes(told)),
    'the last line of stderr',
  )
  await soon(() => heard.log.length === 1, 'the log message')
  assertTold(heard.stderr.join('\n'))
  assertTold(connection.stderr())
  assertTold(JSON.stringify(heard.log))
  assert.equal(heard.log[0].level, 'error')
  assertTold(inspect(heard.log, { depth: 20 }))
  await soon(() => heard.warnings.length >= 2, 'the warnings')
  assertTold(JSON.stringify(heard.warnings), ['NOTES_TOKEN'])
  assertTold(inspect(connection.diagnostics(), { depth: 20 }), [])
  assertTold(inspect(connection, { depth: 20, showHidden: true }), [])
})

test('secrets are replaced in the messages of progress', async t => {
  const connection = await connectMcpServer(telltale('serve'), inheriting)
  t.after(() => connection.close())
  for (const where of ['progress', 'escaped progress']) {
    const heard = []
    await connection.callTool('tell', { where }, { onProgress: progress => heard.push(progress) })
    assert.equal(heard.length, 1, where)
    assert.deepEqual([heard[0].progress, heard[0].total], [0.1, 1e21])
    assertTold(heard[0].message)
  }
})

test('secrets are replaced in the errors of calls: messages, data, stack, inspection, JSON', async t => {
  const connection = await connectMcpServer(telltale('serve'), inheriting)
  t.after(() => connection.close())
  const tools = await createMcpTools({ connection })
  const tell = tools.find(({ metadata }) => metadata.toolName === 'tell')
  const asked = { where: 'stderr', then: 'refuse' }
  for (const promise of [
    connection.callTool('tell', asked),
    tell.execute(asked),
    tell.invoke({}, JSON.stringify(asked)),
  ]) {
    const error = await failure(promise)
    assert.equal(error.code, 'ERR_MCP_RPC')
    assert.equal(error.details.rpcCode, -32000)
    assertErrorTellsNothing(error)
    assertTold(error.message, ['NOTES_TOKEN'])
    assertTold(JSON.stringify(error.details.data))
    assertTold(error.details.data.told)
  }
  const error = await failure(connection.callTool('tell', { where: 'stderr', then: 'exit' }))
  assert.equal(error.code, 'ERR_MCP_EXITED')
  assert.equal(error.details.exitCode, 4)
  assertErrorTellsNothing(error)
  assertTold(error.details.stderr)
})

test('secrets are replaced in everything a failed start says', async () => {
  const expected = {
    refuse: 'ERR_MCP_HANDSHAKE',
    exit: 'ERR_MCP_HANDSHAKE',
    version: 'ERR_MCP_PROTOCOL_VERSION',
  }
  for (const [when, code] of Object.entries(expected)) {
    const error = await failure(connectMcpServer(telltale(when), inheriting))
    assert.equal(error.code, code, inspect(error))
    assertErrorTellsNothing(error)
    const { failures } = await connectMcpServers([telltale(when)], { ...inheriting, partial: true })
    assertErrorTellsNothing(failures[0].error)
  }
  const exited = await failure(connectMcpServer(telltale('exit'), inheriting))
  assertTold(exited.details.stderr)
  assertTold(exited.details.stdoutNoise.join('\n'), ['NOTES_TOKEN'])
  const refused = await failure(connectMcpServer(telltale('refuse'), inheriting))
  assert.equal(refused.cause.code, 'ERR_MCP_RPC')
  assertTold(JSON.stringify(refused.cause.details.data))
  const silent = await failure(connectMcpServer(telltale('silent'), { ...inheriting, connectTimeout: 1_500 }))
  assert.equal(silent.code, 'ERR_MCP_TIMEOUT')
  assertErrorTellsNothing(silent)
})

test('a name of a tool that is a secret is not shown where there is no such tool', async t => {
  const connection = await connectMcpServer(telltale('serve'), inheriting)
  t.after(() => connection.close())
  for (const secret of Object.values(SECRETS)) {
    const error = await failure(connection.callTool(secret))
    assert.equal(error.code, 'ERR_MCP_TOOL_NOT_FOUND')
    assertErrorTellsNothing(error)
  }
})

test('results, arguments and the published tools are never touched', async t => {
  const connection = await connectMcpServer(telltale('serve'), inheriting)
  t.after(() => connection.close())
  assert.ok(connection.tools[0].description.includes(SECRETS.NOTES_TOKEN))
  const result = await connection.callTool('tell', { where: 'nothing' })
  for (const secret of Object.values(SECRETS)) {
    assert.ok(result.content[0].text.includes(secret))
    assert.ok(result.structuredContent.forms.includes(secret))
  }
  const echoing = await connectMcpServer(
    fixture([], { inheritEnvironment: ['NOTES_TOKEN'] }).definition,
    inheriting,
  )
  t.after(() => echoing.close())
  const args = { ...SECRETS, [SECRETS.NOTES_TOKEN]: [SECRETS.NOTES_PEM] }
  assert.deepEqual((await echoing.callTool('echo', args)).structuredContent, args)
})

test('ordinary values stay readable: words, a stage, a region, paths, numbers, what a switch is set to', async t => {
  const ordinary = {
    NOTES_MODE: 'quiet',
    NOTES_STAGE: 'production',
    NOTES_REGION: 'northamerica-northeast1-a',
    NOTES_PATH: '/usr/share/notes/data',
    NOTES_PORT: '8080',
    NOTES_BUDGET: '1234567890123.50',
    NOTES_CITY: 'Wolfenbüttel',
    API_KEY: 'none',
  }
  const env = { ...BASE, ...ordinary }
  const names = Object.keys(ordinary)
  const { definition } = fixture([], { inheritEnvironment: names })
  const connection = await connectMcpServer(definition, { env, allowedInheritedEnvKeys: names })
  t.after(() => connection.close())
  const line = Object.values(ordinary).join(' and ')
  await connection.callTool('say', { stderr: [line] })
  await soon(() => connection.stderr() !== '', 'the line')
  assert.equal(connection.stderr().trim(), line)
})
