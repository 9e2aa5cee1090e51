// How servers end when their host does, in whatever way, and that nothing is left behind while it lives.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { fixture, loggedPid, soon } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { gone, lives, POOL_THREADS, seen } from './support/processes.mjs'

const linux = { skip: process.platform !== 'linux' }

const POLITE = []
const STUBBORN = ['--ignore-end', '--ignore-term']

/** Whatever a test that failed has left. */
const started = new Set()
after(() => {
  for (const server of started) if (lives(server)) process.kill(server.pid, 'SIGKILL')
})

/** Waits for a host to say the pid of its server, and tells it to go on. */
async function serverOf(program) {
  const server = seen(await program.next())
  assert.ok(server, 'the server lives')
  started.add(server)
  program.tell()
  return server
}

// ───────────────────────────── the end of the process ─────────────────────────────

const CONNECTED = `
  const connection = await workflow.connectMcpServer(given.definition, given.options)
  say(connection.pid)
  told()
`
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
  const server = seen(await soon(() => loggedPid(log), 'the start of the server'))
  started.add(server)
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
    const server = seen(await program.next())
    started.add(server)
    const children = () => childrenOf(program.child.pid).map(({ pid }) => seen(pid))
    // It is started beside the first server, which does not wait for it.
    if (guardian) await soon(() => children().length === count, 'the guardian')
    const helpers = children()
    assert.equal(helpers.length, count)
    program.tell()
    await program.ended
    for (const helper of helpers) await gone(helper)
  }
})

// ───────────────────────────── what keeps a host alive ─────────────────────────────

test('a pending call keeps its host alive, an idle connection does not, ref() does', async () => {
  const pending = host(`${CONNECTED} connection.callTool('sleep', { ms: 300 }).then(() => say('answered'))`, {
    given: { definition: fixture().definition },
  })
  const idle = host(`${CONNECTED} process.on('exit', () => say('ended'))`, {
    given: { definition: fixture().definition },
  })
  const held = host(
    `${CONNECTED} connection.ref(); setTimeout(() => say('held'), 300).unref(); setTimeout(() => connection.unref(), 600).unref()`,
    { given: { definition: fixture().definition } },
  )
  for (const [program, last] of [
    [pending, 'answered'],
    [idle, 'ended'],
    [held, 'held'],
  ]) {
    await serverOf(program)
    const { code, said, stderr } = await program.ended
    assert.equal(code, 0, stderr)
    assert.equal(said.at(-1), last)
  }
})

test('a connection leaves no listeners on the process, twelve failed ones neither', async () => {
  const program = host(
    `const listeners = () => process.eventNames().map(name => [String(name), process.listenerCount(name)])
    const before = listeners()
    const warnings = []
    process.on('warning', warning => warnings.push(String(warning)))
    const { signal } = new AbortController()
    const codes = new Set()
    for (let count = 0; count < 12; count++) {
      await workflow.connectMcpServer(given.failing, { signal }).catch(error => codes.add(error.code))
    }
    for (let count = 0; count < 12; count++) await (await workflow.connectMcpServer(given.definition, { signal })).close()
    const { getEventListeners } = await import('node:events')
    await new Promise(resolve => setImmediate(resolve))
    process.removeAllListeners('warning')
    say({ before, after: listeners(), warnings, codes: [...codes], onSignal: getEventListeners(signal, 'abort').length })`,
    { given: { failing: fixture(['--exit-at', 'start:1']).definition, definition: fixture().definition } },
  )
  const [report] = (await program.ended).said
  const counts = Object.fromEntries(report.before)
  for (const [name, count] of report.after) assert.equal(count, counts[name] ?? 0, name)
  assert.deepEqual(report.warnings, [])
  assert.deepEqual(report.codes, ['ERR_MCP_HANDSHAKE'])
  assert.equal(report.onSignal, 0)
})

// ───────────────────────────── collected connections ─────────────────────────────

const COLLECT = `
  const turn = () => new Promise(resolve => setTimeout(resolve, 5))
  /** Collects garbage until it comes about. */
  async function collectUntil(check) {
    for (let left = 2_000; left > 0; left--) {
      gc()
      await turn()
      if (check()) return true
    }
    return false
  }
  /** Collects garbage often enough that what can go has gone. */
  async function collect() {
    for (let left = 20; left > 0; left--) {
      gc()
      await turn()
    }
  }
`

const collecting = (code, given) => host(COLLECT + code, { given, flags: ['--expose-gc'] })

test('a connection that nobody holds is collected and ends its server, which tells closed and onClose', async () => {
  const program = collecting(
    `let closed, heard
    await (async () => {
      const connection = await workflow.connectMcpServer(given.definition, { onClose: (info, id) => { heard = [info, id] } })
      say(connection.pid)
      told()
      await connection.callTool('echo')
      connection.closed.then(info => { closed = info })
    })()
    await collectUntil(() => closed && heard)
    say({ closed, heard })`,
    { definition: fixture().definition },
  )
  const server = await serverOf(program)
  const { closed, heard } = await program.next()
  assert.equal(closed?.reason, 'aborted')
  assert.deepEqual(heard, [closed, 'fixture'])
  assert.deepEqual(closed.survivors, [])
  await gone(server)
  assert.equal((await program.ended).code, 0)
})

