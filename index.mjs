import workflow from './index.js'

export const {
  connectMcpServer,
  connectMcpServers,
  createMcpTools,
  McpError,
  normalizeMcpServers,
  resultFormats,
  toolFormats,
} = workflow
