import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { failure, fixture, loggedPid, received, soon, workflow } from './support/fixture.mjs'
import { gone, seen } from './support/processes.mjs'

const { connectMcpServer } = workflow

async function failedStart(switches, options, more) {
  const { definition, log } = fixture(switches, more)
  const error = await failure(connectMcpServer(definition, options))
  assert.equal(error.serverId, 'fixture')
  const pid = loggedPid(log)
  const server = pid && seen(pid)
  if (server) await gone(server)
  return { error, log }
}

test('a server that exits before it answers: the code, its stderr and its noise are in the details', async () => {
  const switches = ['--exit-at', 'initialize:3', '--stderr', 'no such table', '--noise', 'Welcome!']
  const { error } = await failedStart(switches)
  assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
  assert.equal(error.details.exitCode, 3)
  assert.equal(error.details.signal, null)
  assert.equal(error.details.stderr, 'no such table')
  assert.deepEqual(error.details.stdoutNoise, ['Welcome!'])
  assert.deepEqual(error.details.missingEnv, [])
  assert.match(error.message, /fixture.*code 3.*no such table/)
  assert.equal(error.details.phase, 'connect')
  assert.ok(Number.isInteger(error.details.ms) && error.details.ms > 0)
  assert.equal('searchPath' in error.details, false)
})

test('a program that a server does not find: the PATH that the server saw is in the details, without secrets', async () => {
  const command = ['/usr/bin/env', 'no-such-program-of-notes']
  const env = { PATH: '/usr/bin:/opt/s3cr3t-of-the-path-0123/bin', NOTES_TOKEN: 's3cr3t-of-the-path-0123' }
  const inheriting = { inheritEnvironment: ['NOTES_TOKEN'] }
  const options = { env, allowedInheritedEnvKeys: ['NOTES_TOKEN'] }
  const error = await failure(connectMcpServer({ id: 'notes', command, ...inheriting }, options))
  assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
  assert.equal(error.details.exitCode, 127)
  assert.equal(error.details.searchPath, '/usr/bin:/opt/«NOTES_TOKEN»/bin')
  assert.match(error.message, /no-such-program-of-notes.*searchPath/)
  const without = await failure(connectMcpServer({ id: 'notes', command }, { env: {} }))
  assert.equal(without.details.searchPath, null)
  assert.match(without.message, /no PATH/)
  const fixed = { id: 'notes', command, environment: { PATH: '/opt/fixed' } }
  assert.equal((await failure(connectMcpServer(fixed))).details.searchPath, '/opt/fixed')
})

test('a server that a signal ends before it answers: the signal is in the details', async () => {
  const { error } = await failedStart(['--exit-at', 'initialize:SIGKILL'])
  assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
  assert.equal(error.details.exitCode, null)
  assert.equal(error.details.signal, 'SIGKILL')
})

test('a server that exits at once, with code 0 too, has not started', async () => {
  for (const code of [0, 1]) {
    const { error } = await failedStart(['--exit-at', `start:${code}`])
    assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
    assert.equal(error.details.exitCode, code)
  }
})

test('a server that exits while it lists its tools has not started', async () => {
  const { error } = await failedStart(['--exit-at', 'tools/list:4'])
  assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
  assert.equal(error.details.exitCode, 4)
  assert.equal(error.details.phase, 'list')
})

test('inherited variables that are not set are named, in the message too', async () => {
  const options = {
    allowedInheritedEnvKeys: ['REGION', 'API_TOKEN'],
    env: { PATH: process.env.PATH, REGION: 'north' },
  }
  const more = { inheritEnvironment: ['REGION', 'API_TOKEN'] }
  const { error } = await failedStart(['--exit-at', 'start:1'], options, more)
  assert.deepEqual(error.details.missingEnv, ['API_TOKEN'])
  assert.match(error.message, /API_TOKEN/)
  assert.doesNotMatch(error.message, /REGION/)
})

test('a server that refuses: its code and message, and the answer as the cause', async () => {
  const { error } = await failedStart([
    '--refuse',
    '{"code":-32000,"message":"no licence","data":{"until":2020}}',
  ])
  assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
  assert.equal(error.details.rpcCode, -32000)
  assert.match(error.message, /no licence/)
  assert.equal(error.cause.code, 'ERR_MCP_RPC')
  assert.equal(error.cause.details.rpcCode, -32000)
  assert.deepEqual(error.cause.details.data, { until: 2020 })
})

test('a refusal that may mean modern-only, from a server that is not, is reported as it was given', async () => {
  const { error, log } = await failedStart(['--refuse', '{"code":-32602,"message":"bad params"}'])
  assert.deepEqual(
    received(log).map(({ method }) => method),
    ['initialize', 'server/discover'],
  )
  assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
  assert.equal(error.details.rpcCode, -32602)
  assert.match(error.message, /bad params/)
})

test('an unknown version: what was offered and what was answered', async () => {
  const { error } = await failedStart(['--protocol', '1999-01-01'])
  assert.equal(error.code, 'ERR_MCP_PROTOCOL_VERSION')
  assert.equal(error.details.offered, '2025-11-25')
  assert.equal(error.details.answered, '1999-01-01')
})

