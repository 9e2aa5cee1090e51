// What arrives of what a server sends: everything, as JSON.parse gives it. Each row is something that a typed client was seen to drop, to
// change or to hang on.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connected, failure, fixture, received, soon, workflow } from './support/fixture.mjs'
import { assertSame } from './support/same.mjs'

const AS_SENT = Symbol('what JSON.parse makes of it')
const REFUSED = 'ERR_MCP_INVALID_MESSAGE'

/** One connection for all rows that ask for nothing else: each has to leave it usable. */
const shared = connected({ after })

const deep = (times, open, inner, close) => `${open.repeat(times)}${inner}${close.repeat(times)}`
const NUMBERS =
  '[17,-0,1.0,0.1e-7,1e400,-1e400,9007199254740991,9007199254740993,18446744073709551616,1234567890123456789012345678901234567890]'

/** Results of a call, by what is odd about them: the text on the wire, and what the caller gets. */
const results = [
  ['an unknown field of the result', '{"content":[],"isError":false,"x-own":{"a":[null]}}', AS_SENT],
  [
    'an unknown field of a content block',
    '{"content":[{"type":"text","text":"t","x":1}],"isError":false}',
    AS_SENT,
  ],
  [
    'an unknown annotation',
    '{"content":[{"type":"text","text":"t","annotations":{"mood":"good","priority":9}}],"isError":false}',
    AS_SENT,
  ],
  ['an unknown kind of content', '{"content":[{"type":"hologram","depth":3}],"isError":false}', AS_SENT],
  ['an image without mimeType', '{"content":[{"type":"image","data":"AA=="}],"isError":false}', AS_SENT],
  [
    'an audience that is none',
    '{"content":[{"type":"text","text":"t","annotations":{"audience":["system"]}}],"isError":false}',
    AS_SENT,
  ],
  [
    'a link without a name',
    '{"content":[{"type":"resource_link","uri":"file:///a"}],"isError":false}',
    AS_SENT,
  ],
  [
    'a resource without text and blob',
    '{"content":[{"type":"resource","resource":{"uri":"a:b"}}],"isError":false}',
    AS_SENT,
  ],
  ['content that is no array', '{"content":"str"}', REFUSED],
  ['isError that is no boolean', '{"content":[],"isError":"true"}', REFUSED],
  ...['messages', 'tools', 'contents', 'prompts', 'skills', 'action', 'completion', 'task'].map(key => [
    `a key of another result: ${key}`,
    `{"${key}":[{"a":1}],"content":[{"type":"text","text":"t"}],"isError":false}`,
    AS_SENT,
  ]),
  ['an empty result', '{}', { content: [], isError: false }],
  ['a result of _meta alone', '{"_meta":{"k":1}}', { _meta: { k: 1 }, content: [], isError: false }],
  [
    'both fields of a result',
    '{"content":[{"type":"text","text":"1"}],"structuredContent":{"a":2},"isError":false}',
    AS_SENT,
  ],
  ['structuredContent alone', '{"structuredContent":[1,"b"],"isError":false,"content":[]}', AS_SENT],
  ['structuredContent null', '{"structuredContent":null,"isError":false,"content":[]}', AS_SENT],
  ['isError true', '{"content":[],"isError":true}', AS_SENT],
  ['the order of keys', '{"b":1,"a":{"z":1,"10":2,"y":3},"content":[],"isError":false}', AS_SENT],
  ['numbers', `{"structuredContent":{"n":${NUMBERS}},"content":[],"isError":false}`, AS_SENT],
  [
    '__proto__ and constructor as keys',
    '{"structuredContent":{"__proto__":{"polluted":true},"constructor":1},"content":[],"isError":false}',
    AS_SENT,
  ],
  ['a key twice', '{"structuredContent":{"a":1,"a":2},"content":[],"isError":false}', AS_SENT],
  [
    'half a surrogate pair in a text and in a key',
    '{"structuredContent":{"\\ud83d":"\\udc00"},"content":[],"isError":false}',
    AS_SENT,
  ],
  [
    'nesting 100 deep',
    `{"structuredContent":${deep(100, '{"a":', '1', '}')},"content":[],"isError":false}`,
    AS_SENT,
  ],
  [
    'nesting 500 deep',
    `{"structuredContent":${deep(500, '[{"a":', '1', '}]')},"content":[],"isError":false}`,
    AS_SENT,
  ],
  ['null for a result', 'null', REFUSED],
  ['a number for a result', '42', REFUSED],
]

