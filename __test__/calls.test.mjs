// What goes out when a tool is called, in each shape, and what is refused before anything does.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connected, failure, logged, PATIENCE, received } from './support/fixture.mjs'

const echoed = ({ content }) => JSON.parse(content[0].text)

test('the three shapes of callTool send the same', async t => {
  const { connection, log } = await connected(t)
  const { signal } = new AbortController()
  const results = [
    await connection.callTool('echo', { a: 1 }),
    await connection.callTool('echo', { a: 1 }, signal),
    await connection.callTool('echo', { a: 1 }, { signal, timeout: 20_000 }),
    await connection.callTool({ name: 'echo', arguments: { a: 1 } }),
    await connection.callTool({ name: 'echo', arguments: { a: 1 } }, undefined, { signal }),
    await connection.callTool({ name: 'echo', arguments: { a: 1 } }, { parse: () => 'ignored' }),
    await connection.callTool({ name: 'echo', arguments: { a: 1 } }, { '~standard': {} }, { signal }),
    await connection.callTool({ name: 'echo', arguments: { a: 1 } }, null),
    await connection.callTool({ name: 'echo', arguments: { a: 1 } }, { signal }),
  ]
  for (const result of results) assert.deepEqual(result, results[0])
  const calls = received(log, 'tools/call')
  assert.equal(calls.length, results.length)
  for (const { params } of calls) assert.deepEqual(params, { name: 'echo', arguments: { a: 1 } })
  assert.equal(new Set(calls.map(({ id }) => id)).size, results.length)
})

test('options that stand where version 2 of the official client has them count', async t => {
  const { connection, log } = await connected(t)
  const params = { name: 'echo', arguments: {} }
  for (const options of [AbortSignal.abort('enough'), { signal: AbortSignal.abort('enough') }]) {
    assert.equal(await failure(connection.callTool(params, options)), 'enough')
  }
  const unknown = await failure(connection.callTool(params, { timout: 5_000 }))
  assert.equal(unknown.details.path, 'options.timout')
  assert.deepEqual(received(log, 'tools/call'), [])
})

test('missing arguments are {} on the wire, in each shape', async t => {
  const { connection, log } = await connected(t)
  await connection.callTool('echo')
  await connection.callTool('echo', undefined)
  await connection.callTool({ name: 'echo' })
  const all = received(log, 'tools/call').map(({ params }) => params)
  assert.deepEqual(all, Array(3).fill({ name: 'echo', arguments: {} }))
})

test('arguments are what JSON.stringify makes of them', async t => {
  const { connection, log } = await connected(t)
  const given = [
    { a: undefined, b: null },
    {
      date: new Date(0),
      nan: Number.NaN,
      minus: -0,
      list: [undefined, () => {}],
      text: 'ü\u2028\ud800"\\\n',
    },
    { toJSON: () => ({ made: 'by toJSON' }) },
    Object.assign(Object.create({ inherited: 1 }), { own: 2 }),
    JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"b":1,"a":2,"10":3}'),
    { large: 'x'.repeat(300_000) },
  ]
  for (const args of given) await connection.callTool('echo', args)
  const lines = logged(log).filter(line => line.includes('tools/call'))
  for (const [index, args] of given.entries()) {
    assert.ok(lines[index].includes(`"arguments":${JSON.stringify(args)}`), `arguments ${index}`)
  }
})

test('arguments that are no JSON object are refused and nothing is sent', async t => {
  const { connection, log } = await connected(t)
  const cycle = {}
  cycle.self = cycle
  const throwing = {
    get a() {
      throw new Error('from the getter')
    },
  }
  const wrong = [
    null,
    [],
    [1],
    'text',
    '{}',
    7,
    true,
    1n,
    Symbol('s'),
    () => {},
    { big: 1n },
    cycle,
    throwing,
  ]
  for (const args of [...wrong, { toJSON: () => undefined }, { toJSON: () => 'text' }, new Date(0)]) {
    const error = await failure(connection.callTool('echo', args))
    assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT')
    assert.equal(error.details.path, 'arguments')
  }
  assert.equal((await failure(connection.callTool('echo', throwing))).cause.message, 'from the getter')
  assert.deepEqual(received(log, 'tools/call'), [])
})

