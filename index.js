'use strict'

// Nothing here loads the native binary: lib/host.js does, on the first call that needs it. What not every start needs is loaded when
// it is asked for: each file adds 0.15 ms.
const { connectMcpServer, connectMcpServers, normalizeMcpServers } = require('./lib/connect.js')

module.exports = {
  get McpError() {
    return require('./lib/errors.js').McpError
  },
  get configureMcp() {
    return require('./lib/script.js').configureMcp
  },
  connectMcpServer,
  connectMcpServers,
  get createMcpTools() {
    return require('./lib/tools.js').createMcpTools
  },
  get mcp() {
    return require('./lib/script.js').mcp
  },
  get mcpCall() {
    return require('./lib/script.js').mcpCall
  },
  get mcpCallSync() {
    return require('./lib/script.js').mcpCallSync
  },
  normalizeMcpServers,
  get openMcpProject() {
    return require('./lib/project.js').openMcpProject
  },
  get resultFormats() {
    return require('./lib/formats.js').resultFormats
  },
  get toolFormats() {
    return require('./lib/formats.js').toolFormats
  },
}
