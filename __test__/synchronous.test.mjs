// Synchronous calls: they block the thread that makes them and nothing else, and whatever could never end is refused at once.

import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { failure, loggedPid, PATIENCE, received, soon } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { httpServer, inTurn, MODERN, status, usual } from './support/http-server.mjs'
import { gone, seen } from './support/processes.mjs'
import { opened } from './support/project.mjs'
import { integration, scripted, thrown } from './support/scripts.mjs'

// ───────────────────────────── the same as asynchronously ─────────────────────────────

test('a synchronous call gives what an asynchronous one does, and opens the session where there is none', async t => {
  const { client, log } = scripted(t, ['--slow', '100'])
  const tools = client.listToolsSync()
  assert.deepEqual(tools, await client.listTools())
  assert.ok(Array.isArray(tools) && Object.isFrozen(tools[0]))
  const args = { text: 'grüße \u0000 \ud83d\ude00', list: [1, 2.5, null] }
  assert.deepEqual(client.callSync('echo', args), await client.call('echo', args))
  assert.equal(client.callSync('fail', { text: 'no' }).isError, true)
  client.callSync('echo', {}, { timeout: 20_000, meta: { trace: 'x' } })
  assert.equal(received(log, 'tools/call').at(-1).params._meta.trace, 'x')
  assert.equal(received(log, 'initialize').length, 1)
})

test('it fails with the same errors', async t => {
  const { client } = scripted(t)
  await client.call('echo')
  const described = error => [error.name, error.code, error.message, error.serverId, error.details]
  for (const [tool, args, options] of [
    ['silent', {}, { timeout: 30 }],
    ['rpc_error', { error: '{"code":-32000,"message":"no","data":[1]}' }],
    ['result', { text: '[]' }],
    ['echo', [], undefined],
    ['echo', {}, 5],
    ['leave', { how: '3' }],
  ]) {
    const asynchronous = await failure(client.call(tool, args, options))
    const synchronous = thrown(() => client.callSync(tool, args, options))
    assert.deepEqual(described(synchronous), described(asynchronous))
    assert.match(synchronous.stack, /synchronous\.test\.mjs/, 'the stack names the line of the caller')
  }
  // Opened again after the loss.
  assert.deepEqual(client.callSync('echo', { a: 1 }).structuredContent, { a: 1 })
})

test('an opening that fails is an error of the synchronous call, and of those after it for a while', t => {
  const { client, log } = scripted(t, ['--exit-at', 'start:3'])
  assert.equal(thrown(() => client.callSync('echo')).code, 'ERR_MCP_HANDSHAKE')
  assert.equal(thrown(() => client.callSync('echo')).code, 'ERR_MCP_HANDSHAKE')
  assert.ok(loggedPid(log))
})

test('the timeout covers the opening, too', t => {
  const { client } = scripted(t, ['--silent'])
  const error = thrown(() => client.callSync('echo', {}, { timeout: 60 }))
  assert.deepEqual([error.code, error.details], ['ERR_MCP_TIMEOUT', { phase: 'connect', ms: 60 }])
})

test('a closed project says so', async t => {
  const { project, client } = scripted(t)
  await project.close()
  assert.equal(thrown(() => client.callSync('echo')).code, 'ERR_MCP_CLOSED')
  assert.equal(thrown(() => client.listToolsSync()).code, 'ERR_MCP_CLOSED')
})

// ───────────────────────────── beside asynchronous calls ─────────────────────────────

test('synchronous and asynchronous calls of one session are in flight together', async t => {
  const { client } = scripted(t)
  const order = []
  const pending = [0, 1].map(index => client.call('hold', { count: 3, index }).then(() => order.push(index)))
  // The third of three that are held: it ends only when all of them were sent, and the other two wait for this thread.
  const { content } = client.callSync('hold', { count: 3, index: 2 })
  order.push('synchronous')
  assert.equal(content[0].text, '2')
  await Promise.all(pending)
  assert.equal(order[0], 'synchronous')
  assert.equal(order.length, 3)
})

test('a synchronous call may meet the opening that an asynchronous one began', async t => {
  const { client, log } = scripted(t, ['--slow', '200'])
  const pending = client.call('echo', { a: 1 })
  assert.deepEqual(client.callSync('echo', { a: 2 }).structuredContent, { a: 2 })
  assert.deepEqual((await pending).structuredContent, { a: 1 })
  assert.equal(received(log, 'initialize').length, 1)
})

