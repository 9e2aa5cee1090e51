// Tools as an agent's loop takes them: what they are made from, what they hold, what they do when they are called.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { named, namesOf, recorded } from './support/agent-tools.mjs'

const require = createRequire(import.meta.url)
const { McpError } = require('../lib/errors.js')
const { createMcpTools } = require('../lib/tools.js')

const refuses = (source, path, message) =>
  assert.rejects(createMcpTools(source), error => {
    assert.ok(McpError.is(error), String(error))
    assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT')
    assert.equal(error.details.path, path)
    assert.match(error.message, message)
    return true
  })

const add = {
  name: 'add',
  title: 'Add',
  description: 'Adds two numbers.',
  inputSchema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { a: { type: 'number' }, options: { type: 'object' } },
    required: ['a'],
    additionalProperties: true,
  },
  outputSchema: { type: 'object', properties: { sum: { type: 'number' } } },
  annotations: { readOnlyHint: true },
}

test('a tool is one plain frozen object with everything a loop asks for', async () => {
  const connection = recorded('calc', [add])
  const [tool] = await createMcpTools({ connection })
  assert.equal(Object.getPrototypeOf(tool), Object.prototype)
  assert.ok(Object.isFrozen(tool) && Object.isFrozen(tool.parameters) && Object.isFrozen(tool.metadata))
  assert.equal(tool.type, 'function')
  assert.equal(tool.name, 'calc__add')
  assert.equal(tool.title, 'Add')
  assert.equal(tool.description, 'Adds two numbers.')
  assert.equal(tool.strict, false)
  assert.deepEqual(tool.parameters, add.inputSchema)
  assert.deepEqual(tool.inputSchema, add.inputSchema)
  assert.deepEqual(tool.outputSchema, add.outputSchema)
  assert.deepEqual(tool.annotations, { readOnlyHint: true })
  assert.deepEqual(tool.metadata, { serverId: 'calc', toolName: 'add' })
  assert.equal(await tool.isEnabled(), true)
  assert.equal(await tool.needsApproval(), false)
  // The AI SDK's types forbid an id on a tool.
  assert.equal('id' in tool, false)
})

test('what the server left out is left out, but for the description', async () => {
  const [tool] = await createMcpTools({ connection: recorded('calc', named('bare')) })
  assert.equal(tool.description, '')
  for (const field of ['title', 'outputSchema', 'annotations']) assert.equal(field in tool, false)
})

test('any input schema becomes an object schema with properties, and nothing else changes', async () => {
  const odd = [
    true,
    false,
    {},
    { type: 'object' },
    null,
    undefined,
    [],
    { properties: [] },
    { type: ['object', 'null'] },
  ]
  const tools = odd.map((inputSchema, index) => ({ name: `t${index}`, inputSchema }))
  for (const tool of await createMcpTools({ connection: recorded('odd', tools) })) {
    assert.deepEqual(tool.parameters, { type: 'object', properties: {} })
  }
  const kept = {
    $defs: { x: true },
    properties: { y: { $ref: '#/$defs/x' } },
    additionalProperties: false,
    'x-own': [1],
  }
  const [tool] = await createMcpTools({ connection: recorded('odd', [{ name: 't', inputSchema: kept }]) })
  assert.deepEqual(tool.parameters, { ...kept, type: 'object' })
})

test('the input schema is a Standard Schema too, out of sight of JSON and kept by a spread', async () => {
  const [tool] = await createMcpTools({ connection: recorded('calc', [add]) })
  const { '~standard': standard } = { ...tool }.inputSchema
  assert.equal(standard.version, 1)
  assert.equal(standard.vendor, 'workflow-mcp')
  assert.deepEqual(standard.validate({ a: 'x' }), { value: { a: 'x' } })
  assert.deepEqual(JSON.parse(JSON.stringify(tool.inputSchema)), add.inputSchema)
  assert.deepEqual(Object.keys(tool.inputSchema), Object.keys(add.inputSchema))
  // OpenAI Agents refuses a Standard Schema that is not strict.
  assert.equal('~standard' in tool.parameters, false)
})

test('the JSON Schema it gives is a fresh copy in which open objects stay open for the AI SDK', async () => {
  const [tool] = await createMcpTools({ connection: recorded('calc', [add]) })
  const { jsonSchema } = tool.inputSchema['~standard']
  for (const schema of [
    jsonSchema.input({ target: 'draft-07' }),
    jsonSchema.output({ target: 'draft-07' }),
  ]) {
    assert.deepEqual(schema.additionalProperties, {})
    assert.deepEqual(schema.properties.options, { type: 'object', additionalProperties: {} })
    schema.properties.options.additionalProperties = false
    schema.properties.a = false
  }
  assert.deepEqual(tool.inputSchema, add.inputSchema)
  const closed = { type: 'object', properties: {}, additionalProperties: false }
  const [other] = await createMcpTools({ connection: recorded('calc', [{ name: 'x', inputSchema: closed }]) })
  assert.deepEqual(other.inputSchema['~standard'].jsonSchema.input({ target: 'draft-07' }), closed)
})

