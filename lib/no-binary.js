'use strict'

const { McpError } = require('./errors.js')

/** What is wrong where no binary could be loaded; `cause` is the generated loader's own error. */
function noBinary(cause) {
  const platform = process.platform
  const arch = process.arch
  const libc = platform === 'linux' ? linuxLibc() : undefined
  const triple = [platform, arch, libc].filter(Boolean).join('-')
  const tried = triedPaths(cause)
  const message = `No native binary of workflow-mcp could be loaded for ${triple}. ${wayOut(tried)}`
  return new McpError(message, {
    code: 'ERR_MCP_NATIVE_LOAD',
    details: { platform, arch, ...(libc && { libc }), tried },
    cause,
  })
}

function linuxLibc() {
  const header = process.report?.getReport?.().header
  return header?.glibcVersionRuntime ? 'gnu' : 'musl'
}

/** What Node.js says of its own accord since version 12; the generated loader keeps the message of a failure, and not its code. */
const DISABLED = 'loading addons is disabled'

function wayOut(tried) {
  if (tried.some(attempt => attempt.includes(DISABLED)))
    return 'Node.js was told to load no native addons: start it without --no-addons, and with --allow-addons where it is given --permission'
  return 'Install with optional dependencies, or build it with `npm run build` in a checkout; in a packaged Electron app the .node file must be outside of the asar archive'
}

/** What the loader tried: one message for each path and package, from its chain of causes. */
function triedPaths(error) {
  const tried = []
  // The first one is the generated loader's own, which blames npm whatever the reason.
  for (let cause = error.cause; cause instanceof Error && tried.length < 16; cause = cause.cause) {
    tried.push(cause.message.split('\n', 1)[0])
  }
  return tried
}

module.exports = { noBinary }
