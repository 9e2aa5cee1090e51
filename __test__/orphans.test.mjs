// No orphans: every way a host or a connection can end, with every kind of server. Nobody of the server's family is left, nor the
// guardian; what cannot be had is listed here, and asserted, too.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { FAMILIES, family } from './support/families.mjs'
import { soon } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { lives, seen } from './support/processes.mjs'

const PACKAGE = new URL('../index.mjs', import.meta.url).href

const CONNECT = `
  let connection = await workflow.connectMcpServer(given.definition, given.options)
  say('up')
`
const AWAIT_SIGNAL = `${CONNECT} setInterval(() => {}, 60_000)`

/** A Worker connects, then does as `then` says; the main thread does `end` and stays until it is told. */
const inWorker = (then, end) => `
  import { Worker } from 'node:worker_threads'
  const worker = new Worker(${JSON.stringify(`
    const { parentPort, workerData } = require('node:worker_threads')
    import(workerData.PACKAGE).then(async workflow => {
      globalThis.connection = await workflow.connectMcpServer(workerData.definition, workerData.options)
      parentPort.postMessage('up')
      ${then}
    })`)}, { eval: true, execArgv: [], workerData: given })
  const exited = new Promise(resolve => worker.on('exit', resolve))
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  say('up')
  told()
  ${end}
  await exited
  say('ended')
  told()
`

/** `kill`: the host is ended from outside. `hostLives`: the host says when it is done, and stays. `exit`: what is seen of its end. */
const ENDS = [
  { name: 'loop drain', code: `${CONNECT} told()`, exit: { code: 0 } },
  { name: 'process.exit', code: `${CONNECT} told(); process.exit(3)`, exit: { code: 3 } },
  {
    name: 'uncaught exception',
    code: `${CONNECT} told(); setImmediate(() => { throw new Error('on purpose') })`,
    exit: { code: 1 },
  },
  {
    name: 'unhandled rejection',
    code: `${CONNECT} told(); Promise.reject(new Error('on purpose'))`,
    exit: { code: 1 },
  },
  ...['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'].map(signal => ({
    name: signal,
    code: AWAIT_SIGNAL,
    kill: signal,
    exit: { signal },
  })),
  { name: 'process.abort', code: `${CONNECT} told(); process.abort()`, exit: { signal: 'SIGABRT' } },
  {
    name: 'out of memory',
    code: `${CONNECT} told(); const hoard = []; for (;;) hoard.push(new Array(10_000).fill(hoard.length))`,
    flags: ['--max-old-space-size=20'],
    // SIGABRT, SIGTRAP or SIGILL, as V8 is built.
    exit: {},
  },
  {
    name: 'Worker terminate()',
    code: inWorker(`parentPort.on('message', () => {})`, 'worker.terminate()'),
    hostLives: true,
  },
  {
    name: 'Worker terminate() while it blocks',
    code: inWorker(`Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`, 'worker.terminate()'),
    hostLives: true,
  },
  {
    name: 'process.exit in a Worker',
    code: inWorker(`parentPort.on('message', () => process.exit(0))`, `worker.postMessage('exit')`),
    hostLives: true,
  },
  {
    name: 'environment torn down',
    code: inWorker(`parentPort.once('message', () => parentPort.close())`, `worker.postMessage('end')`),
    hostLives: true,
  },
  {
    name: 'connection collected',
    code: `${CONNECT} told()
      let closed
      connection.closed.then(info => { closed = info })
      connection = undefined
      while (!closed) {
        gc()
        await new Promise(resolve => setTimeout(resolve, 5))
      }
      say('ended')
      told()`,
    flags: ['--expose-gc'],
    hostLives: true,
  },
  {
    name: 'close()',
    code: `${CONNECT} told()
      say((await connection.close()).survivors.length === 0 ? 'ended' : 'survivors')
      told()`,
    hostLives: true,
  },
]

