// A long life of one host: servers come and go, die and are connected again, and nothing is left of those that were.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { family } from './support/families.mjs'
import { ended, failure, fixture, soon, workflow } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { lives, seen, zombies } from './support/processes.mjs'

const linux = { skip: process.platform === 'linux' ? false : 'it looks at /proc' }

test('fifty servers that are killed from outside, and never closed, leave no zombie', linux, async () => {
  for (let round = 0; round < 50; round++) {
    const connection = await workflow.connectMcpServer(family('direct').definition)
    process.kill(connection.pid, 'SIGKILL')
    if (round % 10 === 0) assert.equal((await ended(connection)).signal, 'SIGKILL')
  }
  await soon(() => zombies(process.pid).length === 0, 'the end of the zombies')
})

test('a server that is connected again twenty times, with other arguments too, runs once at a time', async t => {
  let definition = family('direct').definition
  const started = []
  let connection
  t.after(() => connection.close())
  for (let round = 0; round < 20; round++) {
    await connection?.close()
    if (round % 2) definition = family('direct').definition
    connection = await workflow.connectMcpServer(definition)
    started.push(seen(connection.pid))
    assert.deepEqual(started.filter(lives), started.slice(-1))
  }
  await connection.close()
  assert.deepEqual(started.filter(lives), [])
})

test('three connects in one tick are three connections, each with a server of its own that its close ends', async t => {
  const { definition } = fixture(['--slow', '300'])
  const connections = await Promise.all([1, 2, 3].map(() => workflow.connectMcpServer(definition)))
  t.after(() => Promise.all(connections.map(connection => connection.close())))
  const servers = connections.map(({ pid }) => seen(pid))
  assert.equal(new Set(connections.map(({ pid }) => pid)).size, 3)
  for (const [index, connection] of connections.entries()) {
    assert.deepEqual((await connection.callTool('echo', { index })).structuredContent, { index })
    await connection.close()
    assert.deepEqual(servers.filter(lives), servers.slice(index + 1))
  }
})

test('fifty starts that time out leave no process, and no thread but the five there are', linux, async () => {
  const silent = () => ({ id: 'silent', command: ['/bin/sh', '-c', 'exec sleep 600'], timeout: 60_000 })
  const starts = async count => {
    const errors = await Promise.all(
      Array.from({ length: count }, () =>
        failure(workflow.connectMcpServer(silent(), { connectTimeout: 100 })),
      ),
    )
    for (const { code } of errors) assert.equal(code, 'ERR_MCP_TIMEOUT')
  }
  const children = () => readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ').length
  const threads = () =>
    readdirSync('/proc/self/task').filter(task =>
      readFileSync(`/proc/self/task/${task}/comm`, 'utf8').startsWith('workflow-mcp'),
    )
  for (let round = 0; round < 5; round++) await starts(10)
  await soon(() => children() <= 2, 'no child but the guardian')
  // One that reads and writes, and those of the pool, which stay.
  assert.ok(threads().length <= 5, `${threads().length} threads`)
})

test('after a crash a server is connected again as often as it takes, and nothing of the old is left', async t => {
  const first = await workflow.connectMcpServer(fixture().definition)
  process.kill(first.pid, 'SIGKILL')
  assert.equal((await failure(first.callTool('silent'))).serverId, 'fixture')
  await ended(first)
  for (const call of [first.callTool('echo'), first.listTools()]) {
    assert.equal((await failure(call)).code, 'ERR_MCP_CLOSED')
  }
  for (let again = 0; again < 2; again++) {
    const { definition } = fixture(['--exit-at', 'start:3'])
    assert.equal((await failure(workflow.connectMcpServer(definition))).details.exitCode, 3)
  }
  const connection = await workflow.connectMcpServer(fixture().definition)
  t.after(() => connection.close())
  assert.ok(connection.tools.length > 0)
  assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })
})

test('two hundred connections, half of which fail, hold no descriptor afterwards', linux, async () => {
  const refusing = { id: 'refusing', command: ['/bin/sh', '-c', 'read line; exit 3'] }
  const cycle = async index => {
    if (index % 2) {
      assert.equal((await failure(workflow.connectMcpServer(refusing))).code, 'ERR_MCP_HANDSHAKE')
    } else {
      const connection = await workflow.connectMcpServer(family('direct').definition)
      await connection.request('tools/list')
      await connection.close()
    }
  }
  for (let index = 0; index < 6; index++) await cycle(index)
  const open = () => readdirSync('/proc/self/fd').length
  const before = open()
  for (let index = 0; index < 200; index++) await cycle(index)
  await soon(() => open() <= before + 2, `no more than ${before + 2} descriptors`)
})

test(
  'calls and connections leave no memory behind, and dropped connections are collected',
  linux,
  async () => {
    const program = host(
      `let collected = 0
    const registry = new FinalizationRegistry(() => collected++)
    const calls = async count => {
      const connection = await workflow.connectMcpServer(given.definition)
      for (let index = 0; index < count; index++) await connection.callTool('echo', { text: 'x'.repeat(1000) })
      await connection.close()
    }
    const cycles = async count => {
      for (let index = 0; index < count; index++) {
        const connection = await workflow.connectMcpServer(given.small)
        registry.register(connection)
        await connection.close()
      }
    }
    const settle = async () => {
      for (let round = 0; round < 10; round++) {
        gc()
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      return process.memoryUsage().rss
    }
    await calls(1_000)
    await cycles(100)
    const before = await settle()
    const seenBefore = collected
    await calls(2_000)
    await cycles(200)
    const after = await settle()
    say({ growth: after - before, collected: collected - seenBefore })`,
      {
        given: { definition: fixture().definition, small: family('direct').definition },
        flags: ['--expose-gc'],
      },
    )
    const { growth, collected } = await program.next()
    assert.equal((await program.ended).code, 0)
    assert.ok(growth < 10 * 1024 * 1024, `it grew by ${growth} bytes`)
    // The last one may still be on the stack.
    assert.ok(collected >= 199, `${collected} of 200 were collected`)
  },
)
