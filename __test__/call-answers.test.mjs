// What comes back of a call: results and errors as the server wrote them, each to the call that it answers.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connected, failure, received, soon } from './support/fixture.mjs'

const echoed = ({ content }) => JSON.parse(content[0].text)

test('a tool that fails resolves with isError', async t => {
  const { connection } = await connected(t)
  const result = await connection.callTool('fail', { text: 'disk full' })
  assert.deepEqual(result, { content: [{ type: 'text', text: 'disk full' }], isError: true })
})

test('an error of the protocol rejects with its code, its message and its data', async t => {
  const { connection } = await connected(t)
  const answer = { code: -32050, message: 'quota used up', data: { left: 0, list: [1, { a: null }] } }
  const error = await failure(connection.callTool('rpc_error', { error: JSON.stringify(answer) }))
  assert.equal(error.code, 'ERR_MCP_RPC')
  assert.equal(error.serverId, 'fixture')
  assert.equal(error.details.rpcCode, -32050)
  assert.deepEqual(error.details.data, answer.data)
  assert.match(error.message, /quota used up/)
})

test('odd errors are errors too', async t => {
  const { connection } = await connected(t)
  const odd = {
    '{"code":-1}': -1,
    '{"code":"E_QUOTA","message":"m"}': 'E_QUOTA',
    '{"code":99999999999,"message":7}': 99_999_999_999,
    '"just text"': null,
    '{}': null,
  }
  for (const [error, rpcCode] of Object.entries(odd)) {
    const { code, details } = await failure(connection.callTool('rpc_error', { error }))
    assert.deepEqual([code, details.rpcCode], ['ERR_MCP_RPC', rpcCode], error)
  }
})

test('an error that was cut in the middle of an emoji keeps its message and its data', async t => {
  const { connection } = await connected(t)
  const error = '{"code":-1,"message":"too long: \\ud83d","data":{"text":"\\ud83d\\ude00\\ud83d"}}'
  const { message, details } = await failure(connection.callTool('rpc_error', { error }))
  assert.match(message, /too long: \ufffd$/)
  assert.deepEqual(details.data, { text: '😀\ufffd' })
})

test('a result is what JSON.parse makes of the text on the wire', async t => {
  const { connection } = await connected(t)
  const deep = `${'[{"a":'.repeat(500)}1${'}]'.repeat(500)}`
  const texts = [
    '{"content":[],"isError":false,"numbers":[9007199254740993,-0,0.1e-7,1e400,123456789012345678901234567890,1.0]}',
    '{"content":[],"isError":false,"__proto__":{"polluted":true},"a":{"__proto__":1,"constructor":2}}',
    '{"z":1,"b":2,"isError":false,"a":3,"10":4,"9":5,"content":[]}',
    '{"content":[],"isError":false,"twice":1,"twice":2}',
    `{"content":[],"isError":false,"deep":${deep}}`,
    '{"content":[{"type":"text","text":"\\ud83d half, \\udc00 other, \\ud83d\\ude00 whole"}],"isError":false}',
    '{"content":[{"type":"text","text":"\\u0000\\u2028 \\"quoted\\" \\\\ ü 漢 😀"}],"isError":false}',
    '{"content":[{"type":"hologram","depth":3},7,null],"isError":true,"_meta":{"k":[]},"structuredContent":null}',
    ' { "content" : [ ] ,\t"isError" : false } ',
  ]
  for (const text of texts) {
    const result = await connection.callTool('result', { text })
    const expected = JSON.parse(text)
    // deepEqual recurses; JSON of both also compares the order of keys.
    assert.equal(JSON.stringify(result), JSON.stringify(expected))
    assert.deepEqual(result, expected)
    assert.equal(Object.getPrototypeOf(result), Object.prototype)
  }
  const [, proto] = texts
  assert.ok(Object.hasOwn(await connection.callTool('result', { text: proto }), '__proto__'))
  assert.equal({}.polluted, undefined)
})

