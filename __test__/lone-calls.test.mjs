// Answers to calls that come one after the other are read on the caller's own thread (src/link/stdio/loan.rs). Whatever
// comes then instead of the next short answer has to be what it always is.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { connected, ended, failure, fixture, PATIENCE, received, soon, workflow } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { calledAlone, readsHere } from './support/lone-calls.mjs'
import { gone, seen } from './support/processes.mjs'

const numbers = count => Array.from({ length: count }, (_, index) => index)

/** Keeps this thread for so many ms. */
function busy(ms) {
  const until = performance.now() + ms
  while (performance.now() < until);
}

async function echoes(connection, count) {
  const results = await Promise.all(numbers(count).map(n => connection.callTool('echo', { n })))
  return results.map(({ structuredContent }) => structuredContent.n)
}

test('answers to calls one after the other are read on the caller’s thread, and elsewhere when no more come', {
  skip: process.platform === 'win32',
}, async t => {
  const { connection } = await connected(t)
  assert.equal(readsHere(), false)
  await calledAlone(connection)
  await soon(() => !readsHere(), 'the end of the loan')
  assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })
})

test('calls at once after calls one after the other all get their own answers, again and again', async t => {
  const { connection } = await connected(t)
  for (const count of [2, 16, 256]) {
    await calledAlone(connection)
    assert.deepEqual(await echoes(connection, count), numbers(count))
  }
  for (let round = 0; round < 50; round++) {
    for (let call = 0; call < round; call++) await connection.callTool('echo')
    assert.deepEqual(await echoes(connection, 3), numbers(3))
  }
  assert.equal(connection.diagnostics().unexpectedAnswers, 0)
})

test('a large answer after small ones comes whole, whatever its size', async t => {
  const { connection } = await connected(t)
  for (const bytes of [9_000, 70_000, 300_000, 3_000_000]) {
    await calledAlone(connection)
    const { content } = await connection.callTool('big', { bytes })
    assert.equal(content[0].text.length, bytes)
  }
})

test('an answer in pieces, letters cut through, is put together', async t => {
  const { connection } = await connected(t)
  await calledAlone(connection)
  const answer = Buffer.from(
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"für 😀"}]}}\n',
  )
  for (const size of [1, 7, 60]) {
    const parts = []
    for (let from = 0; from < answer.length; from += size) parts.push(answer.subarray(from, from + size))
    // The id stands in one part.
    const at = parts.findIndex((_, index) => Buffer.concat(parts.slice(0, index + 1)).includes('$ID'))
    parts.splice(0, at + 1, Buffer.concat(parts.slice(0, at + 1)))
    const { content } = await connection.callTool('bytes', {
      parts: parts.map(part => part.toString('base64')),
    })
    assert.equal(content[0].text, 'für 😀')
  }
})

test('noise, broken bytes and an error between small answers are what they always are', async t => {
  const warnings = []
  const { connection } = await connected(t, [], { onWarning: warning => warnings.push(warning.code) })
  await calledAlone(connection)
  await connection.callTool('raw', { lines: ['a banner', '', '{"id":$ID,"result":{}}', 'another'] })
  await calledAlone(connection)
  const bytes = Buffer.concat([
    Buffer.from('{"id":$ID,"result":{"x":"'),
    Buffer.from([0xff]),
    Buffer.from('"}}\n'),
  ])
  const { x } = await connection.callTool('bytes', { parts: [bytes.toString('base64')] })
  assert.equal(x, '\ufffd')
  const error = await failure(connection.callTool('rpc_error', { error: '{"code":7,"message":"no"}' }))
  assert.deepEqual([error.code, error.details.rpcCode], ['ERR_MCP_RPC', 7])
  await soon(() => connection.diagnostics().skippedLines === 2)
  assert.deepEqual(warnings, ['WARN_MCP_STDOUT_NOISE'])
})

test('a message over the limit costs its own call, also after small ones', async t => {
  const { connection } = await connected(t, [], { maxMessageBytes: 10_000 })
  await calledAlone(connection)
  const error = await failure(connection.callTool('big', { bytes: 20_000 }))
  assert.equal(error.code, 'ERR_MCP_MESSAGE_TOO_LARGE')
  await calledAlone(connection)
  const breach = await failure(connection.callTool('big', { bytes: 20_000, where: 'none' }))
  assert.equal(breach.code, 'ERR_MCP_MESSAGE_TOO_LARGE')
  assert.equal((await ended(connection)).reason, 'protocol-error')
})

