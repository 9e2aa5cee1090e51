// Servers beside the other processes of their host: nobody takes anybody's signals, pipes or exits.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { connected, ended, fixture, logged, soon } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { lives, seen, zombies } from './support/processes.mjs'

test('an interrupt from the terminal reaches the host and not its servers', async () => {
  // In a group of its own, as a shell starts it.
  const program = host(
    `process.on('SIGINT', () => say('interrupted'))
    const connection = await workflow.connectMcpServer(given.definition)
    say(connection.pid)
    setInterval(() => {}, 60_000)
    process.stdin.once('data', async () => say((await connection.callTool('echo', { still: 'here' })).structuredContent))`,
    { given: { definition: fixture().definition }, detached: true },
  )
  const server = seen(await program.next())
  const group = program.child.pid
  assert.ok(group > 1)
  process.kill(-group, 'SIGINT')
  assert.equal(await program.next(), 'interrupted')
  program.tell()
  assert.deepEqual(await program.next(), { still: 'here' })
  assert.ok(lives(server))
  program.child.kill('SIGKILL')
  await program.ended
})

test('no neighbour holds the input of a server open: not a server that was started later, nor a child of Node', async t => {
  const first = await connected(t)
  const second = await connected(t)
  const sleeper = spawn('sleep', ['30'], { stdio: 'ignore' })
  t.after(() => sleeper.kill())
  await once(sleeper, 'spawn')
  const info = await first.connection.close()
  assert.deepEqual([info.ended, info.exitCode, info.signal], ['end-of-input', 0, null])
  assert.equal(logged(first.log).at(-1), '#end')
  assert.equal((await second.connection.close()).ended, 'end-of-input')
  assert.equal(sleeper.exitCode, null)
})

test('Node sees all exits of its children, and we those of our servers, however they are mixed', async t => {
  const child = code => {
    const child = spawn('/bin/sh', ['-c', `read line; exit ${code}`], { stdio: ['pipe', 'ignore', 'ignore'] })
    return { child, code, exit: once(child, 'exit') }
  }
  const children = [child(11)]
  const servers = []
  for (let code = 12; code < 15; code++) {
    servers.push((await connected(t)).connection)
    children.push(child(code))
  }
  const last = await connected(t)
  for (const [index, { child, code, exit }] of children.entries()) {
    child.stdin.end('\n')
    const server = servers[index]
    if (server) process.kill(server.pid, 'SIGKILL')
    assert.deepEqual(await exit, [code, null])
    if (server) {
      const { reason, exitCode, signal } = await ended(server)
      assert.deepEqual({ reason, exitCode, signal }, { reason: 'exited', exitCode: null, signal: 'SIGKILL' })
    }
  }
  assert.equal((await last.connection.close()).exitCode, 0)
  const [exit] = await once(spawn(process.execPath, ['-e', 'process.exit(7)']), 'exit')
  assert.equal(exit, 7)
  if (process.platform === 'linux') {
    await soon(() => zombies(process.pid).length === 0, 'the end of the zombies')
  }
})