for (const [what, wire, expected] of results) {
  test(`a result: ${what}`, async () => {
    const { connection } = await shared
    const result = connection.callTool('result', { text: wire })
    if (typeof expected === 'string') {
      assert.equal((await failure(result)).code, expected)
    } else {
      assertSame(await result, expected === AS_SENT ? JSON.parse(wire) : expected)
    }
    assert.equal({}.polluted, undefined)
    assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })
  })
}

test('structuredContent that breaks the outputSchema is the caller’s to judge', async t => {
  const tool = '{"name":"result","inputSchema":{},"outputSchema":{"type":"object","required":["a"]}}'
  const { connection } = await connected(t, ['--tools', '0', '--extra', tool])
  const text = '{"structuredContent":{"b":1},"content":[],"isError":false}'
  assertSame(await connection.callTool('result', { text }), JSON.parse(text))
})

/** Tools, by what is odd about them. `null` stands for one that is left out, with a warning. */
const tools = [
  ['an unknown field', '{"name":"odd","inputSchema":{},"x-own":{"a":1}}', AS_SENT],
  ['no inputSchema', '{"name":"odd"}', null],
  ['null for inputSchema', '{"name":"odd","inputSchema":null}', null],
  ['true for inputSchema', '{"name":"odd","inputSchema":true}', AS_SENT],
  ['an empty inputSchema', '{"name":"odd","inputSchema":{}}', AS_SENT],
  ['an inputSchema of type alone', '{"name":"odd","inputSchema":{"type":"object"}}', AS_SENT],
  [
    'an inputSchema of $schema alone',
    '{"name":"odd","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#"}}',
    AS_SENT,
  ],
  ['a boolean as a property', '{"name":"odd","inputSchema":{"properties":{"a":true,"b":false}}}', AS_SENT],
  ['true for outputSchema', '{"name":"odd","inputSchema":{},"outputSchema":true}', AS_SENT],
  ['a number for description', '{"name":"odd","inputSchema":{},"description":7}', AS_SENT],
  ['a text for annotations', '{"name":"odd","inputSchema":{},"annotations":"none"}', AS_SENT],
  ['an object for icons', '{"name":"odd","inputSchema":{},"icons":{}}', AS_SENT],
  ['a list for _meta', '{"name":"odd","inputSchema":{},"_meta":[1]}', AS_SENT],
  [
    'null for what is optional',
    '{"name":"odd","title":null,"description":null,"inputSchema":{},"outputSchema":null,"annotations":null,"icons":null}',
    AS_SENT,
  ],
  [
    'an unknown hint',
    '{"name":"odd","inputSchema":{},"annotations":{"readOnlyHint":true,"mood":"x"}}',
    AS_SENT,
  ],
  [
    '$defs, references, also to itself, and unknown keywords',
    '{"name":"odd","inputSchema":{"$schema":"s","$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n","additionalProperties":false,"x-unknown":[1e400,-0]}}',
    AS_SENT,
  ],
  ...[
    'http://json-schema.org/draft-07/schema#',
    'https://json-schema.org/draft/2019-09/schema',
    'https://json-schema.org/draft/2020-12/schema',
    'urn:unknown',
  ].map(dialect => [
    `the dialect ${dialect}`,
    `{"name":"odd","inputSchema":{"$schema":"${dialect}","type":"object"},"outputSchema":{"$schema":"${dialect}"}}`,
    AS_SENT,
  ]),
  ['numbers in a schema', `{"name":"odd","inputSchema":{"enum":${NUMBERS}}}`, AS_SENT],
  ['the order of properties', '{"name":"odd","inputSchema":{"properties":{"b":{},"a":{},"10":{}}}}', AS_SENT],
  [
    '__proto__ as a property',
    '{"name":"odd","inputSchema":{"properties":{"__proto__":{"type":"string"}}}}',
    AS_SENT,
  ],
  ['a schema 500 deep', `{"name":"odd","inputSchema":${deep(500, '{"not":', 'true', '}')}}`, AS_SENT],
]