test('content and isError have defaults; other kinds of results are refused', async t => {
  const { connection } = await connected(t)
  assert.deepEqual(await connection.callTool('result', { text: '{}' }), { content: [], isError: false })
  const withNull = await connection.callTool('result', {
    text: '{"isError":null,"structuredContent":{"a":1}}',
  })
  assert.deepEqual(withNull, { content: [], isError: false, structuredContent: { a: 1 } })
  for (const text of [
    'null',
    '7',
    '"text"',
    '[]',
    '{"content":{}}',
    '{"content":null}',
    '{"isError":"no"}',
  ]) {
    const error = await failure(connection.callTool('result', { text }))
    assert.equal(error.code, 'ERR_MCP_INVALID_MESSAGE', text)
    assert.equal(error.serverId, 'fixture')
  }
  assert.deepEqual(echoed(await connection.callTool('echo', { still: 'alive' })), { still: 'alive' })
})

test('a result that asks for input is refused as such', async t => {
  const { connection } = await connected(t)
  const text = '{"resultType":"input_required","inputRequests":{}}'
  const error = await failure(connection.callTool('result', { text }))
  assert.equal(error.code, 'ERR_MCP_INPUT_REQUIRED')
  const unknown = await failure(connection.callTool('result', { text: '{"resultType":"riddle"}' }))
  assert.equal(unknown.code, 'ERR_MCP_INVALID_MESSAGE')
  const complete = '{"content":[],"isError":false,"resultType":"complete"}'
  assert.deepEqual(await connection.callTool('result', { text: complete }), JSON.parse(complete))
})

test('200 calls at once, answered in reverse, each get their own answer', async t => {
  const { connection } = await connected(t)
  const indexes = Array.from({ length: 200 }, (_, index) => index)
  const results = await Promise.all(indexes.map(index => connection.callTool('hold', { count: 200, index })))
  assert.deepEqual(
    results.map(({ content }) => Number(content[0].text)),
    indexes,
  )
  assert.equal(connection.diagnostics().pendingRequests, 0)
})

test('1,000 calls at once, answered in any order, each get their own answer', async t => {
  const { connection, log } = await connected(t)
  const indexes = Array.from({ length: 1_000 }, (_, index) => index)
  const results = await Promise.all(
    indexes.map(index => connection.callTool('shuffle', { count: 1_000, index })),
  )
  assert.deepEqual(
    results.map(({ content }) => Number(content[0].text)),
    indexes,
  )
  const ids = received(log, 'tools/call').map(({ id }) => id)
  assert.equal(new Set(ids).size, 1_000)
})

test('answers in one batch, with ids as text or as fractions, reach their calls', async t => {
  const { connection } = await connected(t)
  for (const id of ['$ID', '"$ID"', '$ID.0', ' $ID ']) {
    const answer = `{"jsonrpc":"2.0","id":${id},"result":{"content":["found"]}}`
    const lines = [`[7,${answer},{"jsonrpc":"2.0","method":"notifications/x"}]`]
    assert.deepEqual((await connection.callTool('raw', { lines })).content, ['found'], id)
  }
})

test('answers that nobody waits for are ignored and counted', async t => {
  const { connection } = await connected(t)
  const lines = [
    '{"jsonrpc":"2.0","id":99999,"result":{}}',
    '{"jsonrpc":"2.0","id":"foreign","result":{}}',
    '{"jsonrpc":"2.0","id":null,"result":{}}',
    '{"jsonrpc":"2.0","method":"notifications/unheard-of"}',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"isError":false}}',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":["a second answer"]}}',
  ]
  assert.deepEqual(await connection.callTool('raw', { lines }), { content: [], isError: false })
  await connection.callTool('echo')
  const { unexpectedAnswers, unknownMessages } = connection.diagnostics()
  assert.deepEqual([unexpectedAnswers, unknownMessages], [4, 1])
})

test('an error without an id rejects the only pending call', async t => {
  const { connection } = await connected(t)
  const lines = ['{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}']
  const error = await failure(connection.callTool('raw', { lines }))
  assert.equal(error.details.rpcCode, -32700)
})

test('an error and a log message of megabytes arrive whole', async t => {
  const logged = []
  const { connection } = await connected(t, [], { onLog: message => logged.push(message) })
  const long = 'é'.repeat(1_000_000)
  const error = JSON.stringify({ code: -32000, message: 'too much', data: { long } })
  const rejected = await failure(connection.callTool('rpc_error', { error }))
  assert.equal(rejected.code, 'ERR_MCP_RPC')
  assert.deepEqual(rejected.details, { rpcCode: -32000, data: { long } })
  await connection.callTool('say', { log: [{ level: 'info', data: long }] })
  await soon(() => logged.length === 1)
  assert.deepEqual(logged, [{ level: 'info', data: long }])
})
