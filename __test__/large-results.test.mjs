// Results so long that their texts reach JavaScript apart from the JSON around them, as strings whose memory is not V8's.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { filling } from '../tests/fixtures/filling.mjs'
import { connected, fixture } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { httpServer } from './support/http-server.mjs'
import { clientOf } from './support/project.mjs'
import { scripted } from './support/scripts.mjs'

const LENGTH = 40_000
const ascii = 'a~'.repeat(LENGTH / 2)
const latin = 'é ÿ'.repeat(LENGTH / 2)
const cjk = 'The 速い brown 狐. '.repeat(LENGTH / 10)
const emoji = '😀x'.repeat(LENGTH / 3)
const escapes = '\t"C:\\dog"\r\n\b\f/'.repeat(LENGTH / 10)

/** The JSON text of a result with this content, and what comes after it. */
const result = (content, rest = {}) => JSON.stringify({ content, ...rest })
const text = text => ({ type: 'text', text })

const RESULTS = {
  'plain ASCII': result([text(ascii)]),
  'Latin-1': result([text(latin)]),
  'CJK beside ASCII': result([text(cjk)]),
  'pairs of surrogates': result([text(emoji)]),
  escapes: result([text(escapes)]),
  'escapes of everything': result([text(cjk)]).replaceAll(/[速い狐]/g, inEscape),
  'half an emoji': `{"content":[{"type":"text","text":"${ascii}\\ud83d"}]}`,
  'a wide character at the very end': result([text(`${ascii}${latin}完`)]),
  'several texts and other content': result(
    [
      text(ascii),
      { type: 'image', data: 'QUJD', mimeType: 'image/png' },
      text('short'),
      text(cjk),
      text(escapes),
    ],
    { isError: true, _meta: { text: ascii.slice(0, 9) } },
  ),
  'fields before and after the text': `{"_meta":{"content":[{"text":1}]},"content":[{"text":"${ascii}","annotations":{"text":"x"},"type":"text"}],"isError":false,"more":[1,{"a":null}]}`,
  'space between all tokens': ` { "content" : [ { "type" : "text" , "text" : "${ascii}" } , { } , [ ] ] , "n" : 1e400 } `,
  'a key twice': `{"content":[{"type":"text","text":"${ascii}","text":"second"}]}`,
  'content twice': `{"content":[{"type":"text","text":"${ascii}"}],"content":[]}`,
  'a key in escapes': `{"content":[{"type":"text","text":"${ascii}","te\\u0078t":"second"}]}`,
  'keys of the prototype': `{"__proto__":{"content":[]},"content":[{"__proto__":{"text":"no"},"type":"text","text":"${ascii}"}]}`,
  'an embedded resource': result([{ type: 'resource', resource: { uri: 'a:b', text: ascii } }]),
  'structured content': result([], {
    structuredContent: { rows: Array.from({ length: 3_000 }, (_, n) => ({ n, ü: '完' })) },
  }),
  'structured content and its text': result([text(JSON.stringify([escapes]))], {
    structuredContent: [escapes],
  }),
  megabytes: result([text(ascii.repeat(40))]),
  'megabytes with CJK and escapes': result([text(`${cjk}${escapes}`.repeat(30))]),
  'megabytes of structure': result([], { structuredContent: Array.from({ length: 200_000 }, (_, n) => n) }),
}