test('a group that nobody holds is collected, all its connections with it', async () => {
  const program = collecting(
    `let ended = 0
    await (async () => {
      const group = await workflow.connectMcpServers(given.definitions, { onClose: () => { ended++ } })
      for (const { pid } of group.connections) {
        say(pid)
        told()
      }
    })()
    await collectUntil(() => ended === 2)
    say(ended)`,
    { definitions: [fixture().definition, { ...fixture().definition, id: 'other' }] },
  )
  const servers = [await serverOf(program), await serverOf(program)]
  assert.equal(await program.next(), 2)
  for (const server of servers) await gone(server)
  assert.equal((await program.ended).code, 0)
})

test('a pending call, an agent tool, a method and its own callbacks keep a connection from being collected', async () => {
  const program = collecting(
    `const connect = async () => {
      const connection = await workflow.connectMcpServer(given.definition)
      say(connection.pid)
      told()
      return connection
    }
    // Nothing but the pending call.
    let answer
    ;(await connect()).callTool('sleep', { ms: 400 }).then(result => { answer = result })
    await collectUntil(() => answer)
    say(answer.content[0].text)
    // Nothing but an agent tool.
    let tool = (await workflow.createMcpTools({ connection: await connect() })).find(({ metadata }) => metadata.toolName === 'echo')
    await collect()
    say((await tool.execute({ by: 'tool' })).structuredContent)
    tool = undefined
    // Nothing but a method.
    let { callTool } = await connect()
    await collect()
    say((await callTool('echo', { by: 'method' })).structuredContent)
    callTool = undefined
    // Nothing but one of its own callbacks.
    await (async () => {
      const connection = await workflow.connectMcpServer(given.definition, { onClose: () => connection.id })
      say(connection.pid)
      told()
    })()
    await collect()
    say('kept')
    told()
    // ref() keeps the process alive while the connection is open, but by itself it does not keep that open.
    ;(await connect()).ref()
    await collect()`,
    { definition: fixture().definition },
  )
  const first = await serverOf(program)
  assert.equal(await program.next(), 'slept 400')
  const second = await serverOf(program)
  assert.deepEqual(await program.next(), { by: 'tool' })
  const third = await serverOf(program)
  assert.deepEqual(await program.next(), { by: 'method' })
  const fourth = await serverOf(program)
  assert.equal(await program.next(), 'kept')
  for (const server of [first, second, third]) await gone(server)
  assert.ok(lives(fourth))
  program.tell()
  const fifth = await serverOf(program)
  for (const server of [fourth, fifth]) await gone(server)
  const { code, stderr } = await program.ended
  assert.equal(code, 0, stderr)
})

// ───────────────────────────── many connections ─────────────────────────────

test(
  'fifty connects, half of which fail, leave descriptors, threads and processes as they were',
  linux,
  async t => {
    const program = host(
      `import { readdirSync } from 'node:fs'
    const cycle = async index => {
      const failing = [given.exits, given.refuses, given.missing][index % 3]
      await workflow.connectMcpServer(failing).then(() => say('it did not fail'), () => {})
      const connection = await workflow.connectMcpServer(given.definition)
      await connection.callTool('echo')
      await connection.close()
    }
    // The guardian comes with the first one and stays.
    for (let index = 0; index < 3; index++) await cycle(index)
    say(process.pid)
    told()
    for (let index = 0; index < 25; index++) await cycle(index)
    say('done')
    setInterval(() => {}, 60_000)`,
      {
        given: {
          definition: fixture().definition,
          exits: fixture(['--exit-at', 'start:1']).definition,
          refuses: fixture(['--refuse', '{"code":-32000,"message":"no"}']).definition,
          missing: { id: 'missing', command: ['/no/such/program'] },
        },
      },
    )
    t.after(async () => {
      program.child.kill()
      await program.ended
    })
    const pid = await program.next()
    assert.equal(typeof pid, 'number')
    const before = footprint(pid)
    assert.equal(before.zombies, 0)
    program.tell()
    assert.equal(await program.next(), 'done')
    // Which of its threads the pool has needed by now is chance; a thread that every connect left behind would be 25.
    const limits = { ...before, threads: before.threads + POOL_THREADS }
    const fits = () => Object.entries(footprint(pid)).every(([name, count]) => count <= limits[name])
    await soon(fits, `no more than ${JSON.stringify(limits)}`)
  },
)

function footprint(pid) {
  const children = childrenOf(pid)
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: readdirSync(`/proc/${pid}/task`).length,
    zombies: children.filter(({ state }) => state === 'Z').length,
    children: children.length,
  }
}

function childrenOf(pid) {
  const all = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return all.map(state).filter(process => process?.parent === pid)
}

function state(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { pid: Number(pid), state, parent: Number(parent) }
  } catch {
    return undefined
  }
}
