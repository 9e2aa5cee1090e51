import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const path = relative => fileURLToPath(new URL(relative, import.meta.url))
const filesystem = path('../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js')

function demo(...args) {
  const options = { encoding: 'utf8', timeout: 60_000 }
  const { status, stdout, stderr } = spawnSync(process.execPath, [path('../demo/demo.mjs'), ...args], options)
  return { status, stdout, stderr }
}

function assertNothingIsLeft(stdout) {
  const pid = Number(stdout.match(/process (\d+), protocol/)[1])
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  assert.match(stdout, new RegExp(`process ${pid} is gone`))
}

/** A server of a few lines, as the arguments that run it: with these tools, each of which answers with its own name. */
function server(tools) {
  const source = `
    require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
      const { id, method, params } = JSON.parse(line)
      const results = {
        initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'tiny' } },
        'tools/list': { tools: ${JSON.stringify(tools)} },
        'tools/call': { content: [{ type: 'text', text: 'no such luck' }], isError: true },
      }
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }))
    })`
  return [process.execPath, '-e', source]
}

test('the demo lists and calls the tools of the bundled server and leaves nothing behind', () => {
  const { status, stdout, stderr } = demo()
  assert.equal(status, 0, stderr)
  assert.match(stdout, /workflow-mcp-demo/)
  assert.match(stdout, /greet\(name\?\)\n[\s\S]*add\(a, b\)/)
  assert.match(stdout, /Hello, world!/)
  assert.match(stdout, /it left when its input ended \(exit code 0\)/)
  assertNothingIsLeft(stdout)
})

test('the demo shows any server', () => {
  const { status, stdout, stderr } = demo(process.execPath, filesystem, path('.'))
  assert.equal(status, 0, stderr)
  assert.match(stdout, /read_text_file\(path, /)
  assert.match(stdout, /Call {6}list_allowed_directories\(\{\}\)/)
  assert.ok(stdout.includes(path('.').replace(/\/$/, '')))
  assertNothingIsLeft(stdout)
})

test('the demo says how to call a tool where each wants arguments, and that a tool failed', () => {
  const wantsPath = {
    name: 'read',
    inputSchema: { type: 'object', properties: { path: {} }, required: ['path'] },
  }
  const told = demo(...server([wantsPath]))
  assert.equal(told.status, 0, told.stderr)
  assert.match(told.stdout, /connection\.callTool\('read', \{ … \}\)/)
  assertNothingIsLeft(told.stdout)

  const failed = demo(...server([{ name: 'try', inputSchema: { type: 'object' } }]))
  assert.equal(failed.status, 0, failed.stderr)
  assert.match(failed.stdout, /the tool says that it failed:\n +no such luck/)
  assertNothingIsLeft(failed.stdout)
})

test('the demo says why a server does not start, and fails', () => {
  const crashed = demo(process.execPath, '/nowhere/server.js')
  assert.equal(crashed.status, 1)
  assert.match(crashed.stderr, /did not start: .*Cannot find module '\/nowhere\/server\.js'/)
  assert.match(crashed.stderr, /ERR_MCP_HANDSHAKE/)

  const missing = demo('/nowhere/node', 'server.js')
  assert.equal(missing.status, 1)
  assert.match(missing.stderr, /The command \/nowhere\/node was not found/)

  const relative = demo('node', 'server.js')
  assert.equal(relative.status, 1)
  assert.match(relative.stderr, /command\[0\] is a string that is no absolute path/)
})

test('the bundled server answers what it does not know with an error', async () => {
  const { connectMcpServer } = await import('../index.mjs')
  const connection = await connectMcpServer({
    id: 'demo',
    command: [process.execPath, path('../demo/server.mjs')],
  })
  try {
    const { content } = await connection.callTool('add', { a: 2, b: 3 })
    assert.deepEqual(content, [{ type: 'text', text: '5' }])
    await assert.rejects(connection.request('resources/list'), { code: 'ERR_MCP_RPC' })
  } finally {
    await connection.close()
  }
})

test('the demo of a workflow script calls both servers in every form, and ends their sessions', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [path('../demo/script.mjs')], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  assert.equal(status, 0, stderr)
  assert.match(stdout, /One page about “MCP 2026”/)
  assert.match(stdout, /query-docs - Ask the documentation of a library/)
  assert.match(stdout, /“streamable HTTP”\nWhat \/npm\/workflow-mcp says about “timeouts”/)
  assert.match(
    stdout,
    /Without await\nOne page about “no await”\n\/npm\/left-pad\nresolve-library-id, query-docs/,
  )
  for (const name of ['exa', 'context7']) {
    assert.match(stdout, new RegExp(`Closed ${name}: sessions begun 1, ended 1`))
  }
})
