// Connect, call, close, thousands of times; every other time something fails, at each stage in turn.

import assert from 'node:assert/strict'
import { inTime, pause } from './patience.mjs'
import { missing, running, server, workflow } from './servers.mjs'

/** Cycles that go on side by side. */
const LANES = 4

const { connectMcpServer } = workflow

const FAILURES = {
  'the program is missing': () => refused(missing, 'ERR_MCP_SPAWN'),
  'it leaves during the handshake': () => refused(server('leaves-handshake'), 'ERR_MCP_HANDSHAKE'),
  'it never answers the handshake': () =>
    refused(server('silent'), 'ERR_MCP_TIMEOUT', { connectTimeout: 50 }),
  'it leaves during the listing': () => refused(server('leaves-listing'), 'ERR_MCP_HANDSHAKE'),
  'it refuses the listing': () => refused(server('refuses-listing'), 'ERR_MCP_RPC'),

  'it leaves in mid-call': async () => {
    const connection = await connectMcpServer(server('leaves-call'))
    await rejects(connection.callTool('greet'), 'ERR_MCP_EXITED')
    assert.equal((await connection.close()).exitCode, 5)
  },
  'a call is aborted': async () => {
    const connection = await connectMcpServer(server('hangs-call'))
    const aborting = new AbortController()
    const call = connection.callTool('greet', {}, aborting.signal)
    aborting.abort('enough')
    await assert.rejects(call, reason => reason === 'enough')
    await connection.close()
  },
  'it ignores the end of its input': async () => {
    const connection = await connectMcpServer(server('ignores-end'), { shutdown: { endOfInput: 20 } })
    assert.notEqual((await connection.close()).ended, 'end-of-input')
  },
  'it ignores SIGTERM too': async () => {
    const shutdown = { endOfInput: 20, terminate: 20 }
    const connection = await connectMcpServer(server('ignores-term'), { shutdown })
    assert.equal((await connection.close()).ended, 'kill')
  },
  'it is killed while idle, and nobody closes': async () => {
    const connection = await connectMcpServer(server())
    process.kill(connection.pid, 'SIGKILL')
    assert.equal((await connection.ref().closed).signal, 'SIGKILL')
  },
  'it is killed in mid-call, and nobody closes': async () => {
    const connection = await connectMcpServer(server('hangs-call'))
    const call = connection.callTool('greet')
    process.kill(connection.pid, 'SIGKILL')
    await rejects(call, 'ERR_MCP_EXITED')
  },
  'nobody holds it, and nobody closes': async () => {
    const pid = await dropped()
    while (running().some(server => server.pid === pid)) {
      globalThis.gc()
      await pause(5)
    }
  },
}

/** So many cycles, half of which fail. */
export async function cycles(count) {
  const failures = Object.entries(FAILURES)
  let begun = 0
  const lane = async () => {
    while (begun < count) {
      const index = begun++
      const [name, cycle] =
        index % 2 ? failures[((index - 1) / 2) % failures.length] : ['nothing fails', succeeds]
      await inTime(cycle(), name)
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

async function succeeds() {
  const connection = await connectMcpServer(server())
  const result = await connection.callTool('greet', { name: 'you' })
  assert.equal(result.content[0].text, 'hello')
  await connection.close()
}

async function refused(definition, code, options) {
  await rejects(connectMcpServer(definition, options), code)
}

async function rejects(promise, code) {
  await assert.rejects(promise, error => {
    assert.equal(error.code, code, error.message)
    return true
  })
}

/** In a function of its own, so that no variable holds the connection. */
async function dropped() {
  const connection = await connectMcpServer(server())
  await connection.callTool('greet')
  return connection.pid
}