test('execute calls the tool by its original name with either signal', async () => {
  const connection = recorded('srv', named('read.file'))
  const [{ execute }] = await createMcpTools({ connection })
  const { signal } = new AbortController()
  await execute({ a: 1 }, { abortSignal: signal, toolCallId: '1' })
  await execute({ a: 2 }, { signal })
  await execute({})
  assert.deepEqual(
    connection.calls.map(([name, args]) => [name, args]),
    [
      ['read.file', { a: 1 }],
      ['read.file', { a: 2 }],
      ['read.file', {}],
    ],
  )
  assert.deepEqual(
    connection.calls.map(([, , options]) => options.signal),
    [signal, signal, undefined],
  )
})

test('a failed tool is a result, a failed call rejects with its own error', async () => {
  const failed = { content: [{ type: 'text', text: 'no' }], isError: true }
  const [tool] = await createMcpTools({ connection: recorded('srv', named('x'), failed) })
  assert.equal(await tool.execute({}), failed)
  const gone = new McpError('closed', { code: 'ERR_MCP_CLOSED' })
  const [dead] = await createMcpTools({ connection: recorded('srv', named('x'), gone) })
  assert.equal(dead.name, 'srv__x')
  await assert.rejects(dead.execute({}), gone)
  await assert.rejects(dead.invoke({}, '{}'), gone)
})

test('invoke takes JSON text and passes the signal on', async () => {
  const connection = recorded('srv', named('x'))
  const [{ invoke }] = await createMcpTools({ connection })
  const { signal } = new AbortController()
  assert.equal(await invoke({}, '{"a":1}', { signal }), 'done')
  assert.equal(await invoke({}, ''), 'done')
  assert.deepEqual(
    connection.calls.map(([, args]) => args),
    [{ a: 1 }, {}],
  )
  assert.equal(connection.calls[0][2].signal, signal)
})

test('invoke refuses what is not the text of a JSON object, sends nothing, and quotes nothing', async () => {
  const connection = recorded('srv', named('x'))
  const [{ invoke }] = await createMcpTools({ connection })
  for (const bad of ['{"key":"hunter2"', '["hunter2"]', '"hunter2"', 'null', '7', 'hunter2', undefined]) {
    await assert.rejects(invoke({}, bad), error => {
      assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT')
      assert.doesNotMatch(`${error.stack}${JSON.stringify(error)}${error.cause}`, /hunter2/)
      return true
    })
  }
  assert.equal(connection.calls.length, 0)
})

test('invoke answers text as a string and pictures as items', async () => {
  const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' }
  const pdf = {
    type: 'resource',
    resource: { uri: 'x://a/plan.pdf', mimeType: 'application/pdf', blob: 'JVBERi0=' },
  }
  const answer = { content: [{ type: 'text', text: 'see' }, image, pdf], isError: false }
  const [tool] = await createMcpTools({ connection: recorded('srv', named('x'), answer) })
  assert.deepEqual(await tool.invoke({}, '{}'), [
    { type: 'text', text: 'see' },
    { type: 'image', image: 'data:image/png;base64,aGk=' },
    { type: 'file', file: { data: 'JVBERi0=', mediaType: 'application/pdf', filename: 'plan.pdf' } },
  ])
  const failed = { content: [{ type: 'text', text: 'no' }], isError: true }
  const [bad] = await createMcpTools({ connection: recorded('srv', named('x'), failed) })
  assert.equal(await bad.invoke({}, '{}'), 'The tool reported an error:\nno')
})

test('invoke of a tool with an output schema answers text only: OpenAI Agents would write pictures out as JSON', async () => {
  const answer = { content: [{ type: 'image', data: 'aGk=', mimeType: 'image/png' }], isError: false }
  const [tool] = await createMcpTools({ connection: recorded('srv', [add], answer) })
  assert.equal(await tool.invoke({}, '{"a":1}'), '[image left out: image/png, 2 bytes]')
})

test('toModelOutput says to the AI SDK what came', async () => {
  const [{ toModelOutput }] = await createMcpTools({ connection: recorded('srv', named('x')) })
  const output = (content, more) => toModelOutput({ output: { content, isError: false, ...more } })
  const text = { type: 'text', text: 'a' }
  const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' }
  assert.deepEqual(output([text]), { type: 'text', value: 'a' })
  assert.deepEqual(output([]), { type: 'text', value: '' })
  assert.deepEqual(output([text, image]), {
    type: 'content',
    value: [text, { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } }],
  })
  assert.deepEqual(output([], { structuredContent: { a: 1 } }), { type: 'json', value: { a: 1 } })
  assert.deepEqual(output([text], { isError: true }), { type: 'error-text', value: 'a' })
  assert.deepEqual(output([], { isError: true }), { type: 'error-text', value: 'The tool reported an error' })
  assert.deepEqual(output([], { isError: true, structuredContent: [1] }), { type: 'error-json', value: [1] })
  // `execute` may have been wrapped.
  assert.deepEqual(toModelOutput({ output: 'mine' }), { type: 'text', value: 'mine' })
  assert.deepEqual(toModelOutput({ output: undefined }), { type: 'json', value: null })
})

