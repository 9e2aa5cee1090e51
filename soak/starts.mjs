// What a start costs in a host with much memory, and what starts cost the calls of another server.
//
//   npm run build && npm run measure:starts
//
// The sides of each comparison take turns, some rounds. Nothing here fails for being slow.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpus, loadavg } from 'node:os'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { server, workflow } from './servers.mjs'

const ROUNDS = 5
const STARTS = 40
/** How long calls are timed in a round, in ms. */
const WINDOW = 2_000
const GIB = 1024 ** 3

const SELF = fileURLToPath(import.meta.url)
const FIXTURE = fileURLToPath(new URL('../tests/fixtures/server.mjs', import.meta.url))

/** Eight servers, so small that the start is all there is to it; and eight of a common weight. */
const EIGHT = {
  'shell servers': eight(() => server()),
  'Node.js servers': eight(() => ({ command: [process.execPath, FIXTURE] })),
}

const [role, given] = process.argv.slice(2)
if (role === '--starter') {
  console.log(await startUntil(EIGHT[given], once(process.stdin.resume(), 'end')))
} else if (role === '--starts') {
  console.log(JSON.stringify(await starts(Number(given))))
} else {
  console.log(`${cpus().length} cores, load ${loadavg()[0].toFixed(1)}, Node.js ${process.version}; in ms`)
  await compareMemory()
  await compareCalls()
}

async function compareMemory() {
  const connects = {}
  const spawns = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const [side, bytes] of Object.entries({ 'bare host': 0, '1 GiB resident': GIB })) {
      // In a process of its own, since memory that was freed may still be resident.
      const times = JSON.parse(
        execFileSync(process.execPath, [SELF, '--starts', bytes], { encoding: 'utf8' }),
      )
      connects[side] = (connects[side] ?? []).concat(times.connects)
      spawns[side] = (spawns[side] ?? []).concat(times.spawns)
    }
  }
  print('connectMcpServer: spawn, handshake, tools', connects)
  print('for comparison, spawn of node:child_process, which blocks its caller', spawns)
}

/** How long starts take with so many bytes resident. */
async function starts(bytes) {
  // Filled, since pages that nobody has touched are not resident.
  const memory = Buffer.alloc(bytes, 1)
  const times = { connects: [], spawns: [] }
  for (let start = 0; start < STARTS; start++) {
    let began = performance.now()
    const connection = await workflow.connectMcpServer(server())
    times.connects.push(performance.now() - began)
    await connection.close()
    began = performance.now()
    const child = spawn('/bin/sh', ['-c', ':'], { stdio: 'ignore' })
    times.spawns.push(performance.now() - began)
    await once(child, 'exit')
  }
  if (memory.includes(0)) throw new Error('the memory is not what it was')
  return times
}

/** Small calls of one server, one after the other, while others start: here, or in another process, which takes the same cores. */
async function compareCalls() {
  const sides = { 'nobody starts': end => end }
  for (const [kind, definitions] of Object.entries(EIGHT)) {
    sides[`${kind} start here`] = end => startUntil(definitions, end)
    sides[`${kind} start elsewhere`] = end => startElsewhereUntil(kind, end)
  }
  const connection = await workflow.connectMcpServer(server())
  for (let call = 0; call < 2_000; call++) await connection.callTool('greet')
  const latencies = {}
  const servers = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const [side, start] of Object.entries(sides)) {
      let ending = false
      const end = new Promise(resolve => setTimeout(resolve, WINDOW)).then(() => {
        ending = true
      })
      const started = start(end)
      while (!ending) {
        const began = performance.now()
        await connection.callTool('greet')
        latencies[side] ??= []
        latencies[side].push(performance.now() - began)
      }
      servers[side] = (servers[side] ?? 0) + ((await started) ?? 0)
    }
  }
  await connection.close()
  print('a small call of another server, while eight start again and again', latencies)
  const started = Object.entries(servers).filter(([, count]) => count > 0)
  console.log(`  servers: ${started.map(([side, count]) => `${count} ${side}`).join(', ')}`)
}

/** Starts and closes the servers again and again; gives how many there were. */
async function startUntil(definitions, end) {
  let ending = false
  end.then(() => {
    ending = true
  })
  let count = 0
  while (!ending) {
    const group = await workflow.connectMcpServers(definitions)
    count += group.connections.length
    await group.close()
  }
  return count
}

async function startElsewhereUntil(kind, end) {
  const starter = spawn(process.execPath, [SELF, '--starter', kind], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [count] = await Promise.all([text(starter.stdout), end.then(() => starter.stdin.end())])
  return Number(count)
}

function eight(define) {
  return Array.from({ length: 8 }, (_, index) => ({ ...define(), id: `server-${index}`, timeout: 60_000 }))
}

function print(what, sides) {
  console.log(`\n${what}`)
  for (const [side, times] of Object.entries(sides)) {
    times.sort((one, other) => one - other)
    const at = share => times[Math.min(times.length - 1, Math.floor(times.length * share))].toFixed(2)
    console.log(`  ${side}: p50 ${at(0.5)} · p99 ${at(0.99)} · max ${at(1)} (${times.length})`)
  }
}
