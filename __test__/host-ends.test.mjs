// How servers end when their host does, in whatever way.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture, loggedPid, soon } from './support/fixture.mjs'
import { CONNECTED, host, serverOf, serverSeen } from './support/hosts.mjs'
import { children, gone, lives, seen } from './support/processes.mjs'

const linux = { skip: process.platform !== 'linux' }

const POLITE = []
const STUBBORN = ['--ignore-end', '--ignore-term']

const PENDING = `${CONNECTED}
  const calls = Array.from({ length: 20 }, () => connection.callTool('silent'))
  await connection.callTool('echo')
  say('pending')
`

/** What a host does at its end, and what is seen of it. */
const ENDS = [
  {
    name: 'comes to its natural end, the connection forgotten',
    code: CONNECTED,
    ended: { code: 0, signal: null },
  },
  {
    name: 'calls process.exit(0) in the middle of 20 calls',
    code: `${PENDING} process.exit(0)`,
    ended: { code: 0, signal: null },
  },
  {
    name: 'calls process.exit(7) in a callback of the connection',
    code: `
      given.options = { onStderr: () => process.exit(7) }
      ${CONNECTED}
      await connection.callTool('say', { stderr: ['now'] })
      await connection.callTool('silent')`,
    ended: { code: 7, signal: null },
  },
  {
    name: 'dies of an uncaught exception in the middle of 20 calls',
    code: `${PENDING} setImmediate(() => { throw new Error('on purpose') })`,
    ended: { code: 1, signal: null },
    stderr: /on purpose/,
  },
  {
    name: 'aborts in the middle of 20 calls',
    code: `${PENDING} process.abort()`,
    ended: { code: null, signal: 'SIGABRT' },
  },
  {
    name: 'still calls and closes the connection in its exit listeners',
    code: `${CONNECTED}
      process.on('exit', () => {
        connection.callTool('echo').catch(() => {})
        connection.stderr()
        connection.diagnostics()
        connection.close()
      })`,
    ended: { code: 0, signal: null },
  },
  ...['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL'].map(signal => ({
    name: `is ended by ${signal} in the middle of 20 calls`,
    code: `${PENDING} setInterval(() => {}, 60_000)`,
    kill: signal,
    ended: { code: null, signal },
  })),
]

for (const [kind, switches] of [
  ['polite', POLITE],
  ['stubborn', STUBBORN],
]) {
  for (const { name, code, kill, ended, stderr = /^$/ } of ENDS) {
    test(`a ${kind} server ends when its host ${name}`, async () => {
      const program = host(code, { given: { definition: fixture(switches).definition } })
      const server = await serverOf(program)
      if (kill) {
        assert.equal(await program.next(), 'pending')
        program.child.kill(kill)
      }
      const end = await program.ended
      assert.deepEqual({ code: end.code, signal: end.signal }, ended, end.stderr)
      if (ended.signal !== 'SIGABRT') assert.match(end.stderr, stderr)
      await gone(server)
    })
  }
}

test('with a stubborn server, its grandchild ends too when the host is killed', async () => {
  const program = host(
    `${CONNECTED} say(Number((await connection.callTool('grandchild')).content[0].text)); told(); setInterval(() => {}, 60_000)`,
    { given: { definition: fixture(STUBBORN).definition } },
  )
  const server = await serverOf(program)
  const grandchild = await serverOf(program)
  program.child.kill('SIGKILL')
  await program.ended
  await gone(server)
  await gone(grandchild)
})

test('eight servers of one host, polite and stubborn, all end with it', async () => {
  const definitions = Array.from({ length: 8 }, (_, index) => {
    const { definition } = fixture(index % 2 ? POLITE : STUBBORN)
    return { ...definition, id: `s${index}` }
  })
  const program = host(
    `const group = await workflow.connectMcpServers(given.definitions)
    for (const { pid } of group.connections) {
      say(pid)
      told()
    }
    process.kill(process.pid, 'SIGKILL')`,
    { given: { definitions } },
  )
  const servers = []
  for (const _ of definitions) servers.push(await serverOf(program))
  assert.equal((await program.ended).signal, 'SIGKILL')
  for (const server of servers) await gone(server)
})

test('a server that is still starting ends with its host', async () => {
  const { definition, log } = fixture(['--silent', ...STUBBORN])
  // The guardian runs since the first server; only then it is told of the second at once.
  const program = host(`${CONNECTED} await workflow.connectMcpServer(given.starting)`, {
    given: { definition: fixture().definition, starting: definition },
  })
  await serverOf(program)
  const server = serverSeen(await soon(() => loggedPid(log), 'the start of the server'))
  program.child.kill('SIGKILL')
  await program.ended
  await gone(server)
})

test('a host that awaits close() ends by itself right after it, with nothing left', async () => {
  const program = host(`${CONNECTED} const info = await connection.close(); say(info)`, {
    given: {
      definition: fixture(STUBBORN).definition,
      options: { shutdown: { endOfInput: 10, terminate: 10 } },
    },
  })
  const server = await serverOf(program)
  const info = await program.next()
  assert.deepEqual(info, {
    reason: 'closed',
    exitCode: null,
    signal: 'SIGKILL',
    ended: 'kill',
    survivors: [],
  })
  assert.equal(lives(server), false)
  assert.equal((await program.ended).code, 0)
})

test('the guardian ends with its host, and there is none where it is turned off', linux, async () => {
  for (const [guardian, count] of [
    [true, 2],
    [false, 1],
  ]) {
    const program = host(CONNECTED, { given: { definition: fixture().definition, options: { guardian } } })
    serverSeen(await program.next())
    const living = () => children(program.child.pid).map(({ pid }) => seen(pid))
    // It is started beside the first server, which does not wait for it.
    if (guardian) await soon(() => living().length === count, 'the guardian')
    const helpers = living()
    assert.equal(helpers.length, count)
    program.tell()
    await program.ended
    for (const helper of helpers) await gone(helper)
  }
})
