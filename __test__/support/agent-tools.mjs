// Agent tools of connections that are none: what createMcpTools makes of a list needs no server.

import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { deepFreeze } = require('../../lib/results.js')
const { createMcpTools } = require('../../lib/tools.js')

/** A recorded connection: it has the shape of one, keeps what it is called with, and answers what it was told to. */
export function recorded(id, tools, answer = { content: [{ type: 'text', text: 'done' }], isError: false }) {
  const calls = []
  return {
    id,
    tools: deepFreeze(tools),
    calls,
    async callTool(...call) {
      calls.push(call)
      if (answer instanceof Error) throw answer
      return answer
    },
  }
}

export const named = (...names) => names.map(name => ({ name, inputSchema: { type: 'object' } }))
export const namesOf = async source => (await createMcpTools(source)).map(tool => tool.name)
