// How long connections live: kept by what uses them, collected when nothing holds them, never what keeps Node alive by themselves; and
// that they leave nothing behind in their host.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { fixture, soon } from './support/fixture.mjs'
import { CONNECTED, host, serverOf } from './support/hosts.mjs'
import { children, gone, lives, POOL_THREADS, zombies } from './support/processes.mjs'

const linux = { skip: process.platform !== 'linux' }

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

// ───────────────────────────── what is left of them ─────────────────────────────

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
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: readdirSync(`/proc/${pid}/task`).length,
    zombies: zombies(pid).length,
    children: children(pid).length,
  }
}
