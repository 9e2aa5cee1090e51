// Processes as the system knows them: told from a later one of the same number by their start time.

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { soon } from './fixture.mjs'

/** As many as the pool of a process may have, which stay (src/node/io_thread.rs). */
export const POOL_THREADS = 4

/** The process of this number; undefined when there is none, or only a zombie. */
export function seen(pid) {
  const start = process.platform === 'linux' ? startFromProc(pid) : startFromPs(pid)
  return start && { pid, start }
}

/** Whether this very process still lives. */
export function lives({ pid, start }) {
  return seen(pid)?.start === start
}

/** Waits until the process is gone. */
export async function gone(process) {
  await soon(() => !lives(process), `the end of process ${process.pid}`)
}

/** The children of a process, zombies (state Z) among them. Linux. */
export function children(pid) {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  const all = pids.map(Number).map(child => ({ pid: child, fields: statFields(child) ?? [] }))
  return all.flatMap(({ pid: child, fields: [state, parent] }) =>
    Number(parent) === pid ? [{ pid: child, state }] : [],
  )
}

/** Those that have ended and that nobody has waited for. Linux. */
export function zombies(pid) {
  return children(pid).filter(({ state }) => state === 'Z')
}

function startFromProc(pid) {
  const fields = statFields(pid)
  return fields?.[0] === 'Z' ? undefined : fields?.[19]
}

/** The fields of /proc/<pid>/stat from the state on; undefined when there is no such process. */
function statFields(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined
    throw error
  }
}

function startFromPs(pid) {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
    return line.startsWith('Z') ? undefined : line.slice(line.indexOf(' ')).trim()
  } catch {
    return undefined
  }
}
