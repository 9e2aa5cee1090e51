'use strict'

// Nothing here loads the native binary: lib/host.js does, on the first call that needs it.
const { connectMcpServer, connectMcpServers, normalizeMcpServers } = require('./lib/connect.js')
const { McpError } = require('./lib/errors.js')
const { resultFormats, toolFormats } = require('./lib/formats.js')
const { createMcpTools } = require('./lib/tools.js')

module.exports = {
  McpError,
  connectMcpServer,
  connectMcpServers,
  createMcpTools,
  normalizeMcpServers,
  resultFormats,
  toolFormats,
}