/** Cells that are impossible on this system; docs/processes.md has the same list. */
const IMPOSSIBLE = ENDS.filter(({ hostLives }) => !hostLives).map(({ name }) => ({
  end: name,
  kind: 'with-setsid-grandchild',
  reason:
    'the guardian knows groups; the only way to a process that left its group leads through the server, which is gone',
}))

const isImpossible = (end, kind) => IMPOSSIBLE.some(cell => cell.end === end.name && cell.kind === kind)

/** There is no setsid(1) to make such a family with. */
const skipped = kind => ({ skip: process.platform === 'darwin' && kind === 'with-setsid-grandchild' })

/** Ms until nobody was left, by end and family. */
const took = new Map()

async function guardiansOf(pid) {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,args='])
  const rows = stdout.split('\n').map(line => line.trim().split(/\s+/))
  const own = rows.filter(
    ([, parent, ...args]) => Number(parent) === pid && args.at(-1) === 'workflow-mcp-guardian',
  )
  return own.map(([guardian]) => seen(Number(guardian)))
}

async function cell(end, kind) {
  const { definition, members } = family(kind)
  const options = { shutdown: { endOfInput: 300, terminate: 300 } }
  const program = host(end.code, { given: { definition, options, PACKAGE }, flags: end.flags })
  assert.equal(await program.next(), 'up')
  const everybody = await members()
  const guardians = await soon(async () => {
    const running = await guardiansOf(program.child.pid)
    return running.length > 0 && running
  }, 'the start of a guardian')
  assert.equal(guardians.length, 1)

  const begun = Date.now()
  if (end.kill) program.child.kill(end.kill)
  else program.tell()
  if (end.hostLives) assert.equal(await program.next(), 'ended')
  else {
    const { code, signal, stderr } = await program.ended
    assert.deepEqual({ code, signal, ...end.exit }, { code, signal }, stderr)
    assert.ok(end.exit.code === 0 || code !== 0, 'the host did not end as it should')
  }
  if (isImpossible(end, kind)) {
    await soon(() => !guardians.some(lives), 'the end of the guardian')
    const [stray, ...others] = everybody.filter(lives)
    assert.ok(stray, 'it is possible: take it off the list')
    assert.deepEqual(others, [])
  } else {
    await soon(() => !everybody.some(lives), `the end of everybody in ${kind}`)
    took.set(`${end.name} ${kind}`, Date.now() - begun)
  }
  if (end.hostLives) {
    assert.ok(lives(guardians[0]), 'the guardian waits for other servers')
    program.tell()
    const { code, stderr } = await program.ended
    assert.equal(code, 0, stderr)
    await soon(() => !guardians.some(lives), 'the end of the guardian')
  }
}

describe('no orphans', { concurrency: 6, skip: process.platform === 'win32' }, () => {
  for (const end of ENDS) {
    for (const [kind, { name }] of Object.entries(FAMILIES)) {
      const what = isImpossible(end, kind) ? 'is left behind (impossible here)' : 'leaves nobody'
      test(`${end.name}: a ${name} ${what}`, skipped(kind), () => cell(end, kind))
    }
  }
  after(printTable)
})

/** Ms until the last of a family was gone, a row for each end. */
function printTable() {
  const kinds = Object.keys(FAMILIES)
  const row = (name, cells) => name.padEnd(36) + cells.map(cell => String(cell).padStart(8)).join('')
  const lines = kinds.map((kind, index) => `${String.fromCharCode(65 + index)}  ${FAMILIES[kind].name}`)
  lines.push(
    '',
    row(
      'ms until nobody was left',
      kinds.map((_, index) => String.fromCharCode(65 + index)),
    ),
  )
  for (const end of ENDS) {
    const cells = kinds.map(kind =>
      isImpossible(end, kind) ? 'left' : (took.get(`${end.name} ${kind}`) ?? 'failed'),
    )
    lines.push(row(end.name, cells))
  }
  lines.push(
    '',
    'left: impossible on this system:',
    ...new Set(IMPOSSIBLE.map(({ reason }) => `  ${reason}`)),
  )
  process.stdout.write(`${lines.join('\n')}\n`)
}
