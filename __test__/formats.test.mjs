import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'

const require = createRequire(import.meta.url)
const { McpError } = require('../lib/errors.js')
const { resultFormats, toolFormats } = require('../lib/formats.js')
const { deepFreeze } = require('../lib/results.js')
const { createMcpTools } = require('../lib/tools.js')

const PNG = 'iVBORw0KGgo='
const result = (content, more) => ({ content, isError: false, ...more })
const text = value => ({ type: 'text', text: value })
const image = { type: 'image', data: PNG, mimeType: 'image/png' }
const audio = { type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' }
const pdf = {
  type: 'resource',
  resource: { uri: 'file:///tmp/plan.pdf', mimeType: 'application/pdf', blob: 'JVBERi0=' },
}
const page = { type: 'resource', resource: { uri: 'file:///a.md', mimeType: 'text/markdown', text: '# A' } }
const link = {
  type: 'resource_link',
  uri: 'file:///b',
  name: 'b',
  mimeType: 'text/plain',
  description: 'the second',
}
const NOTE = '[audio left out: audio/wav, 4 bytes]'

async function toolsOf(...tools) {
  const callTool = () => assert.fail('formats call nothing')
  return createMcpTools({ connection: { id: 'demo', tools, callTool } })
}

const schema = deepFreeze({
  type: 'object',
  properties: { row: { $ref: '#/$defs/Row' } },
  additionalProperties: false,
  $defs: { Row: { type: 'object', properties: { id: { type: 'string' } } } },
})

test('tools take the shape of each request, with the schema as published', async () => {
  const tools = await toolsOf(
    { name: 'add', description: 'Adds.', inputSchema: schema },
    { name: 'now', inputSchema: {} },
  )
  const [name, description, parameters] = ['demo__add', 'Adds.', schema]
  assert.deepEqual(toolFormats.openaiResponses(tools)[0], {
    type: 'function',
    name,
    description,
    parameters,
    strict: false,
  })
  assert.deepEqual(toolFormats.openaiChat(tools)[0], {
    type: 'function',
    function: { name, description, parameters, strict: false },
  })
  assert.deepEqual(toolFormats.anthropic(tools)[0], { name, description, input_schema: schema })
  assert.deepEqual(toolFormats.anthropic(tools)[1].input_schema, { type: 'object', properties: {} })
  const [{ functionDeclarations }] = toolFormats.gemini(tools)
  assert.deepEqual(functionDeclarations[0], { name, description, parametersJsonSchema: schema })
  assert.equal(functionDeclarations.length, 2)
  assert.deepEqual(toolFormats.gemini([]), [])
  const record = toolFormats.record(tools)
  assert.deepEqual(Object.keys(record), ['demo__add', 'demo__now'])
  assert.equal(record.demo__add, tools[0])
})

async function inlined(inputSchema) {
  const [{ functionDeclarations }] = toolFormats.gemini(await toolsOf({ name: 'x', inputSchema }), {
    inlineRefs: true,
  })
  return functionDeclarations[0].parametersJsonSchema
}

test('references into the schema are written out, with what stands beside them', async () => {
  assert.deepEqual(await inlined(schema), {
    type: 'object',
    properties: { row: schema.$defs.Row },
    additionalProperties: false,
  })
  const beside = await inlined({
    properties: {
      described: { $ref: '#/$defs/a~1b', description: 'this one' },
      bounded: { $ref: '#/$defs/a~1b', minLength: 2 },
      list: { type: 'array', items: { anyOf: [{ $ref: '#/$defs/a%2Fb' }, { $ref: '#/$defs/never' }] } },
    },
    $defs: { 'a/b': { type: 'string', description: 'any' }, never: false },
  })
  const string = { type: 'string', description: 'any' }
  assert.deepEqual(beside.properties, {
    described: { type: 'string', description: 'this one' },
    bounded: { minLength: 2, allOf: [string] },
    list: { type: 'array', items: { anyOf: [string, { allOf: [false] }] } },
  })
})

test('a reference at the top leaves an object schema there', async () => {
  const Args = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] }
  const $schema = 'http://json-schema.org/draft-07/schema#'
  assert.deepEqual(await inlined({ $schema, $ref: '#/definitions/Args', definitions: { Args } }), {
    $schema,
    ...Args,
  })
})

