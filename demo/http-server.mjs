// A small MCP server over streamable HTTP, run as a Worker: `workerData` holds its name and its tools, each with the text it answers. It
// reports its URL, and whenever it is asked how many sessions were begun and ended.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

const { name, tools } = workerData
const sessions = { begun: 0, ended: 0 }

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name, version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: tools.map(({ answer: _, ...tool }) => tool) }),
  'tools/call'({ name, arguments: args }) {
    const tool = tools.find(tool => tool.name === name)
    if (tool === undefined) throw new Error(`there is no tool ${name}`)
    const text = tool.answer.replace(/\{(\w+)\}/g, (_, key) => args[key])
    return { content: [{ type: 'text', text }] }
  },
}

const server = createServer(async (request, response) => {
  if (request.method === 'DELETE') sessions.ended++
  if (request.method !== 'POST') {
    // No stream of its own: it never speaks first.
    response.writeHead(request.method === 'DELETE' ? 204 : 405).end()
    return
  }
  const message = JSON.parse(await textOf(request))
  if (message.id === undefined) {
    response.writeHead(202).end()
    return
  }
  const headers = { 'Content-Type': 'application/json' }
  if (message.method === 'initialize') {
    sessions.begun++
    headers['Mcp-Session-Id'] = randomUUID()
  }
  response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer(message) }))
})

function answer({ method, params = {} }) {
  if (!Object.hasOwn(methods, method)) return { error: { code: -32601, message: `${method} is unknown` } }
  try {
    return { result: methods[method](params) }
  } catch ({ message }) {
    return { error: { code: -32602, message } }
  }
}

async function textOf(request) {
  request.setEncoding('utf8')
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}

server.listen(0, '127.0.0.1', () => parentPort.postMessage(`http://127.0.0.1:${server.address().port}/mcp`))
parentPort.on('message', () => parentPort.postMessage(sessions))
