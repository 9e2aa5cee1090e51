import * as workflow from '../../index.mjs'
import { McpError } from '../../index.mjs'

// The two entries give the same class, so that `instanceof` narrows whichever was imported.
export const same: typeof workflow.McpError = McpError
export const connection: Promise<workflow.McpServerConnection> = workflow.connectMcpServer({
  id: 'notes',
  command: ['/usr/local/bin/node', '/opt/notes/server.js'],
})
