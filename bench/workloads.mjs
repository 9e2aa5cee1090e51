// What each row does with a client, and what that gives. One process does one of these once.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { allowedCores, onCore } from './cores.mjs'
import { mainThreadCpu, median, memory, percentile, stall } from './meters.mjs'

export const SERVER = fileURLToPath(new URL('../target/bench/release/bench-server', import.meta.url))

const STDIO = { command: [SERVER] }
const EIGHT = Array.from({ length: 8 }, () => STDIO)
const SMALL = { text: 'hello' }

export async function connect(client, { times }) {
  const samples = []
  for (let time = 0; time < times + 3; time++) {
    const begun = performance.now()
    const connection = await client.connect(STDIO)
    await connection.list()
    await connection.close()
    samples.push(performance.now() - begun)
  }
  // The first ones load and start what later ones find there.
  return { ms: median(samples.slice(3)) }
}

export async function eight(client, { times }) {
  const samples = []
  for (let time = 0; time < times + 2; time++) {
    const begun = performance.now()
    const connections = await client.connectAll(EIGHT)
    samples.push(performance.now() - begun)
    await closeAll(connections)
  }
  return { ms: median(samples.slice(2)) }
}

export async function call(client, { times, http }) {
  return withConnection(client, http, async connection => {
    await series(connection, times / 4)
    const samples = new Float64Array(times)
    const cpu = mainThreadCpu()
    for (let time = 0; time < times; time++) {
      const begun = process.hrtime.bigint()
      await connection.call('echo', SMALL)
      samples[time] = Number(process.hrtime.bigint() - begun) / 1_000
    }
    return {
      p50: percentile(samples, 50),
      p99: percentile(samples, 99),
      cpu: (mainThreadCpu() - cpu) / times,
    }
  })
}

export async function inFlight(client, { times, count }) {
  return withConnection(client, false, async connection => {
    await parallel([connection], count, times / 4)
    const cpu = mainThreadCpu()
    const begun = performance.now()
    await parallel([connection], count, times)
    const seconds = (performance.now() - begun) / 1_000
    return { perSecond: times / seconds, cpu: (mainThreadCpu() - cpu) / times }
  })
}

/** Large results, one after the other. */
export async function result(client, { times, tool, args, http }) {
  return withConnection(client, http, async connection => {
    for (let time = 0; time < Math.max(1, times / 5); time++) await connection.call(tool, args)
    const samples = []
    let cpu
    const longest = await stall(async () => {
      const before = mainThreadCpu()
      for (let time = 0; time < times; time++) {
        const begun = performance.now()
        const { content } = await connection.call(tool, args)
        samples.push(performance.now() - begun)
        // It is all there, and not thrown away by a clever engine.
        if (tool !== 'rows' && content[0].text.length < args.bytes / 3) throw new Error('the text is cut')
      }
      cpu = (mainThreadCpu() - before) / 1_000 / times
    })
    return { latency: median(samples), cpu, stall: longest }
  })
}

export async function argument(client, { times, bytes }) {
  const args = { text: 'The quick brown fox jumps over it. '.repeat(bytes / 35) }
  return withConnection(client, false, async connection => {
    for (let time = 0; time < times / 5; time++) await connection.call('sink', args)
    const cpu = mainThreadCpu()
    for (let time = 0; time < times; time++) await connection.call('sink', args)
    return { cpu: (mainThreadCpu() - cpu) / 1_000 / times }
  })
}

export async function resident(client, { count }) {
  const connections = await client.connectAll(EIGHT.slice(0, count))
  for (const connection of connections) await series(connection, 100)
  const { now } = memory()
  await closeAll(connections)
  return { rss: now }
}

export async function eightBusy(client, { times }) {
  const connections = await client.connectAll(EIGHT)
  await parallel(connections, 64, times / 4)
  const begun = performance.now()
  await parallel(connections, 64, times)
  const seconds = (performance.now() - begun) / 1_000
  await closeAll(connections)
  return { perSecond: times / seconds }
}

export async function queue(client, { times }) {
  return withConnection(client, false, async connection => {
    const atOnce = async count => {
      const begun = performance.now()
      await Promise.all(Array.from({ length: count }, () => connection.call('echo', SMALL)))
      return performance.now() - begun
    }
    await atOnce(times)
    const few = []
    for (let time = 0; time < 10; time++) few.push(await atOnce(times / 10))
    const many = []
    for (let time = 0; time < 3; time++) many.push(await atOnce(times))
    return { ms: median(many), growth: median(many) / 10 / median(few) }
  })
}

