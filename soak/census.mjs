// What this process has while no server runs, and whether it has grown.

import { readdirSync } from 'node:fs'
import { pause } from './patience.mjs'
import { children, running } from './servers.mjs'

const MIB = 1024 * 1024

/** Memory is never the same twice, and may grow by so much from one census to the next; nothing else may grow at all. */
const STEP = { 'RSS MiB': 10, 'JavaScript heap MiB': 10 }

/** Longer than a thread of the pool stays idle (5 s), and shorter than the guardian does (60 s). */
const REST = 7_000

/** How long servers may take to leave that nobody waits for. */
const LEAVING = 10_000

/** Takes it once nothing is going on any more. */
export async function census() {
  const end = Date.now() + LEAVING
  // Some of the servers are those of connections that nobody holds any more.
  do await collectGarbage()
  while (running().length > 0 && Date.now() < end)
  await pause(REST)
  await collectGarbage()
  const ours = children()
  const orphans = running().filter(server => !server.ours)
  const { rss, heapTotal } = process.memoryUsage()
  return {
    pids: ours.filter(({ zombie }) => !zombie).length + orphans.length,
    zombies: ours.filter(({ zombie }) => zombie).length,
    descriptors: readdirSync('/proc/self/fd').length,
    threads: readdirSync('/proc/self/task').length,
    listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
    'RSS MiB': rss / MIB,
    'JavaScript heap MiB': heapTotal / MIB,
  }
}

/** A finalizer may let go of something that then has one of its own. */
async function collectGarbage() {
  for (let round = 0; round < 10; round++) {
    globalThis.gc()
    await pause(20)
  }
}

/** What has grown from the first census, or from one to the next, in words. */
export function growth(censuses) {
  const [first, ...later] = censuses
  const faults = []
  for (const [index, census] of later.entries()) {
    for (const [what, amount] of Object.entries(census)) {
      const before = what in STEP ? censuses[index][what] + STEP[what] : first[what]
      if (amount > before) faults.push(`${what} after third ${index + 1}`)
    }
    if (census.zombies > 0) faults.push(`zombies after third ${index + 1}`)
  }
  return [...new Set(faults)]
}
