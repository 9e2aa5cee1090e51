import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connected, failure, fixture, received, soon, workflow } from './support/fixture.mjs'

const base64 = text => Buffer.from(text).toString('base64')
const answer = (text, id = '$ID') =>
  `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":${JSON.stringify(text)}}]}}\n`
const text = ({ content }) => content[0].text
const echoes = async connection =>
  assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })

/** Frames of ours that answer something. */
const answers = log => received(log).filter(({ method }) => method === undefined)

test('garbage on stdout is never answered, whatever it is, and the call beside it is', async t => {
  const { connection, log } = await connected(t, ['--noise', 'Welcome! 🎉'])
  const lines = [
    ...['hello', '', '   ', '7', '"text"', 'null', 'true', '[]', '[1,null]', '{}', '{"half":'],
    ...['{"level":"info","msg":"x"}', '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":5}', '{"method":7,"id":1}'],
    ...['Content-Length: 12', '\ufeff', '{"id":"x","result":{}}', '{"id":null,"result":{}}', '}{'],
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}',
  ]
  assert.deepEqual((await connection.callTool('raw', { lines })).content, [])
  await echoes(connection)
  assert.deepEqual(answers(log), [])
  assert.ok(connection.diagnostics().skippedLines >= 14)
})

test('a server that logs JSON, and once more for each answer it gets, starts no storm', async t => {
  const { connection, log } = await connected(t, ['--json-noise'])
  for (let call = 0; call < 5; call++) await echoes(connection)
  assert.deepEqual(answers(log), [])
  assert.equal(connection.diagnostics().skippedLines, 1)
})

test('a modern server is sent no answer, not even to a ping', async t => {
  const { connection, log } = await connected(t, ['--modern'])
  const lines = [
    '{"jsonrpc":"2.0","id":"a","method":"ping"}',
    '{"jsonrpc":"2.0","id":"b","method":"sampling/createMessage","params":{}}',
    '{"jsonrpc":"2.0","id":"c","result":{}}',
    'garbage',
    '{"jsonrpc":"2.0","id":$ID,"result":{}}',
  ]
  await connection.callTool('raw', { lines })
  await echoes(connection)
  assert.deepEqual(answers(log), [])
})

test('what a server asks in mid-call is answered, and the call goes on', async t => {
  const { connection } = await connected(t)
  const methods = ['ping', 'roots/list', 'elicitation/create', 'sampling/createMessage', 'made/up']
  const requests = methods.map((method, index) => ({ id: `s${index}`, method }))
  const { structuredContent } = await connection.callTool('ask', { requests })
  const [ping, ...refused] = structuredContent
  assert.deepEqual(ping, { jsonrpc: '2.0', id: 's0', result: {} })
  for (const [index, { id, error }] of refused.entries())
    assert.deepEqual([id, error.code], [`s${index + 1}`, -32601])
})

test('the id of a question of the server goes back as it came', async t => {
  const { connection } = await connected(t)
  const requests = [0, -1, 1.5, 'x', '', '7', 1e21].map(id => ({ id, method: 'ping' }))
  const { structuredContent } = await connection.callTool('ask', { requests })
  assert.deepEqual(
    structuredContent.map(({ id }) => id),
    requests.map(({ id }) => id),
  )
})

test('invalid UTF-8 is read with a replacement character, and the connection lives on', async t => {
  const { connection } = await connected(t)
  const line = Buffer.from(answer('bad: @, cut: #'))
  line[line.indexOf('@')] = 0xff
  line[line.indexOf('#')] = 0xe2
  const result = await connection.callTool('bytes', { parts: [line.toString('base64')] })
  assert.equal(text(result), 'bad: \ufffd, cut: \ufffd')
  await echoes(connection)
})

test('an answer that comes in pieces is whole, cut in the middle of a character too', async t => {
  const { connection } = await connected(t)
  const long = `${'ä漢😀'.repeat(40_000)}😀 end`
  const bytes = Buffer.from(answer(long))
  const at = bytes.lastIndexOf(Buffer.from('😀'))
  const cuts = [0, 1, 2, 3, at, at + 1, at + 2, at + 3, at + 4, bytes.length - 1, bytes.length]
  const parts = cuts.slice(1).map((cut, index) => bytes.subarray(cuts[index], cut).toString('base64'))
  assert.ok(bytes.length > 300 * 1024)
  assert.equal(text(await connection.callTool('bytes', { parts })), long)
  const [before, after] = answer('byte by byte 😀').split('$ID')
  const small = [...Buffer.from(before)].map(byte => Buffer.of(byte))
  small.push(Buffer.from('$ID'), ...[...Buffer.from(after)].map(byte => Buffer.of(byte)))
  const bytewise = { parts: small.map(part => part.toString('base64')) }
  assert.equal(text(await connection.callTool('bytes', bytewise)), 'byte by byte 😀')
})

test('two answers that come in one write reach their calls', async t => {
  const { connection, log } = await connected(t)
  const first = connection.callTool('silent')
  const { id } = await soon(() => received(log, 'tools/call')[0])
  const parts = [base64(`${answer('second')}${answer('first', id)}`)]
  assert.equal(text(await connection.callTool('bytes', { parts })), 'second')
  assert.equal(text(await first), 'first')
})

test('lines that end in CRLF after a byte-order mark give results without a CR', async t => {
  const { connection } = await connected(t, ['--bom', '--crlf', '--noise', ''])
  assert.equal(
    text(await connection.callTool('bytes', { parts: [base64(`\ufeff${answer('plain')}`)] })),
    'plain',
  )
  assert.equal(text(await connection.callTool('echo', { a: 1 })), '{"a":1}')
})

for (const [framing, sample] of [
  ['--indented', '{'],
  ['--headers', 'Content-Length: '],
]) {
  test(`an answer in another framing is a timeout that shows what came: ${framing}`, async () => {
    const { definition } = fixture([framing])
    const error = await failure(workflow.connectMcpServer(definition, { connectTimeout: 1_000 }))
    assert.equal(error.code, 'ERR_MCP_TIMEOUT')
    assert.ok(error.details.stdoutNoise[0].startsWith(sample), error.details.stdoutNoise[0])
    assert.match(error.message, /stdout/)
  })
}
