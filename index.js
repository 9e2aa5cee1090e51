'use strict'

// Nothing here loads the native binary: lib/host.js does, on the first call that needs it.
const { connectMcpServer, connectMcpServers, normalizeMcpServers } = require('./lib/connect.js')
const { McpError } = require('./lib/errors.js')
const { resultFormats, toolFormats } = require('./lib/formats.js')
const { openMcpProject } = require('./lib/project.js')
const { configureMcp, mcp, mcpCall, mcpCallSync } = require('./lib/script.js')
const { createMcpTools } = require('./lib/tools.js')

module.exports = {
  McpError,
  configureMcp,
  connectMcpServer,
  connectMcpServers,
  createMcpTools,
  mcp,
  mcpCall,
  mcpCallSync,
  normalizeMcpServers,
  openMcpProject,
  resultFormats,
  toolFormats,
}
