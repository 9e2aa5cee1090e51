// An MCP server over stdio without any dependency: one JSON-RPC message a line, requests in on stdin, answers out on stdout.
// stdout belongs to the protocol, so whatever a server wants to tell people goes to stderr.
import { createInterface } from 'node:readline'

const text = { type: 'string' }
const number = { type: 'number' }

const tools = [
  {
    name: 'greet',
    description: 'Greets somebody.',
    inputSchema: { type: 'object', properties: { name: text } },
    run: ({ name = 'world' }) => `Hello, ${name}!`,
  },
  {
    name: 'add',
    description: 'Adds two numbers.',
    inputSchema: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
    run: ({ a, b }) => String(a + b),
  },
  {
    name: 'has_variable',
    description: 'Says whether the server was given a variable, and nothing of its value.',
    inputSchema: { type: 'object', properties: { name: text }, required: ['name'] },
    run: ({ name }) => (process.env[name] === undefined ? 'not set' : 'set'),
  },
]

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    serverInfo: { name: 'workflow-mcp-demo', version: '1.0.0' },
    capabilities: { tools: {} },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: tools.map(({ run, ...published }) => published) }),
  'tools/call': ({ name, arguments: args = {} }) => {
    const tool = tools.find(tool => tool.name === name)
    if (!tool) throw new Error(`There is no tool ${name}`)
    return { content: [{ type: 'text', text: tool.run(args) }] }
  },
}

function answer({ method, params = {} }) {
  if (!Object.hasOwn(methods, method))
    return { error: { code: -32601, message: `There is no method ${method}` } }
  try {
    return { result: methods[method](params) }
  } catch (error) {
    return { error: { code: -32602, message: error.message } }
  }
}

console.error('demo server: ready')
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line)
  // What has no id is a notification, and wants no answer.
  if (message.id === undefined) continue
  console.log(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer(message) }))
}