test('events that come while the thread is blocked are heard afterwards', async t => {
  const { client } = scripted(t)
  const steps = []
  const pending = client.call(
    'sleep',
    { ms: 100, progress: 3 },
    { onProgress: ({ progress }) => steps.push(progress) },
  )
  client.callSync('sleep', { ms: 300 })
  assert.deepEqual(steps, [])
  await pending
  assert.equal(steps.at(-1), 3)
})

test('many synchronous calls in a row cost a wake each, and no slice of a wait', t => {
  const { client } = scripted(t)
  client.callSync('echo')
  const begun = performance.now()
  for (let index = 0; index < 1_000; index++) client.callSync('echo', { index })
  // Slices of 50 ms would be 50 s.
  assert.ok(performance.now() - begun < 40_000)
})

// ───────────────────────────── what would never end ─────────────────────────────

/** A server that accepts connections and says nothing; counts them. */
async function mute(t) {
  const sockets = new Set()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${server.address().port}/mcp`, sockets }
}

test('headers that have to be asked for are refused at once, and nothing is sent', async t => {
  const { url, sockets } = await mute(t)
  let asked = 0
  const headers = async () => {
    asked++
    return {}
  }
  const client = opened(t, { server: { url, headers } }).mcp('server')
  for (const call of [() => client.callSync('echo'), () => client.listToolsSync()]) {
    const error = thrown(call)
    assert.deepEqual([error.code, error.serverId], ['ERR_MCP_WOULD_BLOCK', 'server'])
    assert.match(error.message, /asynchronous/)
  }
  await new Promise(resolve => setTimeout(resolve, 20))
  assert.deepEqual([asked, sockets.size], [0, 0])
})

/** In a host of its own, because the server runs in this process: a client whose headers are a new token each time they are asked for. */
const TOKENS = `
  let asked = 0
  const headers = async () => ({ Authorization: 'Bearer token-' + ++asked })
  const project = workflow.openMcpProject({ config: { servers: { server: { url: given.url, headers } } } })
  const client = project.mcp('server')
  const code = run => { try { return run().content[0].text } catch (error) { return error.code } }
`

test('headers that the server refuses in the middle are refused to a synchronous call, and asked for by the next that can wait', async t => {
  let token = 'Bearer token-1'
  const server = await httpServer(t, {
    'tools/call': exchange =>
      exchange.request.headers.authorization === token ? exchange.usual() : status(401)(exchange),
  })
  const { ended, next, tell } = host(
    `${TOKENS}
    say((await client.call('echo', { text: 'a' })).content[0].text)
    told()
    const begun = performance.now()
    say(code(() => client.callSync('echo', { text: 'b' })))
    say(code(() => client.callSync('echo', { text: 'c' })))
    say(performance.now() - begun < 30_000)
    say((await client.call('echo', { text: 'd' })).content[0].text)
    say(code(() => client.callSync('echo', { text: 'e' })))
    say(asked)
    await project.close()`,
    { given: { url: server.url } },
  )
  assert.equal(await next(), 'a')
  token = 'Bearer token-2'
  tell()
  const { said, code, stderr } = await ended
  assert.equal(code, 0, stderr)
  const blocked = 'ERR_MCP_WOULD_BLOCK'
  assert.deepEqual(said, ['a', blocked, blocked, true, 'd', 'e', 2])
})

test('a synchronous call is not refused for what another call waits for', async t => {
  let echoed
  const echoing = new Promise(resolve => {
    echoed = resolve
  })
  const refusing = async exchange => {
    await echoing
    status(401)(exchange)
  }
  const server = await httpServer(t, {
    'tools/call slow': inTurn(refusing, usual),
    'tools/call echo': async exchange => {
      echoed()
      // Long enough for the other call's 401 to have come before this answer.
      await soon(() => server.seen('tools/call slow').length > 0)
      await new Promise(resolve => setTimeout(resolve, 200))
      exchange.usual()
    },
  })
  const { ended } = host(
    `${TOKENS}
    await client.listTools()
    const pending = client.call('slow')
    say(code(() => client.callSync('echo', { text: 'a' })))
    say((await pending).content[0].text)
    say(asked)
    await project.close()`,
    { given: { url: server.url } },
  )
  const { said, code, stderr } = await ended
  assert.deepEqual([code, said], [0, ['a', 'slow done', 2]], stderr)
})

test('a server that only wants time is asked again by a synchronous call, with the state that it gave', async t => {
  const waiting = exchange => exchange.result({ resultType: 'input_required', requestState: 'later' })
  const answers = { 'tools/call slow': inTurn(waiting, waiting, usual) }
  const server = await httpServer(t, answers, { revision: MODERN })
  const { ended } = host(
    `const onInputRequired = () => { throw new Error('nobody was to be asked') }
    const project = workflow.openMcpProject({ config: { servers: { server: { url: given.url } } }, onInputRequired })
    say(project.mcp('server').callSync('slow').content[0].text)
    await project.close()`,
    { given: { url: server.url } },
  )
  const { said, code, stderr } = await ended
  assert.deepEqual([code, said], [0, ['slow done']], stderr)
  const states = server.seen('tools/call slow').map(({ message }) => message.params.requestState)
  assert.deepEqual(states, [undefined, 'later', 'later'])
})

// ───────────────────────────── Workers ─────────────────────────────

/** A Worker that makes one call after the other; `workerData` is the integration and the calls. */
const WORKER = `
  const { parentPort, workerData } = require('node:worker_threads')
  const workflow = require('workflow-mcp')
  const project = workflow.openMcpProject({ allowStdio: true, config: { servers: { server: workerData.integration } } })
  const client = project.mcp('server')
  for (const [tool, args] of workerData.calls) {
    parentPort.postMessage({ begins: tool })
    try {
      parentPort.postMessage(client.callSync(tool, args).structuredContent ?? null)
    } catch (error) {
      parentPort.postMessage({ code: error.code })
    }
  }
  project.close().then(() => parentPort.postMessage('closed'))
`

function worker(t, calls) {
  const { log, integration: server } = integration()
  const thread = new Worker(WORKER, { eval: true, workerData: { integration: server, calls } })
  t.after(() => thread.terminate())
  const said = []
  thread.on('message', message => said.push(message))
  return {
    log,
    thread,
    said,
    saidIt: what => soon(() => said.find(message => JSON.stringify(message) === JSON.stringify(what))),
  }
}

test('a Worker blocks alone: this thread goes on, and calls the same program itself', async t => {
  const { said, saidIt } = worker(t, [
    ['sleep', { ms: 400 }],
    ['echo', { a: 1 }],
    ['leave', { how: '3' }],
    ['echo', { a: 2 }],
  ])
  await saidIt({ begins: 'sleep' })
  const { client } = scripted(t)
  let turns = 0
  const timer = setInterval(() => turns++, 5)
  t.after(() => clearInterval(timer))
  assert.deepEqual((await client.call('echo', { b: 1 })).structuredContent, { b: 1 })
  await saidIt('closed')
  assert.ok(turns > 5, `${turns} turns of the event loop`)
  const answers = said.filter(message => message?.begins === undefined)
  assert.deepEqual(answers, [null, { a: 1 }, { code: 'ERR_MCP_EXITED' }, { a: 2 }, 'closed'])
})

test('a Worker that is blocked can be terminated, and its server ends', async t => {
  const { log, thread, saidIt } = worker(t, [['silent', {}]])
  await saidIt({ begins: 'silent' })
  await soon(() => received(log, 'tools/call').length > 0)
  const server = seen(loggedPid(log))
  const ended = await Promise.race([
    thread.terminate(),
    new Promise((_, reject) =>
      setTimeout(reject, PATIENCE, new Error('terminate() did not resolve')).unref(),
    ),
  ])
  assert.equal(ended, 1)
  await gone(server)
})

test('process.exit() is not held up by a Worker that is blocked', async () => {
  const { log, integration: server } = integration()
  const { child, ended, next } = host(
    `import { Worker } from 'node:worker_threads'
    const worker = new Worker(given.worker, { eval: true, workerData: given.data, execArgv: [] })
    worker.on('message', () => setTimeout(() => process.exit(7), 100))
    say('started')`,
    { given: { worker: WORKER, data: { integration: server, calls: [['silent', {}]] } } },
  )
  await next()
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE)
  const { code, signal, stderr } = await ended
  clearTimeout(timer)
  assert.deepEqual([code, signal], [7, null], stderr)
  const pid = loggedPid(log)
  const process = pid && seen(pid)
  if (process) await gone(process)
})
