// Real servers over HTTP, each a process of its own that ends with the test, or with the tests' process in whatever way that ends.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { python } from './python.mjs'

const require = createRequire(import.meta.url)
const file = path => fileURLToPath(new URL(path, import.meta.url))

/** The official reference server: sessions, resumable streams, 13 tools for a client without capabilities. */
export async function everything(t) {
  const entry = require.resolve('@modelcontextprotocol/server-everything/dist/index.js')
  const port = await freePort()
  const preload = pathToFileURL(file('./ends-with-input.mjs')).href
  const args = ['--import', preload, entry, 'streamableHttp']
  const { log } = await program(t, process.execPath, args, {
    env: { ...process.env, PORT: String(port) },
    ready: line => line.includes(`listening on port ${port}`),
  })
  return { url: `http://127.0.0.1:${port}/mcp`, log }
}

/** The official JavaScript SDK, second version: `dual` speaks both eras and keeps no sessions, `modern` 2026-07-28 alone. */
export async function modern(t, kind) {
  return addressed(
    await program(t, process.execPath, [file('../../tests/fixtures/modern-http-server.mjs'), kind]),
  )
}

/** The official Python SDK: `stateful`, `stateless`, `json` or `polling`. */
export async function pythonServer(t, kind) {
  return addressed(await program(t, python(), [file('../python/server.py'), kind]))
}

function addressed({ line, log }) {
  return { url: line, log }
}

const children = new Set()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/** Starts it and waits until it says a line that is `ready`; `log` is all that it said. */
async function program(t, path, args, { env = process.env, ready = line => line.startsWith('http') } = {}) {
  const child = spawn(path, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
  children.add(child)
  child.on('exit', () => children.delete(child))
  child.stdin.on('error', () => {})
  t.after(async () => {
    if (!children.has(child)) return
    child.kill('SIGKILL')
    await once(child, 'close')
  })
  const log = []
  return new Promise((resolve, reject) => {
    const said = line => {
      log.push(line)
      if (ready(line)) resolve({ line, log })
    }
    createInterface({ input: child.stdout }).on('line', said)
    createInterface({ input: child.stderr }).on('line', said)
    child.on('error', reject)
    child.on('close', code => reject(new Error(`${path} ended with ${code}: ${log.join('\n')}`)))
  })
}

async function freePort() {
  const server = createServer().listen(0)
  await once(server, 'listening')
  const { port } = server.address()
  await new Promise(resolve => server.close(resolve))
  return port
}