test('a wrong name, wrong options and unknown options are refused with their place, and nothing is sent', async t => {
  const { connection, log } = await connected(t)
  for (const name of [undefined, null, 7, {}, { name: 7 }, ['echo']]) {
    const error = await failure(connection.callTool(name, {}))
    assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT')
    assert.equal(error.details.path, 'name')
  }
  const wrong = [
    [null, 'options'],
    [1_000, 'options'],
    [[], 'options'],
    [{ timeout: 0 }, 'options.timeout'],
    [{ timeout: '5000' }, 'options.timeout'],
    [{ timeout: Number.NaN }, 'options.timeout'],
    [{ timeout: Number.POSITIVE_INFINITY }, 'options.timeout'],
    [{ maxTotalTimeout: -1 }, 'options.maxTotalTimeout'],
    [{ resetTimeoutOnProgress: 'yes' }, 'options.resetTimeoutOnProgress'],
    [{ onProgress: {} }, 'options.onProgress'],
    [{ onprogress: 1 }, 'options.onProgress'],
    [{ meta: [] }, 'options.meta'],
    [{ meta: { big: 1n } }, 'options.meta'],
    [{ signal: {} }, 'options.signal'],
    [{ signal: new AbortController() }, 'options.signal'],
  ]
  for (const [options, path] of wrong) {
    const error = await failure(connection.callTool('echo', {}, options))
    assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT')
    assert.equal(error.details.path, path)
  }
  const unknown = await failure(connection.callTool('echo', {}, { timout: 5_000 }))
  assert.equal(unknown.code, 'ERR_MCP_INVALID_ARGUMENT')
  assert.equal(unknown.details.path, 'options.timout')
  assert.equal(unknown.details.nearest, 'timeout')
  assert.match(unknown.message, /did you mean timeout/)
  assert.deepEqual(received(log, 'tools/call'), [])
})

test('options that are undefined are absent', async t => {
  const { connection } = await connected(t)
  const options = {
    signal: undefined,
    timeout: undefined,
    meta: undefined,
    onProgress: undefined,
    other: undefined,
  }
  assert.deepEqual(echoed(await connection.callTool('echo', { a: 1 }, options)), { a: 1 })
})

test('a tool outside the list sends nothing; the error names the nearest', async t => {
  const { connection, log } = await connected(t)
  const error = await failure(connection.callTool('ecko', {}))
  assert.equal(error.code, 'ERR_MCP_TOOL_NOT_FOUND')
  assert.deepEqual(error.details, { tool: 'ecko', nearest: 'echo' })
  assert.match(error.message, /echo/)
  const far = await failure(connection.callTool('something else entirely'))
  assert.equal(far.details.nearest, null)
  for (const name of ['', '__proto__', 'toString', 'ECHO ']) {
    assert.equal((await failure(connection.callTool(name))).code, 'ERR_MCP_TOOL_NOT_FOUND', name)
  }
  assert.deepEqual(received(log, 'tools/call'), [])
})

test('calls reach their server although the thread that began them is busy, however many it began', async t => {
  const { connection, log } = await connected(t)
  let sent = 0
  for (const count of [1, 2, 100]) {
    const calls = Array.from({ length: count }, () => connection.callTool('echo', { text: 'x' }))
    sent += count
    const deadline = Date.now() + PATIENCE
    while (received(log, 'tools/call').length < sent) assert.ok(Date.now() < deadline, `of ${count}`)
    assert.equal((await Promise.all(calls)).length, count)
  }
})