test('requests of the server, progress, log messages and changed tools come in their order', async t => {
  const logs = []
  const { connection, log } = await connected(t, [], { onLog: ({ data }) => logs.push(data) })
  await calledAlone(connection)
  const requests = [
    { id: 'a', method: 'ping' },
    { id: 'b', method: 'roots/list' },
  ]
  const { structuredContent } = await connection.callTool('ask', { requests })
  assert.deepEqual([structuredContent[0].result, structuredContent[1].error.code], [{}, -32601])
  await calledAlone(connection)
  const progress = []
  const onProgress = ({ progress: step }) => progress.push(step)
  await connection.callTool('sleep', { ms: 30, progress: 3 }, { onProgress })
  assert.deepEqual(progress, [1, 2, 3])
  await calledAlone(connection)
  await connection.callTool('say', { log: numbers(30).map(data => ({ level: 'info', data })) })
  assert.deepEqual(logs, numbers(30))
  await calledAlone(connection)
  await connection.callTool('change', { add: ['extra'] })
  await soon(() => connection.tools.some(({ name }) => name === 'extra'))
  assert.equal(received(log, 'tools/list').length, 2)
})

test('a flood of notifications ends, and then comes the answer', async t => {
  const logs = []
  const { connection } = await connected(t, [], { onLog: ({ data }) => logs.push(data) })
  await calledAlone(connection)
  const { content } = await connection.callTool('flood', { count: 2_000, bytes: 100 })
  assert.equal(content[0].text, '2000')
  assert.equal(logs.length, 2_000)
})

test('calls time out, are aborted and are answered late as ever', async t => {
  const { connection, log } = await connected(t)
  await calledAlone(connection)
  const late = await failure(connection.callTool('sleep', { ms: 60 }, { timeout: 20 }))
  assert.equal(late.code, 'ERR_MCP_TIMEOUT')
  const controller = new AbortController()
  const aborted = failure(connection.callTool('silent', {}, controller.signal))
  // Before it has gone out, it is taken back, and there is nothing to cancel.
  await soon(() => received(log, 'tools/call').some(({ params }) => params.name === 'silent'))
  controller.abort('enough')
  assert.equal(await aborted, 'enough')
  await soon(() => connection.diagnostics().unexpectedAnswers === 1)
  await calledAlone(connection)
  assert.equal(received(log, 'notifications/cancelled').length, 2)
})

for (const [what, args] of [
  ['exits', { how: '3', stderr: 'last words' }],
  ['is killed', { how: 'SIGKILL' }],
]) {
  test(`a server that ${what} in mid-call rejects it and ends the connection`, async t => {
    const { connection } = await connected(t)
    await calledAlone(connection)
    const error = await failure(connection.callTool('leave', args))
    assert.equal(error.code, 'ERR_MCP_EXITED')
    assert.equal((await ended(connection)).reason, 'exited')
    await soon(() => !readsHere())
  })
}

test('a server that closes its output without leaving is given up', async t => {
  const { connection } = await connected(t)
  await calledAlone(connection)
  const error = await failure(connection.callTool('close', { which: 'output' }))
  assert.match(error.message, /closed its stdout without exiting/)
  assert.equal((await ended(connection)).reason, 'protocol-error')
})

test('a close in mid-call rejects it and leaves nothing behind', async t => {
  const { connection } = await connected(t)
  const server = seen(connection.pid)
  await calledAlone(connection)
  const call = failure(connection.callTool('silent'))
  const { reason } = await connection.close()
  assert.deepEqual([(await call).code, reason], ['ERR_MCP_CLOSED', 'closed'])
  await gone(server)
  await soon(() => !readsHere())
})

test('a server that is stopped for a while answers every call when it goes on', {
  skip: process.platform === 'win32',
}, async t => {
  const { connection } = await connected(t)
  for (const count of [1, 100]) {
    await calledAlone(connection)
    process.kill(connection.pid, 'SIGSTOP')
    const calls = echoes(connection, count)
    const late = failure(connection.callTool('echo', {}, { timeout: 50 }))
    await soon(() => !readsHere(), 'the end of the loan')
    assert.equal((await late).code, 'ERR_MCP_TIMEOUT')
    process.kill(connection.pid, 'SIGCONT')
    assert.deepEqual(await calls, numbers(count))
  }
  assert.equal(connection.diagnostics().pendingRequests, 0)
})

test('while the caller’s thread is blocked the server is answered, and what it wrote is there after', async t => {
  const { connection, log } = await connected(t)
  await calledAlone(connection)
  const call = connection.callTool('ask', { requests: [{ id: 'blocked', method: 'ping' }] })
  const deadline = Date.now() + PATIENCE
  while (!received(log).some(({ id, result }) => id === 'blocked' && result)) {
    assert.ok(Date.now() < deadline, readFileSync(log, 'utf8'))
  }
  const { structuredContent } = await call
  assert.deepEqual(structuredContent[0].result, {})
})

test('a script calls a server of its project one call after the other, waiting and blocking', async t => {
  const { definition } = fixture()
  const [command, ...args] = definition.command
  const config = { mcpServers: { x: { command, args } } }
  const project = workflow.openMcpProject({ config, allowStdio: true })
  t.after(() => project.close())
  const { call, callSync } = project.mcp('x')
  for (let n = 0; n < 30; n++) assert.deepEqual((await call('echo', { n })).structuredContent, { n })
  for (let n = 0; n < 30; n++) assert.deepEqual(callSync('echo', { n }).structuredContent, { n })
})