for (const [what, wire, expected] of tools) {
  test(`a tool: ${what}`, async t => {
    const warnings = []
    const extra = ['--extra', wire, '--extra', '{"name":"neighbour","inputSchema":{}}']
    const options = { onWarning: ({ code }) => warnings.push(code) }
    const { connection } = await connected(t, ['--tools', '1', ...extra], options)
    const odd = expected === null ? [] : [JSON.parse(wire)]
    const [first, ...others] = connection.tools
    assert.equal(first.name, 't0')
    assertSame(others, [...odd, { name: 'neighbour', inputSchema: {} }])
    if (expected === null) {
      await soon(() => warnings.length === 1)
      assert.deepEqual(warnings, ['WARN_MCP_TOOL_SKIPPED'])
      assert.equal((await failure(connection.callTool('odd'))).code, 'ERR_MCP_TOOL_NOT_FOUND')
    } else {
      // Callable, whatever its schema says: the server judges the arguments.
      assert.equal((await failure(connection.callTool('odd'))).details.rpcCode, -32602)
    }
  })
}

/** Lists, by what is odd about them: the names that are listed, or the code of the failed connect. */
const lists = [
  ['a cursor that is a number', '{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":5}', ['a']],
  ['a cursor that is null', '{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":null}', ['a']],
  ['an unknown cacheScope', '{"tools":[{"name":"a","inputSchema":{}}],"cacheScope":"shared"}', ['a']],
  ['an empty cacheScope', '{"tools":[{"name":"a","inputSchema":{}}],"cacheScope":""}', ['a']],
  ['a ttlMs that is no integer', '{"tools":[{"name":"a","inputSchema":{}}],"ttlMs":1500.5}', ['a']],
  ['a ttlMs in another notation', '{"tools":[{"name":"a","inputSchema":{}}],"ttlMs":1e3}', ['a']],
  ['null for tools', '{"tools":null}', REFUSED],
  ['no tools', '{}', REFUSED],
]

for (const [what, wire, expected] of lists) {
  test(`a list: ${what}`, async t => {
    if (typeof expected === 'string') {
      const { definition } = fixture(['--list-result', wire])
      assert.equal((await failure(workflow.connectMcpServer(definition))).code, expected)
    } else {
      const { connection, log } = await connected(t, ['--list-result', wire])
      assert.deepEqual(
        connection.tools.map(({ name }) => name),
        expected,
      )
      assert.equal(received(log, 'tools/list').length, 1)
    }
  })
}

/** Answers to `initialize` of servers that leave out what they must not. */
const welcomes = [
  ['no serverInfo', '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}'],
  [
    'serverInfo without a version',
    '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x"}}',
  ],
  [
    'true for the capability',
    '{"protocolVersion":"2025-06-18","capabilities":{"tools":true},"serverInfo":{"name":"x","version":"1"}}',
  ],
  [
    'unknown capabilities',
    '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"telepathy":{"on":1e400}},"x":1}',
  ],
]

for (const [what, wire] of welcomes) {
  test(`an answer to initialize: ${what}`, async t => {
    const { connection } = await connected(t, ['--initialize-result', wire])
    const { capabilities, serverInfo } = JSON.parse(wire)
    assertSame(connection.serverCapabilities, capabilities)
    assert.deepEqual(connection.serverInfo, serverInfo)
    assert.deepEqual((await connection.callTool('echo', { n: 1 })).structuredContent, { n: 1 })
  })
}

test('an answer to initialize: no capabilities are no tools', async t => {
  const { connection, log } = await connected(t, ['--initialize-result', '{"protocolVersion":"2025-06-18"}'])
  assert.deepEqual(connection.tools, [])
  assert.deepEqual(received(log, 'tools/list'), [])
})

