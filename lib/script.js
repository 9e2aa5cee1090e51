'use strict'

// What a workflow script calls: servers by their names, in the project that the host configured or the one around the current folder.

const { openMcpProject } = require('./project.js')

/** The project that `mcp` uses. */
let current

function configureMcp(options) {
  const replaced = current
  // A project that cannot be opened leaves the old one in place.
  current = openMcpProject(options)
  replaced?.close()
}

function mcp(serverName) {
  if (current !== undefined) return current.mcp(serverName)
  const project = openMcpProject()
  // Where there is no file yet, there may be one the next time.
  if (project.file !== undefined) current = project
  return project.mcp(serverName)
}

async function mcpCall(serverName, tool, args, options) {
  return await mcp(serverName).call(tool, args, options)
}

function mcpCallSync(serverName, tool, args, options) {
  return mcp(serverName).callSync(tool, args, options)
}

module.exports = { configureMcp, mcp, mcpCall, mcpCallSync }
