// docs/odd-servers.md is this list in prose: a row there without a case here, or the other way round, fails.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { filling } from '../tests/fixtures/filling.mjs'
import { connected, ended, failure, loggedPid, soon } from './support/fixture.mjs'
import { gone, seen } from './support/processes.mjs'

const MIB = 1 << 20
const ANSWER =
  '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"found"}],"isError":false}}'

/** The connection serves on. */
async function serves(connection) {
  assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })
}

/** A call that is answered with these lines; the connection serves on. */
async function answered(t, lines, switches = [], options = {}) {
  const { connection } = await connected(t, switches, options)
  const result = await connection.callTool('raw', { lines })
  await serves(connection)
  return result
}

const found = async (...given) => assert.equal((await answered(...given)).content[0].text, 'found')

/** A call that gets this result, which is handed over as it is. */
async function kept(t, text) {
  const { connection } = await connected(t)
  assert.deepEqual(await connection.callTool('result', { text }), JSON.parse(text))
  await serves(connection)
}

async function refused(t, text) {
  const { connection } = await connected(t)
  assert.equal((await failure(connection.callTool('result', { text }))).code, 'ERR_MCP_INVALID_MESSAGE')
  await serves(connection)
}

/** A call in whose middle the server leaves, after these bytes. */
async function lastWords(t, words) {
  const { connection } = await connected(t)
  const received = () => connection.diagnostics().bytesReceived
  const before = received()
  const parts = [Buffer.from(words).toString('base64')]
  const call = connection.callTool('bytes', { parts })
  call.catch(() => {})
  await soon(() => received() - before >= words.replace('$ID', '0').length)
  process.kill(connection.pid, 'SIGKILL')
  return call
}

/** What a message of this size leads to. */
async function sized(t, bytes) {
  const { connection } = await connected(t, [], {}, { timeout: 120_000 })
  const call = connection.callTool('big', { bytes })
  return { connection, call }
}

