// Programs that use the package, each in a process of its own: to see how one begins and how it ends.

import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { lives, seen } from './processes.mjs'

const PACKAGE = new URL('../../index.mjs', import.meta.url).href

const PRELUDE = `
  import * as workflow from ${JSON.stringify(PACKAGE)}
  import { readSync, writeSync } from 'node:fs'
  const say = value => writeSync(1, JSON.stringify(value) + '\\n')
  const told = () => readSync(0, new Uint8Array(1))
  const given = JSON.parse(process.env.GIVEN_TO_HOST)
  delete process.env.GIVEN_TO_HOST
`

/**
 * Runs `code`, the text of an ES module, with `workflow` (the package), `given` (the JSON value) and `say` at hand;
 * `told()` blocks it until `tell()` is called.
 *
 * `under` is a command in front of it, `detached` gives it a process group of its own. `said` is what it has said so far, `next()` waits
 * for what it says next, `ended` gives code, signal, stderr and all it said.
 */
export function host(code, { given = {}, flags = [], env = process.env, under = [], detached = false } = {}) {
  const [program, ...words] = [
    ...under,
    process.execPath,
    ...flags,
    '--input-type=module',
    '-e',
    PRELUDE + code,
  ]
  const child = spawn(program, words, {
    detached,
    env: { ...env, GIVEN_TO_HOST: JSON.stringify(given) },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // Whoever is told something may have ended.
  child.stdin.on('error', () => {})
  const said = []
  let read = 0
  let heard = () => {}
  createInterface({ input: child.stdout }).on('line', line => {
    said.push(JSON.parse(line))
    heard()
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  const ended = new Promise(resolve => {
    child.on('close', (code, signal) => resolve({ code, signal, stderr, said }))
  })
  ended.then(() => heard())
  return {
    child,
    said,
    ended,
    tell() {
      child.stdin.write('.')
    },
    async next() {
      while (said.length <= read) {
        if (child.exitCode !== null || child.signalCode !== null) {
          const { code, signal } = await ended
          if (said.length > read) break
          throw new Error(`the host ended with ${signal ?? code} and said no more: ${stderr}`)
        }
        await new Promise(resolve => {
          heard = resolve
        })
      }
      return said[read++]
    },
  }
}

/** In a host: a connection of `given.definition`; it says the pid of the server and waits until it is told. */
export const CONNECTED = `
  const connection = await workflow.connectMcpServer(given.definition, given.options)
  say(connection.pid)
  told()
`

const servers = new Set()
after(() => {
  for (const server of servers) if (lives(server)) process.kill(server.pid, 'SIGKILL')
})

/** The server of that number. If a test that fails leaves it, it is killed after all tests. */
export function serverSeen(pid) {
  const server = seen(pid)
  if (!server) throw new Error(`there is no server ${pid}`)
  servers.add(server)
  return server
}

/** Waits for a host to say the pid of its server, and tells it to go on. */
export async function serverOf(program) {
  const server = serverSeen(await program.next())
  program.tell()
  return server
}