test('meta goes out as _meta, beside a progress token that the caller cannot replace', async t => {
  const { connection, log } = await connected(t)
  await connection.callTool('echo', {}, { meta: { traceparent: '00-ab', n: 1, nothing: undefined } })
  await connection.callTool('echo', {}, { meta: { progressToken: 'mine', k: 1 }, onProgress() {} })
  await connection.callTool({ name: 'echo', arguments: {}, _meta: { inner: 1, k: 1 } }, undefined, {
    meta: { k: 2 },
  })
  const calls = received(log, 'tools/call')
  assert.deepEqual(calls[0].params._meta, { traceparent: '00-ab', n: 1 })
  assert.deepEqual(calls[1].params._meta, { progressToken: calls[1].id, k: 1 })
  assert.deepEqual(calls[2].params._meta, { inner: 1, k: 2 })
})

test('the _meta of the official call shape goes together with a signal, and does not hide wrong options', async t => {
  const { connection, log } = await connected(t)
  const params = { name: 'echo', arguments: {}, _meta: { inner: 1 } }
  const aborted = AbortSignal.abort('enough')
  assert.equal(await failure(connection.callTool(params, undefined, aborted)), 'enough')
  for (const options of [null, 5, []]) {
    const error = await failure(connection.callTool(params, undefined, options))
    assert.equal(error.details.path, 'options')
  }
  assert.deepEqual(received(log, 'tools/call'), [])
  await connection.callTool(params, undefined, new AbortController().signal)
  assert.deepEqual(received(log, 'tools/call')[0].params._meta, { inner: 1 })
})

test('request sends any method and gives the raw result', async t => {
  const { connection, log } = await connected(t)
  assert.deepEqual(await connection.request('ping'), {})
  for (const text of ['null', '7', '[1e400]', '"text"', '{"content":7}']) {
    assert.deepEqual(await connection.request('odd/result', { text }), JSON.parse(text))
  }
  await connection.request('ping', {}, { meta: { traceparent: 't' } })
  assert.equal(await connection.request('odd/result', { text: '8' }, { meta: {} }), 8)
  const [first, last] = received(log, 'ping')
  assert.deepEqual(Object.keys(first), ['jsonrpc', 'id', 'method'])
  assert.deepEqual(last.params, { _meta: { traceparent: 't' } })
  const unknown = await failure(connection.request('resources/list'))
  assert.equal(unknown.details.rpcCode, -32601)
  for (const method of ['', undefined, 7]) {
    assert.equal((await failure(connection.request(method))).code, 'ERR_MCP_INVALID_ARGUMENT')
  }
  for (const params of [null, [], 'text', { big: 1n }]) {
    assert.equal((await failure(connection.request('ping', params))).details.path, 'params')
  }
  assert.equal(received(log, 'ping').length, 2)
})

test('a slip in the official call shape is refused and not sent without its arguments', async t => {
  const { connection, log } = await connected(t)
  const error = await failure(connection.callTool({ name: 'echo', argumentz: { text: 'hi' } }))
  assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT')
  assert.deepEqual(error.details, {
    path: 'params.argumentz',
    reason: 'is unknown; did you mean arguments?',
    nearest: 'arguments',
  })
  assert.equal(received(log, 'tools/call').length, 0)
})

test('a signal that is none is refused, and one that throws costs no other call its answer', async t => {
  const { connection } = await connected(t)
  const partial = { aborted: false, addEventListener() {} }
  const error = await failure(connection.callTool('echo', {}, { signal: partial }))
  assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT')

  const throwing = {
    ...partial,
    removeEventListener() {
      throw new Error('from the signal')
    },
  }
  const own = connection.callTool('echo', { own: 1 }, { signal: throwing })
  const others = Array.from({ length: 20 }, (_, n) => connection.callTool('echo', { n }))
  for (const [n, result] of (await Promise.all(others)).entries()) assert.deepEqual(echoed(result), { n })
  assert.deepEqual(echoed(await own), { own: 1 })
})