export async function manyTools(client, { times }) {
  const took = async count => {
    const samples = []
    for (let time = 0; time < times + 1; time++) {
      const begun = performance.now()
      const command = [SERVER, '--tools', String(count - 7), '--schema', '50000']
      const connection = await client.connect({ command })
      const tools = await connection.list()
      samples.push(performance.now() - begun)
      if (tools.length !== count) throw new Error(`${tools.length} tools were listed`)
      await connection.close()
    }
    return median(samples.slice(1))
  }
  const few = await took(64)
  const many = await took(256)
  return { ms: many, growth: many / 4 / few }
}

export async function manyResults(client, { times }) {
  return withConnection(client, false, async connection => {
    for (let time = 0; time < times; time++) await connection.call('ascii', { bytes: 9_000_000 })
    return { rss: memory().now }
  })
}

export async function manyCalls(client, { times }) {
  return withConnection(client, false, async connection => {
    await parallel([connection], 16, times * 3)
    const before = memory().now
    await parallel([connection], 16, times)
    return { growth: memory().now - before }
  })
}

export async function manyConnects(client, { times }) {
  const some = async count => {
    for (let time = 0; time < count; time++) await (await client.connect(STDIO)).close()
  }
  await some(times / 2)
  const before = memory().now
  await some(times)
  return { growth: memory().now - before }
}

/**
 * What a large plain text costs the main thread with its size: V8's collections, which it starts by the bytes it is told
 * of. So the mean counts: they come with every few calls.
 */
export async function longTexts(client, { times }) {
  return withConnection(client, false, async connection => {
    const cost = async megabytes => {
      const args = { bytes: megabytes * 1_000_000 }
      await connection.call('ascii', args)
      const cpu = mainThreadCpu()
      for (let time = 0; time < times; time++) await connection.call('ascii', args)
      return (mainThreadCpu() - cpu) / times
    }
    const short = await cost(3)
    return { perMegabyte: ((await cost(30)) - short) / 27 }
  })
}

/**
 * The floor of a small call. Where the clients have two cores, it has one for each side: the kernel puts so small a program on one at times,
 * where it takes a tenth, and a client hardly ever.
 */
export async function pingPong(_client, { times }) {
  const [core, other] = allowedCores()
  // A request and its answer have about 100 bytes.
  const command = [SERVER, 'ping-pong', String(times), '100']
  const line = await firstLine(other === undefined ? command : onCore(core, [...command, String(other)]))
  const { p50, p99, cpu } = JSON.parse(line)
  return { p50: p50 / 1_000, p99: p99 / 1_000, cpu: cpu / 1_000 }
}

/** The floor of a start. */
export async function bareStart(_client, { times }) {
  return { ms: Number(await firstLine([SERVER, 'bare-starts', String(times)])) / 1_000_000 }
}

/** The floor of a structured result: reading its text, and writing the arguments, is all there is to it. */
export async function json(_client, { times, tool, args }) {
  const text = JSON.stringify(JSON.parse(await rawResult(tool, args)))
  let kept
  for (let time = 0; time < times / 5; time++) kept = JSON.parse(text)
  const cpu = mainThreadCpu()
  for (let time = 0; time < times; time++) {
    JSON.stringify(args)
    kept = JSON.parse(text)
    // As a caller gets one result after the other, in turns of their own.
    await new Promise(resolve => setImmediate(resolve))
  }
  if (kept.structuredContent.rows.length !== args.count) throw new Error('the text is cut')
  return { cpu: (mainThreadCpu() - cpu) / 1_000 / times }
}

/** The text of a result, as it comes over the wire. */
async function rawResult(tool, args) {
  const child = spawn(SERVER, [], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(
    `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: args } })}\n`,
  )
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return JSON.stringify(JSON.parse(line).result)
}

/** What a program that measures a floor prints. */
async function firstLine([program, ...words]) {
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return line
}

async function withConnection(client, http, work) {
  const server = http ? await startHttp() : undefined
  const connection = await client.connect(server ?? STDIO)
  await connection.list()
  try {
    return await work(connection)
  } finally {
    await connection.close()
    server?.stop()
  }
}

async function startHttp() {
  const child = spawn(SERVER, ['--http'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [port] = await once(createInterface({ input: child.stdout }), 'line')
  return { url: `http://127.0.0.1:${port}/mcp`, stop: () => child.stdin.end() }
}

async function series(connection, times) {
  for (let time = 0; time < times; time++) await connection.call('echo', SMALL)
}

/** So many calls in all, so many of them under way on each connection. */
async function parallel(connections, inFlight, times) {
  let left = times
  const worker = async connection => {
    while (left-- > 0) await connection.call('echo', SMALL)
  }
  await Promise.all(
    connections.flatMap(connection => Array.from({ length: inFlight }, () => worker(connection))),
  )
}

async function closeAll(connections) {
  await Promise.all(connections.map(connection => connection.close()))
}
