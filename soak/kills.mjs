// Eight servers that are connected and called again and again, while somebody kills one of them at random moments.

import { inTime, pause } from './patience.mjs'
import { children, isServer, server, workflow } from './servers.mjs'

const SERVERS = 8

/** The longest pause between two kills, and between two calls of one server, in ms. */
const KILL_EVERY = 100
const CALL_EVERY = 20

/** What a kill makes of a connect or a call; anything else is a fault. */
const EXPECTED = ['ERR_MCP_HANDSHAKE', 'ERR_MCP_EXITED', 'ERR_MCP_CLOSED']

/** Goes on for so many ms; gives how many were killed, and what became of connects and calls. */
export async function kills(duration) {
  const end = Date.now() + duration
  const counts = { kills: 0, connects: 0, calls: 0 }
  const goesOn = () => Date.now() < end
  const count = what => {
    counts[what] = (counts[what] ?? 0) + 1
  }
  await Promise.all([
    killer(goesOn, count),
    ...Array.from({ length: SERVERS }, () => connectedAgainAndAgain(goesOn, count)),
  ])
  return counts
}

/** A server is found by its mark and not through its connection: it may be starting, or stopping. */
async function killer(goesOn, count) {
  while (goesOn()) {
    await pause(Math.random() * KILL_EVERY)
    const servers = children().filter(({ pid, zombie }) => !zombie && isServer(pid))
    const victim = servers[Math.floor(Math.random() * servers.length)]
    if (!victim) continue
    try {
      process.kill(victim.pid, Math.random() < 0.5 ? 'SIGKILL' : 'SIGTERM')
      count('kills')
    } catch (error) {
      if (error.code !== 'ESRCH') throw error
    }
  }
}

async function connectedAgainAndAgain(goesOn, count) {
  while (goesOn()) {
    // The slow ones are there to be killed during the handshake.
    const definition = server(Math.random() < 0.5 ? 'starts-slowly' : 'none')
    const connection = await settled(workflow.connectMcpServer(definition), 'connect', count)
    if (!connection) continue
    count('connects')
    // Now and then it is we who end it, so that close() and the kill meet.
    while (goesOn() && Math.random() > 0.02) {
      if (!(await settled(connection.callTool('greet'), 'call', count))) break
      count('calls')
      await pause(Math.random() * CALL_EVERY)
    }
    if (Math.random() < 0.5 || !goesOn()) await inTime(connection.close(), 'a close')
  }
}

/** What the promise gives; undefined if it was a kill that rejected it. */
async function settled(promise, what, count) {
  try {
    return await inTime(promise, `a ${what}`)
  } catch (error) {
    if (!EXPECTED.includes(error.code)) throw error
    count(`${what}: ${error.code}`)
  }
}
