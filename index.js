'use strict'

// Nothing here loads the native binary: lib/core.js does, on the first call that needs it. So is each file loaded by the first call that
// needs it, and not by the name's mention: the package takes part in the start of many programs, and each file adds 0.15 ms. An `import`
// takes what is no function along at once, for a module's names have to have their values.

module.exports = {
  get McpError() {
    return require('./lib/errors.js').McpError
  },
  configureMcp(options) {
    return require('./lib/script.js').configureMcp(options)
  },
  connectMcpServer(definition, options) {
    return require('./lib/connection.js').connectMcpServer(definition, options)
  },
  connectMcpServers(definitions, options) {
    return require('./lib/group.js').connectMcpServers(definitions, options)
  },
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
  async normalizeMcpServers(servers, options) {
    return require('./lib/core.js').theCore().normalize(servers, options)
  },
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