test('an absurd version is an unknown version, and the process is gone', async () => {
  const absurd = [
    '',
    'latest',
    '2099-12-31',
    '2026-07-29',
    '2025-11-25 ',
    'v2025-11-25',
    '0',
    '\ud83d\ude00',
    'x'.repeat(5_000),
  ]
  for (const answered of absurd) {
    const initialized = JSON.stringify({ protocolVersion: answered, capabilities: {} })
    const { error } = await failedStart(['--initialize-result', initialized])
    assert.equal(error.code, 'ERR_MCP_PROTOCOL_VERSION', answered)
    assert.deepEqual([error.details.offered, error.details.answered], ['2025-11-25', answered])
    assert.match(error.message, /2025-11-25/)
    assert.ok(error.message.length < 500)
  }
})

test('a version other than the one that was asked for alone is refused', async () => {
  const { error } = await failedStart(['--protocol', '2025-03-26'], { protocol: '2025-06-18' })
  assert.equal(error.code, 'ERR_MCP_PROTOCOL_VERSION')
  assert.equal(error.details.offered, '2025-06-18')
  assert.equal(error.details.answered, '2025-03-26')
})

for (const result of ['null', '[]', '"hello"', '{}', '{"protocolVersion":7}', '{"protocolVersion":null}']) {
  test(`an answer to initialize that cannot be read is a failed handshake: ${result}`, async () => {
    const { error } = await failedStart(['--initialize-result', result])
    assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
    assert.match(error.message, /initialize/)
  })
}

test('a listing that does not end is a timeout of the phase list, and the error shows what the server said', async () => {
  const switches = ['--list-silent', '--noise', 'Server running on stdio', '--stderr', 'ready']
  const { error } = await failedStart(switches, { connectTimeout: 5_000 })
  assert.equal(error.code, 'ERR_MCP_TIMEOUT')
  assert.deepEqual([error.details.phase, error.details.ms], ['list', 5_000])
  assert.match(error.message, /Server running on stdio/)
  assert.deepEqual(error.details.stdoutNoise, ['Server running on stdio'])
  assert.equal(error.details.stderr, 'ready')
})

test('an aborted connect does not leave a stubborn server behind', async () => {
  const { definition, log } = fixture(['--silent', '--ignore-end', '--ignore-term'])
  const controller = new AbortController()
  const options = { signal: controller.signal, shutdown: { endOfInput: 100, terminate: 100 } }
  const connecting = failure(connectMcpServer(definition, options))
  const server = seen(await soon(() => received(log, 'initialize').length > 0 && loggedPid(log)))
  controller.abort('enough')
  assert.equal(await connecting, 'enough')
  await gone(server)
})

test("a server that does not know server/discover does not speak what protocol 'modern' asks for", async () => {
  const { error, log } = await failedStart([], { protocol: 'modern' })
  assert.equal(error.code, 'ERR_MCP_PROTOCOL_VERSION')
  assert.deepEqual([error.details.offered, error.details.answered], ['2026-07-28', null])
  assert.equal(error.cause.details.rpcCode, -32601)
  assert.deepEqual(received(log, 'initialize'), [])
})

test('a failed start shows at most 4 KiB of stderr, its end', async () => {
  const { error } = await failedStart(['--flood', '100000', '--exit-at', 'initialize:1'])
  assert.ok(error.details.stderr.length <= 4 * 1024)
  assert.match(error.details.stderr, /flood 100$/)
})

test('a command that is not there, a directory that is not there, a script without its interpreter', async () => {
  const missing = { id: 'gone', command: ['/nonexistent/server'] }
  const command = await failure(connectMcpServer(missing))
  assert.equal(command.code, 'ERR_MCP_SPAWN')
  assert.equal(command.serverId, 'gone')
  assert.deepEqual(command.details, { errno: 2, path: '/nonexistent/server', what: 'command' })
  const { definition } = fixture([], { cwd: '/nonexistent/folder' })
  const cwd = await failure(connectMcpServer(definition))
  assert.deepEqual(cwd.details, { errno: 2, path: '/nonexistent/folder', what: 'cwd' })
  const { log: script } = fixture()
  writeFileSync(script, '#!/nonexistent/interpreter\n')
  chmodSync(script, 0o755)
  const interpreter = await failure(connectMcpServer({ id: 'script', command: [script] }))
  assert.deepEqual(interpreter.details, { errno: 2, path: '/nonexistent/interpreter', what: 'interpreter' })
})

test('options are judged before anything starts: a wrong name with the nearest, wrong values with their place', async () => {
  const { definition, log } = fixture()
  const unknown = await failure(connectMcpServer(definition, { connectTimeOut: 5_000 }))
  assert.equal(unknown.code, 'ERR_MCP_INVALID_ARGUMENT')
  assert.match(unknown.message, /connectTimeout/)
  const wrong = {
    connectTimeout: [0, 1.5, '1000', Number.NaN, null],
    protocol: ['2023-01-01', 7, null],
    maxMessageBytes: [0, 1.5, -1],
    shutdown: [1, { endOfInput: -1 }, { endofinput: 1 }],
    guardian: ['yes'],
    signal: [{}, 1, new AbortController()],
    onStderr: ['log'],
    onClose: [{}],
    partial: [true],
  }
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values) {
      const error = await failure(connectMcpServer(definition, { [name]: value }))
      assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT', `${name}: ${JSON.stringify(value)}`)
      assert.match(error.details.path, new RegExp(`^options\\.${name}`))
    }
  }
  assert.equal(loggedPid(log), undefined)
})
