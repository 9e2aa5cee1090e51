// What is measured, and the bars. A bar is a ratio to the better peer in the same run; a floor's bar a ratio to that floor; a limit
// is a value by itself. Lower is better unless a measure says `more`.

const KB = 1_000
const MB = 1_000_000

/** Sizes by how long the run may take: [full, quick]. */
export const ROWS = [
  {
    name: 'load',
    workload: 'load',
    measures: { ms: { title: 'load the package and the binary in a fresh process', unit: 'ms', bar: 0.03 } },
  },
  {
    name: 'cold',
    workload: 'cold',
    measures: {
      ms: { title: 'cold run: process start, connect, list, one call, close, exit', unit: 'ms', bar: 0.4 },
    },
    // For reading the ratio: no client can be faster than this.
    floor: 'emptyProcess',
  },
  {
    name: 'connect',
    workload: 'connect',
    times: [40, 15],
    measures: { ms: { title: 'warm connect + list + close', unit: 'ms', bar: 0.65 } },
    floor: 'bareStart',
  },
  {
    name: 'eight',
    workload: 'eight',
    times: [20, 6],
    measures: { ms: { title: '8 servers in parallel', unit: 'ms', bar: 0.45 } },
  },
  loneCall(),
  inFlight(1, 1.3),
  inFlight(16, 2.5),
  inFlight(64, 2.5, 0.35),
  inFlight(256, 2.5),
  onOneCore(loneCall()),
  text('ascii', 100 * KB, '100 KB text', [200, 40], { latency: 0.5, cpu: 0.95 }),
  text('ascii', MB, '1 MB text', [60, 10], { latency: 0.6, cpu: 0.15 }),
  text('cjk', MB, '1 MB text with CJK', [60, 10], { latency: 0.6, cpu: 0.15 }),
  text('escapes', MB, '1 MB text with escapes', [60, 10], { latency: 0.6, cpu: 0.15 }),
  text('ascii', 10 * MB, '10 MB text', [10, 3], { latency: 0.2, cpu: 0.02, stall: 0.1 }),
  text('ascii', 30 * MB, '30 MB text', [3, 1], { latency: 0.03 }),
  {
    name: 'rows',
    workload: 'result',
    tool: 'rows',
    args: { count: 10_000 },
    times: [40, 8],
    measures: {
      latency: { title: '10,000 structured rows: latency', unit: 'ms', bar: 0.95 },
      cpu: { title: '10,000 structured rows: main-thread CPU', unit: 'ms', bar: 0.75, floorBar: 1.2 },
    },
    floor: 'json',
  },
  {
    name: 'argument',
    workload: 'argument',
    bytes: MB,
    times: [60, 10],
    measures: { cpu: { title: '1 MB argument: main-thread CPU', unit: 'ms', bar: 0.65 } },
  },
  resident(1),
  resident(8),
  {
    name: 'http-call',
    workload: 'call',
    http: true,
    times: [5_000, 1_000],
    measures: { p50: { title: 'streamable HTTP: small call p50', unit: 'µs', bar: 1 } },
  },
  {
    name: 'http-10mb',
    workload: 'result',
    http: true,
    tool: 'ascii',
    args: { bytes: 10 * MB },
    times: [10, 3],
    measures: {
      cpu: { title: 'streamable HTTP: 10 MB text, main-thread CPU', unit: 'ms', bar: 0.1 },
      latency: { title: 'streamable HTTP: 10 MB text, latency', unit: 'ms' },
    },
  },
  {
    name: 'scale-calls',
    workload: 'eightBusy',
    times: [40_000, 8_000],
    measures: { perSecond: { title: '8 servers, 64 calls in flight each', unit: 'calls/s', more: true } },
  },
  {
    name: 'scale-queue',
    workload: 'queue',
    times: [10_000, 10_000],
    measures: {
      ms: { title: '10,000 calls queued at once', unit: 'ms' },
      growth: {
        title: '10,000 calls at once: time of a call, against 1,000 at once',
        unit: 'times',
        limit: 1.5,
      },
    },
  },
  {
    name: 'scale-tools',
    workload: 'manyTools',
    times: [5, 2],
    measures: {
      ms: { title: 'connect + list of 256 tools with 50 KB of schema each', unit: 'ms' },
      growth: { title: '256 such tools: time of a tool, against 64', unit: 'times', limit: 1.5 },
    },
  },
  {
    name: 'memory-results',
    workload: 'manyResults',
    times: [200, 200],
    ours: true,
    measures: { rss: { title: 'RSS after 200 results of 9 MB', unit: 'MB', limit: 250 } },
  },
  {
    name: 'memory-calls',
    workload: 'manyCalls',
    times: [10_000, 10_000],
    ours: true,
    measures: { growth: { title: 'RSS that 10,000 more calls add', unit: 'MB', limit: 8 } },
  },
  {
    name: 'memory-connects',
    workload: 'manyConnects',
    times: [1_000, 200],
    ours: true,
    measures: { growth: { title: 'RSS that 1,000 more connects add', unit: 'MB', limit: 8 } },
  },
  {
    name: 'long-texts',
    workload: 'longTexts',
    times: [20, 6],
    ours: true,
    measures: {
      // No more than to copy it once, which takes 40 to 67 µs a MB on the machine of results.md.
      perMegabyte: {
        title: '30 MB text: main-thread CPU per MB, beyond that of 3 MB',
        unit: 'µs',
        limit: 40,
      },
    },
  },
]

