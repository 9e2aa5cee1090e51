'use strict'

// Nothing here loads the native binary: lib/host.js does, on the first call that needs it. What not every start needs
// is loaded by the first call that does, and not by an `import` that names it: each file adds 0.15 ms.
const { connectMcpServer, connectMcpServers, normalizeMcpServers } = require('./lib/connect.js')

module.exports = {
  get McpError() {
    return require('./lib/errors.js').McpError
  },
  configureMcp(options) {
    return require('./lib/script.js').configureMcp(options)
  },
  connectMcpServer,
  connectMcpServers,
  createMcpTools(source) {
    return require('./lib/tools.js').createMcpTools(source)
  },
  mcp(serverName) {
    return require('./lib/script.js').mcp(serverName)
  },
  mcpCall(serverName, tool, args, options) {
    return require('./lib/script.js').mcpCall(serverName, tool, args, options)
  },
  mcpCallSync(serverName, tool, args, options) {
    return require('./lib/script.js').mcpCallSync(serverName, tool, args, options)
  },
  normalizeMcpServers,
  openMcpProject(options) {
    return require('./lib/project.js').openMcpProject(options)
  },
  get resultFormats() {
    return require('./lib/formats.js').resultFormats
  },
  get toolFormats() {
    return require('./lib/formats.js').toolFormats
  },
}