/** By section: what the server does, what the caller gets, and the proof. */
const SECTIONS = {
  'Lines and bytes': [
    [
      'a line that is no JSON, before or between messages',
      'the line is skipped and counted',
      async t => {
        await found(t, ['Listening on 8080', '', ANSWER], ['--noise', 'Welcome! 🎉'])
      },
    ],
    [
      'a line of JSON that is no message',
      'the line is skipped and counted, and never answered',
      async t => {
        await found(t, ['{"level":"info","msg":"x"}', '7', '[]', ANSWER])
      },
    ],
    ['lines that end in CRLF', 'as if they ended in LF', t => found(t, [ANSWER], ['--crlf'])],
    ['a byte-order mark before a message', 'as without', t => found(t, [`\ufeff${ANSWER}`], ['--bom'])],
    [
      'bytes that are no UTF-8',
      'U+FFFD in their place',
      async t => {
        const { connection } = await connected(t)
        const parts = [Buffer.from(`${ANSWER}\n`.replace('found', 'f\xff'), 'latin1').toString('base64')]
        assert.equal((await connection.callTool('bytes', { parts })).content[0].text, 'f\ufffd')
        await serves(connection)
      },
    ],
    [
      'a line that is cut anywhere, or several in one write',
      'whole messages',
      async t => {
        const { connection } = await connected(t)
        // The answer last: what comes after it would be cut by the next one.
        const [before, after] = `{"jsonrpc":"2.0","method":"notifications/x"}\n${ANSWER}\n`.split('$ID')
        const parts = [...before, '$ID', ...after].map(part => Buffer.from(part).toString('base64'))
        assert.equal((await connection.callTool('bytes', { parts })).content[0].text, 'found')
        await serves(connection)
      },
    ],
  ],
  Envelopes: [
    [
      'the same answer twice',
      'the first counts',
      async t => {
        await found(t, [ANSWER, ANSWER.replace('found', 'twice')])
      },
    ],
    [
      'an answer to an id that was never given out',
      'it is ignored and counted',
      async t => {
        await found(t, [
          '{"jsonrpc":"2.0","id":999999,"result":{}}',
          '{"jsonrpc":"2.0","id":"x","result":{}}',
          ANSWER,
        ])
      },
    ],
    [
      'an id that comes back as a text, or as `1.0`',
      'it is that number',
      async t => {
        await found(t, [ANSWER.replace('$ID', '"$ID"')])
        await found(t, [ANSWER.replace('$ID', '$ID.0')])
      },
    ],
    ['no `jsonrpc`', 'as if it were there', t => found(t, [ANSWER.replace('"jsonrpc":"2.0",', '')])],
    [
      '`error: null` beside a result',
      'the result',
      t => found(t, [ANSWER.replace('"id"', '"error":null,"id"')]),
    ],
    ['a batch', 'each message of it', t => found(t, [`[7,{"jsonrpc":"2.0","method":"x"},${ANSWER}]`])],
    [
      'an error',
      'the call rejects with `ERR_MCP_RPC`: code, message and data as sent',
      async t => {
        const { connection } = await connected(t)
        const error = '{"code":-32050,"message":"no","data":{"a":[1]}}'
        const { code, details, message } = await failure(connection.callTool('rpc_error', { error }))
        assert.deepEqual([code, details.rpcCode, details.data], ['ERR_MCP_RPC', -32050, { a: [1] }])
        assert.match(message, /no$/)
        await serves(connection)
      },
    ],
    [
      'an error whose code is a text, a fraction or missing',
      'the same, with that code, or `null`',
      async t => {
        const { connection } = await connected(t)
        for (const [error, rpcCode] of [
          ['{"code":"E"}', 'E'],
          ['{"code":1.5}', 1.5],
          ['{}', null],
        ]) {
          assert.equal((await failure(connection.callTool('rpc_error', { error }))).details.rpcCode, rpcCode)
        }
        await serves(connection)
      },
    ],
    [
      'an error with `id: null`',
      'the only pending call rejects with it; it is ignored if there are several',
      async t => {
        const { connection } = await connected(t)
        const lines = ['{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}']
        assert.equal((await failure(connection.callTool('raw', { lines }))).details.rpcCode, -32700)
        const waiting = connection.callTool('sleep', { ms: 100 })
        await connection.callTool('raw', { lines: [...lines, ANSWER] })
        assert.equal((await waiting).isError, false)
      },
    ],
  ],
  Results: [
    [
      'half a surrogate pair (`\\ud800`)',
      'as `JSON.parse` reads it',
      t => kept(t, '{"content":[{"type":"text","text":"\\ud800"}],"isError":false}'),
    ],
    [
      'numbers such as `1e400`, or integers above 2^64',
      'as `JSON.parse` reads them',
      t => kept(t, '{"structuredContent":{"a":1e400,"b":18446744073709551616},"content":[],"isError":false}'),
    ],
    [
      'nesting 200 deep, or 5,000',
      'as sent',
      async t => {
        for (const depth of [200, 5_000]) {
          const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`
          const { connection } = await connected(t)
          const text = `{"structuredContent":{"deep":${deep}},"content":[],"isError":false}`
          const { structuredContent } = await connection.callTool('result', { text })
          let depthSeen = 0
          for (let list = structuredContent.deep; list !== undefined; list = list[0]) depthSeen++
          assert.equal(depthSeen, depth)
          await serves(connection)
        }
      },
    ],
    [
      'an unknown kind of content',
      'as sent',
      t => kept(t, '{"content":[{"type":"hologram","x":1}],"isError":false}'),
    ],
    [
      'unknown fields, in a content block too',
      'as sent',
      t => kept(t, '{"content":[{"type":"text","text":"t","x":{"y":1}}],"isError":false,"z":null}'),
    ],
    [
      'a key of another kind of result, such as `tools`',
      'as sent',
      t => kept(t, '{"tools":[],"content":[{"type":"text","text":"t"}],"isError":false}'),
    ],
    [
      'a result that is no object (`42`)',
      'the call rejects with `ERR_MCP_INVALID_MESSAGE`',
      t => refused(t, '42'),
    ],
    [
      '`content` that is no array, `isError` that is no boolean',
      'the call rejects with `ERR_MCP_INVALID_MESSAGE`',
      async t => {
        await refused(t, '{"content":"text"}')
        await refused(t, '{"isError":"true"}')
      },
    ],
    [
      '`{}`',
      '`content: []` and `isError: false`',
      async t => {
        const { connection } = await connected(t)
        assert.deepEqual(await connection.callTool('result', { text: '{}' }), { content: [], isError: false })
      },
    ],
  ],
  Sizes: [
    [
      'a message of 15 MiB, or of any size up to `maxMessageBytes` (64 MiB)',
      'whole',
      async t => {
        const { connection, call } = await sized(t, 15 * MIB)
        assert.ok((await call).content[0].text === filling(15 * MIB))
        await serves(connection)
      },
    ],
    [
      'a message over that, wherever its id stands',
      'its call rejects with `ERR_MCP_MESSAGE_TOO_LARGE`, no other does',
      async t => {
        const { connection, call } = await sized(t, 65 * MIB)
        const other = connection.callTool('echo', { n: 2 })
        const { code, details } = await failure(call)
        assert.deepEqual([code, details.limit], ['ERR_MCP_MESSAGE_TOO_LARGE', 64 * MIB])
        assert.deepEqual((await other).structuredContent, { n: 2 })
        await serves(connection)
        const limited = await connected(t, [], { maxMessageBytes: MIB })
        for (const where of ['first', 'middle', 'last']) {
          const error = await failure(limited.connection.callTool('big', { bytes: MIB, where }))
          assert.deepEqual([error.code, error.details.limit], ['ERR_MCP_MESSAGE_TOO_LARGE', MIB])
        }
        await serves(limited.connection)
      },
    ],
    [
      'a message of more than four times the limit, or a line without end',
      'the connection closes: `ERR_MCP_MESSAGE_TOO_LARGE`',
      async t => {
        const { connection } = await connected(t, [], { maxMessageBytes: 8 * MIB }, { timeout: 120_000 })
        const other = failure(connection.callTool('silent'))
        assert.equal(
          (await failure(connection.callTool('endless', { bytes: 64 * MIB }))).code,
          'ERR_MCP_MESSAGE_TOO_LARGE',
        )
        assert.equal((await other).code, 'ERR_MCP_MESSAGE_TOO_LARGE')
        assert.equal((await ended(connection)).reason, 'protocol-error')
      },
    ],
    [
      'a message over the limit from which no id can be told',
      'the connection closes: `ERR_MCP_MESSAGE_TOO_LARGE`',
      async t => {
        const { connection } = await connected(t, [], { maxMessageBytes: MIB })
        const { code } = await failure(connection.callTool('big', { bytes: MIB, where: 'none' }))
        assert.equal(code, 'ERR_MCP_MESSAGE_TOO_LARGE')
        assert.equal((await ended(connection)).reason, 'protocol-error')
      },
    ],
  ],
  'The end': [
    [
      'an answer without its newline, and the end',
      'the answer',
      async t => {
        assert.equal((await lastWords(t, ANSWER)).content[0].text, 'found')
      },
    ],
    [
      'a part of an answer, and the end',
      'the call rejects with `ERR_MCP_EXITED`: exit code or signal, and the last of stderr',
      async t => {
        const { code, details } = await failure(lastWords(t, ANSWER.slice(0, -10)))
        assert.deepEqual([code, details.signal], ['ERR_MCP_EXITED', 'SIGKILL'])
      },
    ],
    [
      'its exit in the middle of calls',
      'all of them reject so, later ones with `ERR_MCP_CLOSED`',
      async t => {
        const { connection } = await connected(t)
        const pending = [
          connection.callTool('silent'),
          connection.callTool('leave', { how: '9', stderr: 'out of luck' }),
        ]
        for (const { code, details } of await Promise.all(pending.map(failure))) {
          assert.deepEqual([code, details.exitCode, details.stderr], ['ERR_MCP_EXITED', 9, 'out of luck'])
        }
        assert.equal((await failure(connection.callTool('echo'))).code, 'ERR_MCP_CLOSED')
      },
    ],
    [
      'closes its output or its input, and stays',
      'the same, and the server is stopped',
      async t => {
        for (const which of ['input', 'output']) {
          const { connection, log } = await connected(t)
          const server = seen(loggedPid(log))
          connection.callTool('close', { which }).catch(() => {})
          assert.equal((await failure(connection.callTool('silent'))).code, 'ERR_MCP_EXITED')
          await ended(connection)
          await gone(server)
        }
      },
    ],
    [
      'never answers',
      'the call rejects with `ERR_MCP_TIMEOUT`, and the server is told once',
      async t => {
        const { connection } = await connected(t)
        assert.equal(
          (await failure(connection.callTool('silent', {}, { timeout: 50 }))).code,
          'ERR_MCP_TIMEOUT',
        )
        await serves(connection)
      },
    ],
  ],
}

/** The tables of the document, by the heading above them. */
function tables() {
  const tables = {}
  let rows
  for (const line of readFileSync(new URL('../docs/odd-servers.md', import.meta.url), 'utf8').split('\n')) {
    if (line.startsWith('## ')) rows = tables[line.slice(3)] = []
    if (line.startsWith('| '))
      rows.push(
        line
          .split('|')
          .slice(1, -1)
          .map(cell => cell.trim()),
      )
  }
  // Each table begins with its head, and its rule.
  return Object.fromEntries(
    Object.entries(tables).flatMap(([heading, rows]) => (rows.length ? [[heading, rows.slice(2)]] : [])),
  )
}

test('the document has the rows that are tested here, and no others', () => {
  const tested = Object.entries(SECTIONS).map(([heading, cases]) => [
    heading,
    cases.map(([server, caller]) => [server, caller]),
  ])
  assert.deepEqual(tables(), Object.fromEntries(tested))
})

for (const [heading, cases] of Object.entries(SECTIONS)) {
  for (const [server, caller, proof] of cases) {
    test(`${heading}: ${server} — ${caller}`, proof)
  }
}