function loneCall() {
  const title = 'small call, one at a time'
  return {
    name: 'call',
    workload: 'call',
    times: [20_000, 4_000],
    measures: {
      p50: { title: `${title}: p50`, unit: 'µs', bar: 0.85, floorBar: 3 },
      p99: { title: `${title}: p99`, unit: 'µs', bar: 0.8 },
      cpu: { title: `${title}: main-thread CPU`, unit: 'µs', bar: 0.5 },
    },
    floor: 'pingPong',
  }
}

/**
 * The same with client and server on one core, as in a container with one CPU, and without bars, which are meant for two. With a core for
 * each, a lone call is mostly the waking of cores that went to sleep, 20 µs each way under a hypervisor, whoever the client is: a bare ping-pong
 * takes 45 to 58 µs there, and 17 to 20 µs of CPU on each side. Here it takes 4 and 2. One core also holds still what the kernel decides otherwise:
 * it puts the two on one whenever another program has the second, and moves them apart when that is idle again (`perf sched`),
 * which makes single rounds differ by a factor of five.
 */
function onOneCore({ name, measures, ...row }) {
  const titled = Object.entries(measures).map(([key, { title, unit, floorBar }]) => [
    key,
    { title: `${title}, on one core`, unit, floorBar },
  ])
  return { ...row, name: `one-core-${name}`, isOnOneCore: true, measures: Object.fromEntries(titled) }
}

function inFlight(count, bar, cpuBar) {
  const title = `small calls, ${count} in flight`
  return {
    name: `flight-${count}`,
    workload: 'inFlight',
    count,
    times: [30_000, 6_000],
    measures: {
      perSecond: { title, unit: 'calls/s', more: true, bar },
      ...(cpuBar && { cpu: { title: `${title}: main-thread CPU`, unit: 'µs', bar: cpuBar } }),
    },
  }
}

function text(tool, bytes, title, times, bars) {
  const measures = { latency: { title: `${title}: latency`, unit: 'ms', bar: bars.latency } }
  if (bars.cpu) measures.cpu = { title: `${title}: main-thread CPU`, unit: 'ms', bar: bars.cpu }
  if (bars.stall) {
    measures.stall = { title: `${title}: longest stall of the event loop`, unit: 'ms', bar: bars.stall }
  }
  const name = `${tool}-${bytes < MB ? `${bytes / KB}kb` : `${bytes / MB}mb`}`
  return { name, workload: 'result', tool, args: { bytes }, times, measures }
}

function resident(count) {
  const title = `RSS with ${count === 1 ? 'one connection' : `${count} connections`}`
  return {
    name: `rss-${count}`,
    workload: 'resident',
    count,
    measures: { rss: { title, unit: 'MB', bar: 0.8 } },
  }
}
