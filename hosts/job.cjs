'use strict'

// What a host does with the package, in plain JavaScript that Node 16 reads and without a test runner, which not all of
// them have: `job.cjs PROGRAM FIXTURE URL`, the program that runs the fixture server, that server, and a server over
// HTTP. Prints a line for each part as it passes; ends with exit code 1 and the stack at the first that does not. The
// last part leaves a connection open: it must not keep the host alive, and servers whose pids are printed must be gone
// with it.

const assert = require('node:assert/strict')
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads')
const workflow = require('../index.js')

const [program, fixture, url] = isMainThread ? process.argv.slice(-3) : workerData

const definition = { id: 'fixture', command: [program, fixture] }

/** Results by what is special about their texts: of each length and alphabet that crosses into JavaScript in its own way. */
const TEXTS = {
  short: 'hello',
  empty: '',
  ASCII: 'a~'.repeat(50_000),
  'Latin-1': 'é ÿ'.repeat(30_000),
  CJK: 'The 速い brown 狐. '.repeat(10_000),
  emoji: '😀x'.repeat(20_000),
  escapes: '\t"C:\\dog"\r\n\b\f/'.repeat(10_000),
  'half an emoji': `${'x'.repeat(50_000)}\ud83d`,
  megabytes: 'The quick brown fox jumps over the lazy dog. '.repeat(250_000),
  'megabytes of CJK': '速い狐 '.repeat(500_000),
}

const parts = {
  async 'a connection lists tools and calls them, one after the other and many at once'() {
    const connection = await workflow.connectMcpServer(definition)
    assert.ok(connection.tools.some(tool => tool.name === 'echo'))
    for (let index = 0; index < 200; index++) await echoes(connection, index)
    for (let round = 0; round < 5; round++) {
      await Promise.all(Array.from({ length: 256 }, (_, index) => echoes(connection, index)))
    }
    await ended(connection)
  },

  async 'results are what JSON.parse gives of their texts'() {
    const connection = await workflow.connectMcpServer(definition)
    for (const [what, text] of Object.entries(TEXTS)) {
      const expected = { content: [{ type: 'text', text }], structuredContent: { text }, isError: false }
      const given = await connection.callTool('result', { text: JSON.stringify(expected) })
      assert.ok(JSON.stringify(given) === JSON.stringify(expected), what)
    }
    for (let time = 0; time < 20; time++) {
      const { content } = await connection.callTool('big', { bytes: 9_000_000 })
      assert.equal(content[0].text.length, 9_000_000)
    }
    await ended(connection)
  },

  async 'progress is heard, a timeout and an abort end a call, a failure says what it was'() {
    const connection = await workflow.connectMcpServer(definition)
    const heard = []
    const onProgress = ({ progress }) => heard.push(progress)
    await connection.callTool('sleep', { ms: 100, progress: 3 }, { onProgress })
    assert.deepEqual(heard, [1, 2, 3])
    await fails(connection.callTool('silent', {}, { timeout: 50 }), 'ERR_MCP_TIMEOUT')
    const abort = new AbortController()
    const call = connection.callTool('silent', {}, { signal: abort.signal })
    const reason = new Error('enough')
    abort.abort(reason)
    await assert.rejects(call, error => error === reason)
    const error = JSON.stringify({ code: -32000, message: 'no' })
    await fails(connection.callTool('rpc_error', { error }), 'ERR_MCP_RPC')
    await fails(connection.callTool('nothing of this name'), 'ERR_MCP_TOOL_NOT_FOUND')
    await ended(connection)
  },

  async 'a server that leaves in mid-call fails the call'() {
    const connection = await workflow.connectMcpServer({
      ...definition,
      command: [program, fixture, '--exit-at', 'tools/call:7'],
    })
    const error = await fails(connection.callTool('echo', {}), 'ERR_MCP_EXITED')
    assert.equal(error.details.exitCode, 7)
    // Waiting for the end of a server keeps nobody alive either, unless it is asked to.
    assert.equal((await connection.ref().closed).exitCode, 7)
  },

  async 'tools for agents run'() {
    const connection = await workflow.connectMcpServer(definition)
    const tools = await workflow.createMcpTools({ connection })
    const tool = tools.find(tool => tool.name.endsWith('echo'))
    assert.deepEqual((await tool.execute({ n: 1 })).structuredContent, { n: 1 })
    await ended(connection)
  },

  async 'a script calls over HTTP, with a promise and without'() {
    const project = workflow.openMcpProject({ config: { mcpServers: { web: { url } } } })
    const web = project.mcp('web')
    assert.equal((await web.call('echo', { text: 'a' })).content[0].text, 'a')
    assert.equal(web.callSync('echo', { text: 'b' }).content[0].text, 'b')
    await project.close()
  },

  async 'a Worker has connections of its own, and takes them along when it is ended'() {
    const worker = new Worker(__filename, { workerData: [program, fixture, url] })
    const pid = await new Promise((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    })
    await worker.terminate()
    // Deno 2.9 tells an addon nothing of the end of a Worker: there the server lives as long as the host.
    if (process.versions.deno) console.log(`pid ${pid}`)
    else await gone(pid)
  },

  async 'an open connection keeps nobody alive'() {
    const connection = await workflow.connectMcpServer(definition)
    await echoes(connection, 1)
    console.log(`pid ${connection.pid}`)
  },
}

async function echoes(connection, index) {
  const { structuredContent } = await connection.callTool('echo', { index })
  assert.deepEqual(structuredContent, { index })
}

async function fails(call, code) {
  try {
    await call
  } catch (error) {
    assert.ok(workflow.McpError.is(error), error.stack)
    assert.equal(error.code, code, error.stack)
    return error
  }
  throw new Error(`nothing failed with ${code}`)
}

async function ended(connection) {
  const { reason, survivors } = await connection.close()
  assert.deepEqual([reason, survivors], ['closed', []])
  await gone(connection.pid)
}

/** Waits for the end of a process, for as long as a slow machine may need. */
async function gone(pid) {
  for (let time = 0; time < 1_000; time++) {
    try {
      process.kill(pid, 0)
    } catch (error) {
      if (error.code === 'ESRCH') return
      throw error
    }
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  throw new Error(`process ${pid} is still there`)
}

async function run() {
  for (const [name, part] of Object.entries(parts)) {
    await part()
    console.log(`ok ${name}`)
  }
  // An app lives until it quits.
  if (process.type === 'browser') require('electron').app.quit()
}

async function runInWorker() {
  const connection = await workflow.connectMcpServer(definition)
  await echoes(connection, 1)
  parentPort.postMessage(connection.pid)
  await connection.callTool('silent')
}

;(isMainThread ? run() : runInWorker()).catch(error => {
  console.error(error)
  process.exit(1)
})
