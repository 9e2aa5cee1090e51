// The servers of a soak: what they are, and which of them are there.

import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

export const workflow = createRequire(import.meta.url)('../index.js')

const SCRIPT = fileURLToPath(new URL('server.sh', import.meta.url))

/** In the environment of every server and of whatever it starts: how they are told from everybody else's processes. */
const MARK = { name: 'WORKFLOW_MCP_SOAK', value: `${process.pid}-${Date.now()}` }

/** A definition of the server; `fault` is one of server.sh. */
export function server(fault = 'none') {
  return {
    id: 'soak',
    command: ['/bin/sh', SCRIPT, fault],
    environment: { [MARK.name]: MARK.value },
    timeout: 30_000,
  }
}

/** A server whose program does not exist. */
export const missing = { id: 'soak', command: ['/nonexistent/server'] }

/** The servers that run now, and what they have started, whoever is their parent. */
export function running() {
  return processes().filter(({ pid }) => isServer(pid))
}

/** Whether it is a server, or was started by one. A zombie is neither. */
export function isServer(pid) {
  return read(pid, 'environ').includes(`${MARK.name}=${MARK.value}`)
}

/** The children of this process; a `zombie` is one that has ended and that nobody has waited for. */
export function children() {
  return processes().filter(({ ours }) => ours)
}

function processes() {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      const stat = read(name, 'stat')
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return parent
        ? [{ pid: Number(name), zombie: state === 'Z', ours: Number(parent) === process.pid }]
        : []
    })
}

/** Empty for a process that has gone meanwhile, or that is another user's. */
function read(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(error.code)) return ''
    throw error
  }
}
