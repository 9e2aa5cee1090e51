// The clients that are compared, behind one shape: `connect({ command })` or `connect({ url })` gives `{ call(name, args), list(), close() }`.
// Each is used as its documentation has it, from CommonJS, where both peers load faster than from ES modules.

import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const PEERS = fileURLToPath(new URL('peers/', import.meta.url))
const require = createRequire(import.meta.url)
const requirePeer = createRequire(PEERS)

/** The peers drop a connection at 10 MiB by default; ours takes 64 MiB. */
const LONGEST_MESSAGE = 64 * 1024 * 1024

/** Long enough for a call that queues behind all others. */
const TIMEOUT = 300_000

/** What loads each client, by its name; ours first. */
export const CLIENTS = { 'workflow-mcp': loadOurs, 'sdk v1': loadV1, 'client v2': loadV2 }

export const OURS = 'workflow-mcp'

/** The versions, by the same names. */
export function versions() {
  const peer = name => require(`${PEERS}node_modules/@modelcontextprotocol/${name}/package.json`).version
  return {
    'workflow-mcp': require(`${ROOT}package.json`).version,
    'sdk v1': peer('sdk'),
    'client v2': peer('client'),
  }
}

function loadOurs() {
  const workflow = require('../index.js')
  // The first call loads the binary; this one has nothing else to do.
  const loaded = workflow.normalizeMcpServers([])
  return {
    async connect({ command, url }) {
      await loaded
      if (url !== undefined) return ourProject(workflow, url)
      return ours(await workflow.connectMcpServer({ id: 'bench', command, timeout: TIMEOUT }))
    },
    async connectAll(servers) {
      const definitions = servers.map(({ command }, index) => ({
        id: `b${index}`,
        command,
        timeout: TIMEOUT,
      }))
      const { connections } = await workflow.connectMcpServers(definitions)
      return connections.map(ours)
    },
  }
}

function ours(connection) {
  // A connect lists the tools.
  return { call: connection.callTool, list: async () => connection.tools, close: connection.close }
}

function ourProject(workflow, url) {
  const project = workflow.openMcpProject({ config: { mcpServers: { bench: { url } } } })
  const client = project.mcp('bench')
  return {
    call: (name, args) => client.call(name, args),
    list: () => client.listTools(),
    close: () => project.close(),
  }
}

function loadV1() {
  const { Client } = requirePeer('@modelcontextprotocol/sdk/client/index.js')
  const { StdioClientTransport } = requirePeer('@modelcontextprotocol/sdk/client/stdio.js')
  const http = () =>
    requirePeer('@modelcontextprotocol/sdk/client/streamableHttp.js').StreamableHTTPClientTransport
  const options = { timeout: TIMEOUT }
  return peer(Client, StdioClientTransport, http, (client, params) =>
    client.callTool(params, undefined, options),
  )
}

function loadV2() {
  const { Client, StreamableHTTPClientTransport } = requirePeer('@modelcontextprotocol/client')
  const { StdioClientTransport } = requirePeer('@modelcontextprotocol/client/stdio')
  const options = { timeout: TIMEOUT }
  return peer(
    Client,
    StdioClientTransport,
    () => StreamableHTTPClientTransport,
    (client, params) => client.callTool(params, options),
  )
}

function peer(Client, Stdio, http, call) {
  const transport = ({ command, url }) => {
    if (url !== undefined) return new (http())(new URL(url))
    return new Stdio({ command: command[0], args: command.slice(1), maxBufferSize: LONGEST_MESSAGE })
  }
  async function connect(server) {
    const client = new Client({ name: 'bench', version: '1' })
    await client.connect(transport(server))
    return {
      call: (name, args) => call(client, { name, arguments: args }),
      list: () => listAll(client),
      close: () => client.close(),
    }
  }
  // Connected means for us that the tools are known, so it does here.
  async function connectListed(server) {
    const connection = await connect(server)
    await connection.list()
    return connection
  }
  return { connect, connectAll: servers => Promise.all(servers.map(connectListed)) }
}

async function listAll(client) {
  const tools = []
  let cursor
  do {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor })
    tools.push(...page.tools)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return tools
}