test('a schema that contains itself ends in {} with its description', async () => {
  const node = await inlined({
    properties: { root: { $ref: '#/$defs/Node' }, whole: { $ref: '#' } },
    $defs: {
      Node: {
        type: 'object',
        description: 'a node',
        properties: { children: { type: 'array', items: { $ref: '#/$defs/Node' } } },
      },
    },
  })
  assert.deepEqual(node.properties.root.properties.children, {
    type: 'array',
    items: { description: 'a node' },
  })
  assert.deepEqual(node.properties.whole, {})
  assert.doesNotMatch(JSON.stringify(node), /\$ref|\$defs/)
})

test('references that lead elsewhere stay, and so do the definitions', async () => {
  const elsewhere = { $ref: 'https://example.com/row.json' }
  const dangling = { $ref: '#/$defs/toString' }
  const kept = await inlined({ properties: { elsewhere, dangling }, $defs: { Row: { type: 'string' } } })
  assert.deepEqual(kept.properties, { elsewhere, dangling })
  assert.deepEqual(kept.$defs, { Row: { type: 'string' } })
})

test('only schemas are searched for references', async () => {
  const properties = {
    $ref: { type: 'string' },
    pick: { enum: [{ $ref: '#/$defs/Row' }], default: { $ref: '#/$defs/Row' } },
  }
  assert.deepEqual((await inlined({ properties, $defs: { Row: {} } })).properties, properties)
})

test('references that double at each step do not double the memory', async () => {
  const $defs = { d40: { type: 'string' } }
  for (let i = 0; i < 40; i++) {
    const next = { $ref: `#/$defs/d${i + 1}` }
    $defs[`d${i}`] = { allOf: [next, next] }
  }
  const json = JSON.stringify(await inlined({ properties: { all: { $ref: '#/$defs/d0' } }, $defs }))
  assert.ok(json.length < 1_000_000)
  assert.doesNotMatch(json, /\$ref/)
})

test('text goes as text to everyone', () => {
  const two = result([text('one'), text('two')])
  assert.equal(resultFormats.text(two), 'one\ntwo')
  assert.deepEqual(resultFormats.openaiResponses(two), { type: 'function_call_output', output: 'one\ntwo' })
  assert.deepEqual(resultFormats.openaiChat(two), { role: 'tool', content: 'one\ntwo' })
  assert.deepEqual(resultFormats.anthropic(two), { type: 'tool_result', content: [text('one'), text('two')] })
  assert.deepEqual(resultFormats.gemini(two), { response: { output: 'one\ntwo' } })
})

test('a failed tool is marked for everyone', () => {
  const failed = result([text('no such file'), image], { isError: true })
  const note = '[image left out: image/png, 8 bytes]'
  assert.equal(resultFormats.text(failed), `The tool reported an error:\nno such file\n${note}`)
  assert.deepEqual(resultFormats.openaiChat(failed).content, resultFormats.text(failed))
  assert.deepEqual(resultFormats.openaiResponses(failed).output[0], {
    type: 'input_text',
    text: 'The tool reported an error:',
  })
  // Anthropic takes only text beside is_error.
  assert.deepEqual(resultFormats.anthropic(failed), {
    type: 'tool_result',
    content: [text('no such file'), text(note)],
    is_error: true,
  })
  assert.deepEqual(resultFormats.gemini(failed), { response: { error: `no such file\n${note}` } })
})