function inEscape(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

test('a large result is what JSON.parse gives of its text, key for key', async t => {
  const { connection } = await connected(t)
  for (const [what, json] of Object.entries(RESULTS)) {
    const given = await connection.callTool('result', { text: json })
    const expected = JSON.parse(json)
    expected.content ??= []
    expected.isError ??= false
    // Not deepEqual alone, which does not see the order of keys; nor that alone, which does not see what JSON cannot say.
    assert.ok(JSON.stringify(given) === JSON.stringify(expected), what)
    assert.deepEqual(given, expected, what)
  }
})

test('request gives large results as JSON.parse does, too', async t => {
  const { connection } = await connected(t)
  for (const [what, json] of Object.entries(RESULTS)) {
    const params = { name: 'result', arguments: { text: json } }
    assert.ok(
      JSON.stringify(await connection.request('tools/call', params)) === JSON.stringify(JSON.parse(json)),
      what,
    )
  }
})

test('scripts get large results as JSON.parse gives them, over stdio, over HTTP and while they wait', async t => {
  const overStdio = scripted(t).client
  const server = await httpServer(t, {
    'tools/call': exchange => {
      const { message, args } = exchange
      const body = `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${args.text}}`
      exchange.respond(200, body, { 'content-type': 'application/json' })
    },
  })
  const overHttp = clientOf(t, server).client
  for (const [what, json] of Object.entries(RESULTS)) {
    const expected = JSON.parse(json)
    expected.content ??= []
    expected.isError ??= false
    const args = { text: json }
    for (const [way, given] of [
      ['stdio', await overStdio.call('result', args)],
      ['stdio, waiting', overStdio.callSync('result', args)],
      ['HTTP', await overHttp.call('result', args)],
    ]) {
      assert.ok(JSON.stringify(given) === JSON.stringify(expected), `${what}, ${way}`)
    }
  }
})

test('large results of many calls at once reach their own callers', async t => {
  const { connection } = await connected(t)
  const calls = Array.from({ length: 24 }, async (_, index) => {
    const own = `${index}:${index % 2 ? ascii : cjk}`.repeat(index % 3 === 0 ? 30 : 1)
    const { content } = await connection.callTool('result', { text: result([text(own)]) })
    assert.ok(content[0].text === own, String(index))
  })
  await Promise.all(calls)
})

test('their memory lives as long as the strings do, and comes back after them', async () => {
  const { definition } = fixture()
  const { said, code, stderr } = await host(
    `
    const connection = await workflow.connectMcpServer(given.definition)
    const call = async bytes => (await connection.callTool('big', { bytes })).content[0].text
    // A part of 13 characters and more points into the whole, a shorter one is a copy.
    const parts = []
    for (let time = 0; time < 30; time++) parts.push((await call(9_000_000)).slice(-12))
    const whole = await call(100_000)
    const part = (await call(2_000_000)).slice(5, -5)
    for (let time = 0; time < 5; time++) {
      globalThis.gc()
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    say(process.memoryUsage().rss / 1e6)
    const { filling } = await import(given.filling)
    say(whole === filling(100_000) && part === filling(2_000_000).slice(5, -5) && parts.every(part => part === given.end))
    await connection.close()`,
    {
      given: {
        definition,
        filling: new URL('../tests/fixtures/filling.mjs', import.meta.url).href,
        end: filling(9_000_000).slice(-12),
      },
      flags: ['--expose-gc'],
    },
  ).ended
  assert.equal(code, 0, stderr)
  // All together they have 270 MB.
  assert.ok(said[0] < 250, `${said[0]} MB`)
  assert.equal(said[1], true)
})

test('an environment ends while it holds large results, and while some are on their way', async () => {
  const { definition } = fixture()
  const { code, stderr, said } = await host(
    `
    import { Worker } from 'node:worker_threads'
    for (let round = 0; round < 5; round++) {
      // As a script or a module: which of the two it is depends on the version of Node.
      const worker = new Worker(\`
        import('node:worker_threads').then(async ({ parentPort, workerData }) => {
          const { default: workflow } = await import(workerData.url)
          const connection = await workflow.connectMcpServer(workerData.definition)
          globalThis.kept = []
          for (let time = 0; time < 5; time++) globalThis.kept.push(await connection.callTool('big', { bytes: 2_000_000 }))
          for (let time = 0; time < 5; time++) connection.callTool('big', { bytes: 2_000_000 })
          parentPort.postMessage('ready')
        })
      \`, { eval: true, workerData: given })
      await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
      await worker.terminate()
      say(round)
    }`,
    { given: { definition, url: new URL('../index.js', import.meta.url).href } },
  ).ended
  assert.equal(code, 0, stderr)
  assert.deepEqual(said, [0, 1, 2, 3, 4])
})

/** Of util-linux: with it a host limits its own memory. */
const HAS_PRLIMIT = process.platform === 'linux' && spawnSync('prlimit', ['--version']).status === 0

test('a long line comes whole where the system has memory for it, but not for twice of what has come', {
  skip: !HAS_PRLIMIT,
}, async () => {
  const { definition } = fixture()
  const { said, code, signal, stderr } = await host(
    `
    import { execFileSync } from 'node:child_process'
    import { readFileSync } from 'node:fs'
    const connection = await workflow.connectMcpServer(given.definition)
    const { filling } = await import(given.filling)
    const limitMemory = limit => execFileSync('prlimit', ['--pid', process.pid, '--as=' + limit + ':'])
    const [, size] = /VmSize:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'latin1'))
    limitMemory(1024 * size + 50_000_000)
    const { content } = await connection.callTool('big', { bytes: 36_000_000 })
    limitMemory('unlimited')
    say(content[0].text === filling(36_000_000))
    await connection.close()`,
    {
      given: { definition, filling: new URL('../tests/fixtures/filling.mjs', import.meta.url).href },
    },
  ).ended
  assert.deepEqual([code, signal], [0, null], stderr)
  assert.deepEqual(said, [true])
})