/** Envelopes that answer a call; `1` and `'text'` are what the call gives, a code is that of its error. */
const FOUND = '"result":{"found":true}'
const envelopes = [
  ['an id that is a text', `{"jsonrpc":"2.0","id":"$ID",${FOUND}}`, 'found'],
  ['an id that is a fraction', `{"jsonrpc":"2.0","id":$ID.0,${FOUND}}`, 'found'],
  ['no jsonrpc', `{"id":$ID,${FOUND}}`, 'found'],
  ['another jsonrpc', `{"jsonrpc":"1.0","id":$ID,${FOUND}}`, 'found'],
  ['error null beside a result', `{"jsonrpc":"2.0","id":$ID,"error":null,${FOUND}}`, 'found'],
  ['method null beside a result', `{"jsonrpc":"2.0","id":$ID,"method":null,${FOUND}}`, 'found'],
  [
    'result null beside an error',
    '{"jsonrpc":"2.0","id":$ID,"result":null,"error":{"code":-1,"message":"m"}}',
    -1,
  ],
  ['a result beside an error', `{"jsonrpc":"2.0","id":$ID,${FOUND},"error":{"code":-1,"message":"m"}}`, -1],
  ['an error code that is a text', '{"jsonrpc":"2.0","id":$ID,"error":{"code":"E","message":"m"}}', 'E'],
  ['an error code that is a fraction', '{"jsonrpc":"2.0","id":$ID,"error":{"code":1.5,"message":"m"}}', 1.5],
  [
    'an error code beyond 32 bits',
    '{"jsonrpc":"2.0","id":$ID,"error":{"code":9007199254740991,"message":"m"}}',
    9007199254740991,
  ],
  ['an error without a message', '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000}}', -32000],
  ['an error without a code', '{"jsonrpc":"2.0","id":$ID,"error":{"message":"m"}}', null],
  ['a batch', `[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":$ID,${FOUND}}]`, 'found'],
  ['a batch of one', `[{"jsonrpc":"2.0","id":$ID,${FOUND}}]`, 'found'],
  ['an id that was written twice', `{"id":0,"jsonrpc":"2.0",${FOUND},"id":$ID}`, 'found'],
  [
    'space between all tokens',
    `\t{ "jsonrpc" : "2.0" , "id" : $ID , "result" : { "found" : true } } `,
    'found',
  ],
  [
    'unknown members of the envelope',
    `{"jsonrpc":"2.0","trace":{"id":0},"id":$ID,${FOUND},"ok":true}`,
    'found',
  ],
]

for (const [what, line, expected] of envelopes) {
  test(`an envelope: ${what}`, async () => {
    const { connection, log } = await shared
    const call = connection.callTool('raw', { lines: [line] })
    if (expected === 'found') {
      assertSame(await call, { found: true, content: [], isError: false })
    } else {
      const { code, details } = await failure(call)
      assert.deepEqual([code, details.rpcCode], ['ERR_MCP_RPC', expected])
    }
    assert.equal(received(log).filter(({ method }) => method === undefined).length, 0)
  })
}

test('progress that is malformed is heard as it came, and its call settles', async t => {
  const { connection } = await connected(t)
  const heard = []
  const lines = [
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":"50","total":null}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":7}',
    '{"jsonrpc":"2.0","method":"notifications/progress"}',
    `{"jsonrpc":"2.0","id":$ID,${FOUND}}`,
  ]
  const result = await connection.callTool('raw', { lines }, { onProgress: progress => heard.push(progress) })
  assert.equal(result.found, true)
  assert.equal(heard.length, 1)
  assert.equal(heard[0].progress, '50')
})

test('arguments go out as JSON.stringify writes them: keys in order, numbers, half a surrogate pair', async t => {
  const { connection, log } = await connected(t)
  const args = {
    ...{ b: 1, a: { z: -0, y: [1e21, 9007199254740991, 0.1, undefined] } },
    ...{ gone: undefined, date: new Date(0), own: { toJSON: () => 'text' }, half: '\ud83d', 10: null },
    ['__proto__']: { polluted: true },
  }
  await connection.callTool('echo', args)
  const [line] = received(log, 'tools/call')
  assertSame(line.params.arguments, JSON.parse(JSON.stringify(args)))
})
