'use strict'

/** Every code, in the order of the union in index.d.ts and of ErrorCode::ALL in src/error.rs (a test compares the three). */
const MCP_ERROR_CODES = Object.freeze([
  'ERR_MCP_INVALID_DEFINITION',
  'ERR_MCP_CAPABILITY_IN_DEFINITION',
  'ERR_MCP_ENV_NOT_ALLOWED',
  'ERR_MCP_TOO_MANY_SERVERS',
  'ERR_MCP_TOO_MANY_TOOLS',
  'ERR_MCP_TOO_MANY_PAGES',
  'ERR_MCP_SPAWN',
  'ERR_MCP_HANDSHAKE',
  'ERR_MCP_PROTOCOL_VERSION',
  'ERR_MCP_TIMEOUT',
  'ERR_MCP_EXITED',
  'ERR_MCP_CLOSED',
  'ERR_MCP_TOOL_NOT_FOUND',
  'ERR_MCP_RPC',
  'ERR_MCP_INVALID_MESSAGE',
  'ERR_MCP_MESSAGE_TOO_LARGE',
  'ERR_MCP_INPUT_REQUIRED',
  'ERR_MCP_INVALID_ARGUMENT',
  'ERR_MCP_CONFIG',
  'ERR_MCP_SERVER_NOT_FOUND',
  'ERR_MCP_SERVER_HAS_NO_URL',
  'ERR_MCP_HTTP',
  'ERR_MCP_AUTH_REQUIRED',
  'ERR_MCP_CONNECT',
  'ERR_MCP_WOULD_BLOCK',
  'ERR_MCP_NATIVE_LOAD',
  'ERR_MCP_INTERNAL',
])

// In the global symbol registry, which all contexts of a process share: two copies of the package, or one in a vm
// context, recognise each other's errors where instanceof says no.
const BRAND = Symbol.for('workflow-mcp.McpError')

class McpError extends Error {
  /**
   * @param {string} message
   * @param {{ code?: string, serverId?: string, details?: object, cause?: unknown }} [fields]
   * @param {Function} [above] the stack starts at this function's caller
   */
  constructor(message, fields = {}, above = new.target) {
    super(message, Object.hasOwn(fields, 'cause') ? { cause: fields.cause } : undefined)
    this.code = fields.code ?? 'ERR_MCP_INTERNAL'
    if (fields.serverId !== undefined) this.serverId = fields.serverId
    this.details = Object.freeze({ ...fields.details })
    writeStackHeader(this, above)
  }

  toJSON() {
    return {
      name: this.name,
      code: this.code,
      message: this.message,
      ...(this.serverId === undefined ? undefined : { serverId: this.serverId }),
      details: { ...this.details },
    }
  }

  static is(value) {
    try {
      return typeof value === 'object' && value !== null && value[BRAND] === true
    } catch {
      // Anything can be thrown, a revoked proxy too.
      return false
    }
  }
}

// On the prototype, as the built-in errors have it: an own `name` would show up in every inspection.
Object.defineProperties(McpError.prototype, {
  __proto__: null,
  name: { __proto__: null, value: 'McpError', writable: true, configurable: true },
  [BRAND]: { __proto__: null, value: true },
})

/**
 * Makes the stack begin with `McpError [ERR_MCP_X]: message`, as Node's own errors do, so that a log that keeps only
 * the stack keeps the code. V8 writes that line when the stack is first read, from the name the error has then: so it
 * is read here (about 4 us).
 */
function writeStackHeader(error, above) {
  if (typeof Error.captureStackTrace !== 'function') return
  Object.defineProperty(error, 'name', {
    __proto__: null,
    value: `McpError [${error.code}]`,
    configurable: true,
  })
  try {
    Error.captureStackTrace(error, above)
    void error.stack
  } catch {
    // An Error.prepareStackTrace of the host: what it throws must not take the place of what happened.
  }
  delete error.name
}

/**
 * The McpError of a plain description, as the native side gives it.
 * Call it where the caller's promise is rejected: the stack starts at the caller of this function.
 *
 * @param {{ code: string, message: string, serverId?: string, details?: object, cause?: object }} description
 */
function fromDescription(description) {
  // Its own members alone: with `cause` on Object.prototype there would be no end of causes.
  const { message, cause, ...fields } = { __proto__: null, ...description }
  if (cause !== undefined && cause !== null) fields.cause = fromDescription(cause)
  return new McpError(message, fields, fromDescription)
}

/**
 * A fault in an argument, found on the JavaScript side.
 *
 * @param {string} path where: `connection`, `connections[1]`
 * @param {string} reason what is wrong and what is allowed, to follow the path in a sentence: `must be a function`
 * @param {{ details?: object, serverId?: string, cause?: unknown }} [more]
 */
function invalidArgument(path, reason, more = {}) {
  const details = { path, reason, ...more.details }
  const fields = { ...more, code: 'ERR_MCP_INVALID_ARGUMENT', details }
  return new McpError(`${path} ${reason}`, fields, invalidArgument)
}

module.exports = { MCP_ERROR_CODES, McpError, fromDescription, invalidArgument }