test('many connections at once have their answers each', async t => {
  const connections = await Promise.all(numbers(8).map(() => connected(t)))
  const sums = await Promise.all(
    connections.map(async ({ connection }, index) => {
      let sum = 0
      for (let n = 0; n < 200; n++) {
        const { structuredContent } = await connection.callTool('echo', { n: n * index })
        sum += structuredContent.n
      }
      return sum
    }),
  )
  assert.deepEqual(
    sums,
    numbers(8).map(index => 19_900 * index),
  )
})

test('callers that work on each answer leave the event loop its turns', async t => {
  const { connection } = await connected(t)
  await calledAlone(connection)
  let turns = 0
  const turn = setInterval(() => turns++, 1)
  const until = performance.now() + 500
  while (performance.now() < until) {
    await connection.callTool('echo')
    busy(2)
  }
  clearInterval(turn)
  assert.ok(turns > 3, `${turns} turns`)
})

test('an answer that came in time counts, however long the caller’s thread was busy with something else', async t => {
  const { connection } = await connected(t)
  let answered = 0
  for (let time = 0; time < 20; time++) {
    await calledAlone(connection)
    const call = connection.callTool('echo', {}, { timeout: 15 })
    busy(60)
    answered += await call.then(
      () => 1,
      ({ code }) => {
        // A slow machine may take so long once, or more than once.
        assert.equal(code, 'ERR_MCP_TIMEOUT')
        return 0
      },
    )
  }
  assert.ok(answered > 0)
})

const IMPORTS = `
  import { calledAlone } from ${JSON.stringify(new URL('support/lone-calls.mjs', import.meta.url))}
  import { soon, fixture } from ${JSON.stringify(new URL('support/fixture.mjs', import.meta.url))}
  const { connectMcpServer } = workflow
`

async function saidBy(code, options) {
  const { code: status, signal, said, stderr } = await host(IMPORTS + code, options).ended
  assert.deepEqual([status, signal], [0, null], stderr)
  return said
}

test('a connection that is collected after calls one after the other ends its server', async () => {
  const said = await saidBy(
    `
    let info
    const onClose = given => {
      info = given
    }
    await (async () => calledAlone(await connectMcpServer(fixture().definition, { onClose })))()
    await soon(() => {
      gc()
      return info
    })
    say(info.reason)
    `,
    { flags: ['--expose-gc'] },
  )
  assert.deepEqual(said, ['aborted'])
})

test('a host ends by itself after calls one after the other, and a call that is pending holds it', async () => {
  const said = await saidBy(`
    const connection = await connectMcpServer(fixture().definition)
    await calledAlone(connection)
    connection.callTool('sleep', { ms: 200 }).then(() => say(connection.pid))
  `)
  assert.equal(typeof said[0], 'number', 'the call was answered')
  await soon(() => seen(said[0]) === undefined, 'the end of the server')
})

test('what a callback throws while answers are read on its thread is the host’s uncaught exception', async () => {
  const said = await saidBy(`
    const uncaught = []
    process.on('uncaughtException', error => uncaught.push(error))
    const connection = await connectMcpServer(fixture().definition, { onLog: () => { throw 'onLog' } })
    await calledAlone(connection)
    await connection.callTool('say', { log: [{ level: 'info', data: 1 }] })
    await calledAlone(connection)
    say(uncaught)
    process.removeAllListeners('uncaughtException')
    await connection.close()
  `)
  assert.deepEqual(said, [['onLog']])
})

test('a Worker that is terminated while answers are read on its thread takes its servers along, and no other', async () => {
  const { definition, log } = fixture()
  const said = await saidBy(
    `
    import { Worker } from 'node:worker_threads'
    const own = await connectMcpServer(fixture().definition)
    const code = \`
      import { parentPort, workerData } from 'node:worker_threads'
      import * as workflow from \${JSON.stringify(given.workflow)}
      import { calledAlone } from \${JSON.stringify(given.support)}
      const connection = await workflow.connectMcpServer(workerData)
      await calledAlone(connection)
      parentPort.postMessage(connection.pid)
      for (;;) await connection.callTool('echo')
    \`
    const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(code)), { workerData: given.definition })
    worker.once('message', async pid => {
      await calledAlone(own)
      await worker.terminate()
      await calledAlone(own)
      say(pid)
      await own.close()
    })
    `,
    {
      given: {
        definition,
        workflow: new URL('../index.mjs', import.meta.url),
        support: new URL('support/lone-calls.mjs', import.meta.url),
      },
    },
  )
  assert.equal(typeof said[0], 'number')
  await soon(() => seen(said[0]) === undefined, 'the end of the server')
  assert.ok(received(log, 'tools/call').length > 0)
})