test('needsApproval is asked with the tool and the arguments, whichever loop asks', async () => {
  const asked = []
  const connection = recorded('srv', [add])
  const needsApproval = async (tool, args) => {
    asked.push([tool, args])
    return args.a > 1
  }
  const [tool] = await createMcpTools({ connection, needsApproval })
  const runContext = { context: {}, isToolApproved: () => undefined }
  assert.equal(await tool.needsApproval({ a: 1 }, { toolCallId: 'c', messages: [] }), false)
  assert.equal(await tool.needsApproval(runContext, { a: 2 }, 'call_1'), true)
  assert.equal(await tool.needsApproval(runContext, { a: 3 }), true)
  assert.deepEqual(asked, [
    [connection.tools[0], { a: 1 }],
    [connection.tools[0], { a: 2 }],
    [connection.tools[0], { a: 3 }],
  ])
  const [always] = await createMcpTools({ connection, needsApproval: true })
  assert.equal(await always.needsApproval(), true)
})

test('include chooses, and sees the tool and its connection', async () => {
  const [one, two] = [recorded('one', named('a', 'b')), recorded('two', named('a'))]
  const include = (tool, { id }) => id === 'one' && tool.name !== 'b'
  assert.deepEqual(await namesOf({ connections: [one, two], include }), ['one__a'])
  const mine = new Error('mine')
  const throws = () => {
    throw mine
  }
  await assert.rejects(createMcpTools({ connection: one, include: throws }), mine)
})

test('a group of connections, one connection, or both', async () => {
  const [one, two] = [recorded('one', named('a')), recorded('two', named('b'))]
  const group = { connections: [one, two], failures: [], get() {}, async close() {} }
  assert.deepEqual(await namesOf({ connections: group }), ['one__a', 'two__b'])
  assert.deepEqual(await namesOf({ connection: two, connections: [one] }), ['two__b', 'one__a'])
  assert.deepEqual(await namesOf({ connection: one, connections: undefined, validate: undefined }), [
    'one__a',
  ])
})

test('a source without a connection, or with two of one id, is refused', async () => {
  const one = recorded('one', named('a'))
  await refuses(undefined, 'source', /must be an object/)
  await refuses(null, 'source', /must be an object/)
  await refuses([one], 'source', /must be an object/)
  await refuses({}, 'source', /at least one connection/)
  await refuses({ connections: [] }, 'source', /at least one connection/)
  await refuses({ connection: null }, 'connection', /connectMcpServer/)
  await refuses({ connection: one.tools }, 'connection', /connectMcpServer/)
  await refuses({ connections: one }, 'connections', /iterable/)
  await refuses({ connections: 'one' }, 'connections', /iterable/)
  await refuses({ connections: [one, { id: 'two' }] }, 'connections[1]', /connectMcpServer/)
  await refuses({ connection: one, connections: [{ id: 'two' }] }, 'connections[0]', /connectMcpServer/)
  await refuses({ connections: [one, recorded('one', [])] }, 'connections[1]', /id "one" of connections\[0\]/)
  await refuses({ connection: one, connections: [one] }, 'connections[0]', /id "one" of connection:/)
})

test('a source with an unknown or wrong property is refused, and told which there are', async () => {
  const connection = recorded('one', named('a'))
  await refuses(
    { connection, approve: true },
    'approve',
    /connection, connections, include, needsApproval, validate/,
  )
  await refuses({ connection, include: 'a' }, 'include', /function/)
  await refuses({ connection, needsApproval: 'yes' }, 'needsApproval', /boolean or a function/)
  await refuses({ connection, validate: 1 }, 'validate', /boolean/)
})

test('with validate, arguments that break the schema are not sent', async () => {
  const connection = recorded('calc', [add])
  const [tool] = await createMcpTools({ connection, validate: true })
  await assert.rejects(tool.execute({ a: 'one' }), error => {
    assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT')
    assert.equal(error.serverId, 'calc')
    assert.equal(error.message, 'arguments.a must be of type number')
    assert.deepEqual(error.details, { path: 'arguments.a', reason: 'must be of type number', tool: 'add' })
    return true
  })
  await assert.rejects(tool.invoke({}, '{}'), /arguments must have the property "a"/)
  assert.equal(connection.calls.length, 0)
  await tool.execute({ a: 1, more: true })
  assert.equal(connection.calls.length, 1)
  // The AI SDK checks first and lets the model mend its arguments.
  assert.deepEqual(tool.inputSchema['~standard'].validate({ a: null }), {
    issues: [{ message: 'arguments.a must be of type number', path: ['a'] }],
  })
})
