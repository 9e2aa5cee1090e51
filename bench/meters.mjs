// What a process can tell of itself.

import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** CPU time of the main thread alone, in µs: `process.cpuUsage()` counts every thread. */
export function mainThreadCpu() {
  const [nanoseconds] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')
  return Number(nanoseconds) / 1_000
}

/** Resident memory in MB, and the most there ever was. */
export function memory() {
  const status = readFileSync('/proc/self/status', 'utf8')
  const megabytes = name => Number(status.match(new RegExp(`${name}:\\s*(\\d+) kB`))[1]) / 1_024
  return { now: megabytes('VmRSS'), peak: megabytes('VmHWM') }
}

/** The longest that the event loop was held up while `work` ran, in ms. */
export async function stall(work) {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  // Both ends of the time have to be seen by the histogram.
  await turns()
  delay.reset()
  await work()
  await turns()
  delay.disable()
  return delay.max / 1e6
}

function turns() {
  return new Promise(resolve => setTimeout(resolve, 5))
}

export function percentile(values, percent) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))]
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
