export {
  connectMcpServer,
  connectMcpServers,
  createMcpTools,
  McpError,
  normalizeMcpServers,
  resultFormats,
  toolFormats,
} from './index.js'
