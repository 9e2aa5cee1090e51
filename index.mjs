export {
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
} from './index.js'
