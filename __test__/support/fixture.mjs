// The fixture server as tests use it: definitions of it, connections to it, and what it saw on the wire.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const require = createRequire(import.meta.url)

export const workflow = require('../../index.js')

export const SERVER = fileURLToPath(new URL('../../tests/fixtures/server.mjs', import.meta.url))

/** Milliseconds, enough for a slow and loaded machine; a test that needs them has failed. */
export const PATIENCE = 10_000

const folder = mkdtempSync(join(tmpdir(), 'workflow-mcp-test-'))
// A server that outlives its host for a moment may write into its log meanwhile: then the folder is not empty at the first try.
const removal = { recursive: true, force: true, maxRetries: 10, retryDelay: 20 }
process.on('exit', () => rmSync(folder, removal))
let started = 0

/** A definition of the fixture server, and the log it writes. `more` are further properties of the definition. */
export function fixture(switches = [], more = {}) {
  const log = join(folder, `${++started}.log`)
  const command = [process.execPath, SERVER, '--log', log, ...switches]
  return { log, definition: { id: 'fixture', command, timeout: 30_000, ...more } }
}

/** A connection to the fixture server, closed with the test. However slow the machine is, a polite server has time to leave. */
export async function connected(t, switches = [], options = {}, more = {}) {
  const { log, definition } = fixture(switches, more)
  const shutdown = { endOfInput: PATIENCE, terminate: PATIENCE, ...options.shutdown }
  const connection = await workflow.connectMcpServer(definition, { ...options, shutdown })
  t.after(() => connection.close())
  return { connection, log }
}

/** The lines of a server's log; none when it has not started. */
export function logged(log) {
  try {
    return readFileSync(log, 'utf8').split('\n').slice(0, -1)
  } catch (error) {
    if (error.code === 'ENOENT') return []
    throw error
  }
}

/** The messages that a server has received, in order; those of one method, if it is named. */
export function received(log, method) {
  const messages = logged(log)
    .filter(line => !line.startsWith('#'))
    .map(line => JSON.parse(line))
  return method === undefined ? messages : messages.filter(message => message.method === method)
}

/** The pid that a server wrote into its log. */
export function loggedPid(log) {
  const line = logged(log).find(line => line.startsWith('#pid '))
  return line && Number(line.slice('#pid '.length))
}

/** How a connection ended by itself. `closed` alone keeps no process alive; a referenced connection does. */
export function ended(connection) {
  return connection.ref().closed
}

/** The error of a promise that must reject. */
export async function failure(promise) {
  let value
  try {
    value = await promise
  } catch (error) {
    return error
  }
  throw new Error(`it did not reject, but gave ${JSON.stringify(value)}`)
}

/** Waits until `check` gives something, and gives that. */
export async function soon(check, what = check.toString()) {
  const deadline = Date.now() + PATIENCE
  for (;;) {
    const value = await check()
    if (value) return value
    if (Date.now() > deadline) throw new Error(`did not come about within ${PATIENCE} ms: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}