test('images and documents go where they are taken, and leave a note where they are not', () => {
  const mixed = result([text('see'), image, pdf, audio])
  assert.deepEqual(resultFormats.openaiResponses(mixed).output, [
    { type: 'input_text', text: 'see' },
    { type: 'input_image', image_url: `data:image/png;base64,${PNG}`, detail: 'auto' },
    { type: 'input_file', filename: 'plan.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
    { type: 'input_text', text: NOTE },
  ])
  assert.deepEqual(resultFormats.anthropic(mixed).content, [
    text('see'),
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } },
    text(NOTE),
  ])
  assert.deepEqual(resultFormats.gemini(mixed), {
    response: { output: `see\n${NOTE}` },
    parts: [
      { inlineData: { mimeType: 'image/png', data: PNG } },
      { inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } },
    ],
  })
  assert.equal(
    resultFormats.openaiChat(mixed).content,
    `see\n[image left out: image/png, 8 bytes]\n[file left out: application/pdf, 5 bytes]\n${NOTE}`,
  )
})

test('a picture of a kind that providers refuse is left out, not the request', () => {
  const svg = { type: 'image', data: 'PHN2Zz4=', mimeType: 'image/svg+xml' }
  const note = '[image left out: image/svg+xml, 5 bytes]'
  assert.equal(resultFormats.openaiResponses(result([svg])).output, note)
  assert.deepEqual(resultFormats.anthropic(result([svg])).content, [text(note)])
  assert.deepEqual(resultFormats.gemini(result([svg])), { response: { output: note } })
})

test('resources give their text, links their address', () => {
  assert.equal(resultFormats.text(result([page, link])), '# A\nb: file:///b (text/plain)\nthe second')
})

test('unknown and malformed kinds arrive as the JSON the server sent', () => {
  const odd = [
    { type: 'video', url: 'x' },
    { type: 'image', data: 7 },
    { type: 'text' },
    { type: 'resource' },
    null,
  ]
  assert.equal(resultFormats.text(result(odd)), odd.map(block => JSON.stringify(block)).join('\n'))
})

test('data stands in where there is no content, and only there', () => {
  const data = { rows: [1] }
  assert.equal(resultFormats.text(result([], { structuredContent: data })), '{"rows":[1]}')
  assert.deepEqual(resultFormats.gemini(result([], { structuredContent: data })), {
    response: { output: data },
  })
  assert.equal(resultFormats.text(result([text('one row')], { structuredContent: data })), 'one row')
})

test('an empty result is an empty answer', () => {
  assert.equal(resultFormats.text(result([])), '')
  assert.deepEqual(resultFormats.openaiResponses(result([])), { type: 'function_call_output', output: '' })
  assert.deepEqual(resultFormats.anthropic(result([text('')])), { type: 'tool_result', content: [] })
})

test('what is no result is refused by every format, and never becomes an empty success', () => {
  const failedCall = new McpError('The server notes has left.', { code: 'ERR_MCP_EXITED' })
  for (const odd of [failedCall, undefined, null, 'done', [], {}, { content: 'done' }, { isError: true }]) {
    for (const [name, format] of Object.entries(resultFormats)) {
      assert.throws(
        () => format(odd),
        error => {
          assert.ok(McpError.is(error), `${name}: ${error}`)
          assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT')
          assert.equal(error.details.path, 'result')
          return true
        },
        name,
      )
    }
  }
  const told = { content: [text(failedCall.message)], isError: true }
  assert.deepEqual(resultFormats.anthropic(told), {
    type: 'tool_result',
    content: [text('The server notes has left.')],
    is_error: true,
  })
})

test('formats leave their input alone', async () => {
  const frozen = deepFreeze(result([text('a'), image, pdf], { isError: true, structuredContent: { a: 1 } }))
  for (const format of Object.values(resultFormats)) format(frozen)
  const tools = await toolsOf(deepFreeze({ name: 'x', inputSchema: schema }))
  for (const format of Object.values(toolFormats)) format(tools, { inlineRefs: true })
})
