// The client that the conformance suite drives, as `node client.mjs URL`: what each scenario wants a client to do, through the public
// names alone. The suite says in the environment which scenario it is, and which revision of the protocol.

import { openMcpProject } from '../index.mjs'

const {
  MCP_CONFORMANCE_SCENARIO: scenario,
  MCP_CONFORMANCE_PROTOCOL_VERSION: protocol,
  MCP_CONFORMANCE_CONTEXT: context = '{}',
} = process.env

const lists = { run: server => server.listTools() }

const scenarios = {
  initialize: lists,
  'request-metadata': lists,
  'json-schema-ref-no-deref': lists,

  tools_call: {
    async run(server) {
      await server.listTools()
      await server.call('add_numbers', { a: 5, b: 3 })
    },
  },

  'sse-retry': {
    async run(server) {
      await server.listTools()
      await server.call('test_reconnection')
    },
  },

  'elicitation-sep1034-client-defaults': {
    run: server => server.call('test_client_elicitation_defaults'),
    answer: ({ requestedSchema }) => ({ action: 'accept', content: defaults(requestedSchema) }),
  },

  'sep-2322-client-request-state': {
    async run(server) {
      for (const { name } of await server.listTools()) await server.call(name)
    },
    answer: () => ({ action: 'accept', content: { confirmed: true } }),
  },

  'http-standard-headers': {
    async run(server) {
      for (const { name } of await server.listTools()) await server.call(name)
    },
  },

  'http-custom-headers': {
    async run(server) {
      await server.listTools()
      for (const { name, arguments: args } of JSON.parse(context).toolCalls) await server.call(name, args)
    },
  },

  'http-invalid-tool-headers': {
    async run(server) {
      for (const { name } of await server.listTools()) await server.call(name, { region: 'us-west1' })
    },
  },

  'json-schema-2020-12-preservation': {
    async run(server) {
      const tools = await server.listTools()
      const { inputSchema } = tools.find(({ name }) => name === 'json_schema_2020_12_tool')
      await server.call('json_schema_echo', { schema: inputSchema })
    },
  },
}

/** A form as it is before the user has touched it. */
function defaults({ properties }) {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, schema.default]))
}

/** The host's answers to all that a server wants to know. */
async function answers(answer, { inputRequests }) {
  return Object.fromEntries(Object.entries(inputRequests).map(([key, { params }]) => [key, answer(params)]))
}

const { run, answer } = scenarios[scenario]
const project = openMcpProject({
  config: { mcpServers: { server: { url: process.argv[2], protocol } } },
  ...(answer && { onInputRequired: request => answers(answer, request) }),
})
try {
  await run(project.mcp('server'))
} finally {
  await project.close()
}
