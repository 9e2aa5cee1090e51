// What loading the package does, and does not; and what several JavaScript environments of one process share.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import * as workflow from '../index.mjs'
import { failure, fixture, soon } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { gone, lives, POOL_THREADS, seen } from './support/processes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const require = createRequire(import.meta.url)

// ───────────────────────────── the first call ─────────────────────────────

/** In a host: whether a native binary of ours is mapped, and which threads there are. */
const LOOK = `
  import { createRequire } from 'node:module'
  import { readdirSync, readFileSync } from 'node:fs'
  const isOurs = path => /workflow-mcp[^/]*[.]node/.test(path)
  function look() {
    if (process.platform !== 'linux') return { loaded: process.report.getReport().sharedObjects.some(isOurs) }
    const tasks = readdirSync('/proc/self/task')
    return {
      loaded: isOurs(readFileSync('/proc/self/maps', 'utf8')),
      tasks,
      ours: tasks.map(task => readFileSync('/proc/self/task/' + task + '/comm', 'utf8')).filter(name => /^workflow/.test(name)).length,
    }
  }
`

test('loading the package loads no native binary and starts no thread; the first call that needs it does', async () => {
  const { definition } = fixture()
  const { ended } = host(
    `${LOOK}
    // The modules of the package were evaluated already: these lines come after all imports.
    say(look())
    const names = Object.keys(workflow)
    for (const name of names) workflow[name]
    new workflow.McpError('x')
    say(look())
    const before = look()
    const required = createRequire(given.root)('workflow-mcp')
    say({ ...look(), same: names.every(name => required[name] === workflow[name]) })
    const unchanged = before.tasks?.join() === look().tasks?.join()
    say({ unchanged })
    await workflow.normalizeMcpServers([])
    const project = workflow.openMcpProject({ config: { servers: { a: { url: 'https://a.example' } } } })
    project.mcp('a')
    await project.close()
    say(look())
    const connection = await workflow.connectMcpServer(given.definition)
    say(look())
    await connection.close()`,
    { given: { root: join(root, 'x.js'), definition } },
  )
  const { said, code, stderr } = await ended
  assert.equal(code, 0, stderr)
  const [imported, touched, required, { unchanged }, normalised, connected] = said
  for (const { loaded, ours } of [imported, touched, required]) {
    assert.equal(loaded, false)
    if (process.platform === 'linux') assert.equal(ours, 0)
  }
  assert.equal(unchanged, true)
  assert.equal(required.same, true)
  assert.equal(normalised.loaded, true)
  assert.equal(connected.loaded, true)
  if (process.platform === 'linux') {
    assert.equal(normalised.ours, 0, 'judging definitions and reading a project need no thread')
    assert.ok(connected.ours >= 1)
  }
})

test('a connect and a call that succeed load no file that only others need: each costs a start 0.15 ms', () => {
  // Whether the generated loader is needed depends on the place of the binary.
  const program = `
    const [folder, definition] = process.argv.slice(1)
    const ours = path => path.startsWith(folder) && /[.]js$/.test(path) && !/binding[.]js$/.test(path)
    const loaded = () => Object.keys(require.cache).filter(ours).map(path => path.slice(folder.length)).sort()
    const workflow = require(folder)
    const first = loaded()
    workflow.connectMcpServer(JSON.parse(definition)).then(async connection => {
      await connection.callTool('echo')
      await connection.close()
      console.log(JSON.stringify([first, loaded()]))
    })`
  const given = ['-e', program, root, JSON.stringify(fixture().definition)]
  const [first, all] = JSON.parse(execFileSync(process.execPath, given, { encoding: 'utf8' }))
  assert.deepEqual(first, ['index.js'])
  const needed = ['call-options', 'connection', 'core', 'dispatcher', 'results']
  assert.deepEqual(all, ['index.js', ...needed.map(name => `lib/${name}.js`)])
})

// ───────────────────────────── names ─────────────────────────────

test('CommonJS and ESM give the same names and the same values, and index.d.ts says so', async () => {
  const required = require('workflow-mcp')
  const imported = await import('workflow-mcp')
  const names = Object.keys(required).sort()
  assert.deepEqual(Object.keys(imported).sort(), names)
  for (const name of names) assert.equal(imported[name], required[name], name)
  assert.equal(imported.McpError, workflow.McpError)
  const types = readFileSync(join(root, 'index.d.ts'), 'utf8')
  const declared = [...types.matchAll(/^export (?:declare )?(?:function|const|class) (\w+)/gm)]
  assert.deepEqual([...new Set(declared.map(([, name]) => name))].sort(), names)
  const error = await failure(imported.normalizeMcpServers(1))
  assert.ok(error instanceof required.McpError)
})

