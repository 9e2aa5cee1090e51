import workflow from './index.js'

export const {
  configureMcp,
  connectMcpServer,
  connectMcpServers,
  createMcpTools,
  McpError,
  mcp,
  mcpCall,
  mcpCallSync,
  normalizeMcpServers,
  openMcpProject,
  resultFormats,
  toolFormats,
} = workflow
