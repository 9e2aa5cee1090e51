import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { inspect } from 'node:util'
import vm from 'node:vm'

const require = createRequire(import.meta.url)
const { MCP_ERROR_CODES, McpError, fromDescription, invalidArgument } = require('../lib/errors.js')
const read = path => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

const description = {
  code: 'ERR_MCP_HANDSHAKE',
  message: 'server "notes" left before it answered',
  serverId: 'notes',
  details: { exitCode: 3 },
  cause: { code: 'ERR_MCP_RPC', message: 'unsupported', details: { rpcCode: -32602 } },
}

test('the codes in index.d.ts, in lib/errors.js and in the binary are the same, in the same order', () => {
  const union = read('index.d.ts').match(/export type McpErrorCode =([\s\S]*?)\n\n/)[1]
  assert.deepEqual(union.match(/ERR_MCP_[A-Z_]+(?=')/g), [...MCP_ERROR_CODES])
  assert.deepEqual(require('../binding.js').errorCodes(), [...MCP_ERROR_CODES])
  assert.equal(new Set(MCP_ERROR_CODES).size, 27)
})

test('a description becomes an error with its fields and its cause', () => {
  const error = fromDescription(description)
  assert.ok(error instanceof McpError && error instanceof Error)
  assert.equal(error.name, 'McpError')
  assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
  assert.equal(error.message, description.message)
  assert.equal(error.serverId, 'notes')
  assert.deepEqual(error.details, { exitCode: 3 })
  assert.ok(error.cause instanceof McpError)
  assert.equal(error.cause.code, 'ERR_MCP_RPC')
  assert.equal(error.cause.details.rpcCode, -32602)
  assert.equal('cause' in error.cause, false)
})

test('details cannot be changed and are not the object they were made of', () => {
  const details = { limit: 256 }
  const error = fromDescription({ code: 'ERR_MCP_TOO_MANY_TOOLS', message: 'too many', details })
  details.limit = 1
  assert.equal(error.details.limit, 256)
  assert.throws(() => {
    error.details.limit = 1
  }, TypeError)
  assert.equal('serverId' in error, false)
})

test('the stack begins with the name, the code and the message, and then the line that asked for the error', () => {
  const error = fromDescription(description)
  const [first, second] = error.stack.split('\n')
  assert.equal(first, `McpError [ERR_MCP_HANDSHAKE]: ${description.message}`)
  assert.match(second, /errors\.test\.mjs/)
  assert.match(invalidArgument('timeout', 'must be a number').stack.split('\n')[1], /errors\.test\.mjs/)
  assert.equal(String(error), `McpError: ${description.message}`)
})

test('an error made after an await names the line that awaited', async () => {
  async function callsTheServer() {
    await null
    throw fromDescription(description)
  }
  async function theCaller() {
    await callsTheServer()
  }
  await assert.rejects(theCaller(), error => /at async theCaller/.test(error.stack))
})

test('structured stacks work as for any other error', () => {
  const before = Error.prepareStackTrace
  try {
    Error.prepareStackTrace = (_, sites) => sites
    const { stack } = fromDescription(description)
    assert.match(stack[0].getFileName(), /errors\.test\.mjs$/)
  } finally {
    Error.prepareStackTrace = before
  }
})

test('an inspection shows the code, the details and the cause, and the name once', () => {
  const text = inspect(fromDescription(description))
  assert.match(text, /^McpError \[ERR_MCP_HANDSHAKE\]: server "notes" left/)
  assert.match(text, /code: 'ERR_MCP_HANDSHAKE'/)
  assert.match(text, /exitCode: 3/)
  assert.match(text, /\[cause\]: McpError \[ERR_MCP_RPC\]/)
  assert.doesNotMatch(text, /name: /)
})

test('JSON of an error is plain data without stack and cause', () => {
  const json = JSON.parse(JSON.stringify(fromDescription(description)))
  assert.deepEqual(json, {
    name: 'McpError',
    code: 'ERR_MCP_HANDSHAKE',
    message: description.message,
    serverId: 'notes',
    details: { exitCode: 3 },
  })
  const data = fromDescription(description).toJSON()
  data.details.exitCode = 4
  assert.deepEqual(structuredClone(data).details, { exitCode: 4 })
  assert.equal('serverId' in invalidArgument('a', 'b').toJSON(), false)
})

test('McpError.is knows the errors of another copy and another context, and nothing else', () => {
  const source = `(module => { ${read('lib/errors.js')}\nreturn module.exports })({})`
  for (const copy of [vm.runInThisContext(source), vm.runInNewContext(source)]) {
    const foreign = copy.fromDescription(description)
    assert.equal(foreign instanceof McpError, false)
    assert.equal(McpError.is(foreign), true)
    assert.equal(copy.McpError.is(fromDescription(description)), true)
  }
  const lookalikes = [
    null,
    undefined,
    'ERR_MCP_RPC',
    new Error('x'),
    description,
    () => {},
    Object.create(null),
  ]
  assert.deepEqual(lookalikes.filter(McpError.is), [])
})

test('an argument fault says where and why', () => {
  const error = invalidArgument('connections[1]', 'is not a connection', { details: { nearest: 'x' } })
  assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT')
  assert.equal(error.message, 'connections[1] is not a connection')
  assert.deepEqual(error.details, { path: 'connections[1]', reason: 'is not a connection', nearest: 'x' })
})

test('an error made by hand is complete too', () => {
  const error = new McpError('something else')
  assert.equal(error.code, 'ERR_MCP_INTERNAL')
  assert.deepEqual(error.details, {})
})

test('an Error.prepareStackTrace of the host that throws does not take the place of what happened', t => {
  const { prepareStackTrace } = Error
  t.after(() => {
    Error.prepareStackTrace = prepareStackTrace
  })
  Error.prepareStackTrace = () => {
    throw new TypeError('of the host')
  }
  const error = fromDescription(description)
  assert.deepEqual([error.code, error.message], [description.code, description.message])
  assert.equal(error.name, 'McpError')
})

test('whatever was thrown, McpError.is says whether it is one', () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  for (const value of [proxy, undefined, null, Symbol('x'), () => {}, new Error('x'), Object.create(null)])
    assert.equal(McpError.is(value), false)
  assert.equal(McpError.is(fromDescription(description)), true)
})