test('only the package itself and its package.json can be reached', async () => {
  assert.equal(require('workflow-mcp/package.json').name, 'workflow-mcp')
  const inner = ['index.js', 'index.mjs', 'binding.js', 'lib/connection.js', 'lib/errors.js', 'lib/core.js']
  for (const path of inner) {
    assert.ok(existsSync(join(root, path)), path)
    const specifier = `workflow-mcp/${path}`
    assert.throws(() => require(specifier), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' })
    await assert.rejects(import(specifier), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' })
  }
})

// ───────────────────────────── several environments ─────────────────────────────

test('copies of the package in one environment, as a reset of the modules makes them, work side by side', async t => {
  const copies = [workflow, ...[1, 2].map(() => copyOfPackage())]
  assert.equal(new Set(copies.map(({ connectMcpServer }) => connectMcpServer)).size, copies.length)
  const connections = []
  for (const copy of copies) connections.push(await copy.connectMcpServer(fixture().definition))
  t.after(() => Promise.all(connections.map(connection => connection.close())))
  for (const [index, connection] of connections.entries())
    assert.deepEqual((await connection.callTool('echo', { index })).structuredContent, { index })
  for (const copy of copies) {
    const error = await failure(copy.connectMcpServer({ id: 'x', command: ['/nowhere/at/all'] }))
    assert.ok(copies.every(({ McpError }) => McpError.is(error)))
  }
})

/** The package, evaluated once more. */
function copyOfPackage() {
  const kept = { ...require.cache }
  for (const path of Object.keys(kept)) delete require.cache[path]
  const copy = require('../index.js')
  for (const path of Object.keys(require.cache)) delete require.cache[path]
  Object.assign(require.cache, kept)
  return copy
}

const WORKER = `
  const { parentPort, workerData } = require('node:worker_threads')
  const workflow = require('workflow-mcp')
  const answers = {
    async call({ index, tool, args }) {
      return (await connections[index].callTool(tool, args)).structuredContent
    },
    pend({ index }) {
      for (let count = 0; count < 20; count++) connections[index].callTool('silent').catch(() => {})
    },
    end() {
      parentPort.unref()
    },
  }
  let connections
  Promise.all(workerData.map(definition => workflow.connectMcpServer(definition))).then(
    connected => {
      connections = connected
      parentPort.on('message', async question => parentPort.postMessage((await answers[question.what](question)) ?? null))
      parentPort.postMessage(connections.map(({ pid }) => pid))
    },
    error => parentPort.postMessage(String(error)),
  )
`

/** A Worker that has connected to some fixture servers. */
async function worker(t, servers) {
  const definitions = Array.from({ length: servers }, () => fixture().definition)
  const thread = new Worker(WORKER, { eval: true, workerData: definitions })
  t.after(() => thread.terminate())
  const message = () =>
    new Promise((resolve, reject) => {
      thread.once('message', resolve)
      thread.once('error', reject)
    })
  const pids = await message()
  assert.ok(Array.isArray(pids), String(pids))
  return {
    thread,
    servers: pids.map(seen),
    ask(question) {
      const answer = message()
      thread.postMessage(question)
      return answer
    },
  }
}

test('the main thread and two Workers each have servers of their own, and a Worker takes only its own along', async t => {
  const connection = await workflow.connectMcpServer(fixture().definition)
  t.after(() => connection.close())
  const mine = seen(connection.pid)
  const first = await worker(t, 2)
  const second = await worker(t, 1)
  const all = [mine, ...first.servers, ...second.servers]
  assert.equal(new Set(all.map(({ pid }) => pid)).size, 4)

  const echo = index => ({ what: 'call', index, tool: 'echo', args: { index } })
  const answers = await Promise.all([
    first.ask(echo(0)),
    second.ask(echo(0)),
    connection.callTool('echo', { main: true }),
  ])
  assert.deepEqual(
    [answers[0], answers[1], answers[2].structuredContent],
    [{ index: 0 }, { index: 0 }, { main: true }],
  )

  // In the middle of 40 calls.
  await first.ask({ what: 'pend', index: 0 })
  await first.ask({ what: 'pend', index: 1 })
  await first.thread.terminate()
  for (const server of first.servers) await gone(server)
  assert.ok(lives(mine) && lives(second.servers[0]))
  assert.deepEqual(await second.ask(echo(0)), { index: 0 })
  assert.deepEqual((await connection.callTool('echo', { still: 1 })).structuredContent, { still: 1 })

  // Loaded again after an environment of it has been torn down.
  const third = await worker(t, 1)
  assert.deepEqual(await third.ask(echo(0)), { index: 0 })

  // Idle connections do not keep a Worker alive; its natural end ends its servers.
  const ended = new Promise(resolve => second.thread.once('exit', resolve))
  await second.ask({ what: 'end' })
  assert.equal(await ended, 0)
  await gone(second.servers[0])
  assert.ok(lives(mine) && lives(third.servers[0]))
  assert.deepEqual(await third.ask(echo(0)), { index: 0 })
  await third.thread.terminate()
  await gone(third.servers[0])
  assert.deepEqual((await connection.callTool('echo', { still: 2 })).structuredContent, { still: 2 })
})

test('a Worker that is terminated while it connects leaves no server behind', async t => {
  const { definition, log } = fixture(['--silent'])
  const thread = new Worker(WORKER, { eval: true, workerData: [definition] })
  t.after(() => thread.terminate())
  const pid = await soon(() => /^#pid (\d+)$/m.exec(readIfThere(log))?.[1], 'the start of the server')
  const server = seen(Number(pid))
  assert.ok(server)
  await thread.terminate()
  await gone(server)
})

function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

test('Workers that come and go leave nothing behind', { skip: process.platform !== 'linux' }, async t => {
  const threads = () => require('node:fs').readdirSync('/proc/self/task').length
  await (await worker(t, 1)).thread.terminate()
  const before = threads()
  for (let round = 0; round < POOL_THREADS + 2; round++) {
    const { thread, servers } = await worker(t, 1)
    await thread.terminate()
    await gone(servers[0])
  }
  // Which of its threads the pool has needed by now is chance; one that every Worker left behind would be more.
  await soon(() => threads() <= before + POOL_THREADS, 'the end of the threads')
})
