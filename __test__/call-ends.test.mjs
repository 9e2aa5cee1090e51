import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { connected, failure, received, soon } from './support/fixture.mjs'

const text = ({ content }) => content[0].text
const cancelled = log => received(log, 'notifications/cancelled')

/** The reason itself is what a caller gets, whatever it is. */
const REASONS = [
  new Error('enough'),
  new DOMException('x', 'TimeoutError'),
  'enough',
  '',
  null,
  0,
  false,
  { a: 1 },
]

test('a call with a signal that is aborted already rejects with the reason itself and sends nothing', async t => {
  const { connection, log } = await connected(t)
  for (const reason of REASONS) {
    assert.equal(await failure(connection.callTool('echo', {}, AbortSignal.abort(reason))), reason)
    assert.equal(await failure(connection.request('ping', {}, { signal: AbortSignal.abort(reason) })), reason)
    assert.equal(await failure(connection.listTools({}, { signal: AbortSignal.abort(reason) })), reason)
  }
  const signal = AbortSignal.abort()
  const error = await failure(connection.callTool('echo', {}, signal))
  assert.equal(error, signal.reason)
  assert.equal(error.name, 'AbortError')
  await connection.callTool('echo', { last: true })
  assert.deepEqual(
    received(log).map(({ method }) => method),
    ['initialize', 'notifications/initialized', 'tools/list', 'tools/call'],
  )
})

test('an abort in mid-call rejects at once with the reason itself and tells the server once, by the right id', async t => {
  const { connection, log } = await connected(t)
  for (const reason of REASONS) {
    const controller = new AbortController()
    const call = failure(connection.callTool('silent', {}, controller.signal))
    const other = connection.callTool('sleep', { ms: 50 })
    const { id } = await soon(() =>
      received(log, 'tools/call').find(({ params }) => params.name === 'silent'),
    )
    controller.abort(reason)
    controller.abort('a second time')
    assert.equal(await call, reason)
    assert.equal(text(await other), 'slept 50')
    assert.deepEqual(getEventListeners(controller.signal, 'abort'), [])
    const [first] = await soon(() => cancelled(log).length > 0 && cancelled(log))
    assert.deepEqual(first.params, { requestId: id })
  }
  await connection.callTool('echo')
  const silent = received(log, 'tools/call').filter(({ params }) => params.name === 'silent')
  assert.deepEqual(
    cancelled(log).map(({ params }) => params.requestId),
    silent.map(({ id }) => id),
  )
})

test('an abort in the tick of the call sends the request and its cancellation in order, or neither', async t => {
  const { connection, log } = await connected(t)
  const controller = new AbortController()
  const call = failure(connection.callTool('silent', {}, controller.signal))
  controller.abort('at once')
  assert.equal(await call, 'at once')
  await connection.callTool('echo')
  const sent = received(log).filter(
    ({ params }) => params?.name === 'silent' || params?.requestId !== undefined,
  )
  assert.deepEqual(
    sent.map(({ id, params }) => id ?? params.requestId),
    sent.length > 0 ? [sent[0].id, sent[0].id] : [],
  )
})

test('AbortSignal.timeout and AbortSignal.any work as signals', async t => {
  const { connection } = await connected(t)
  const signal = AbortSignal.timeout(50)
  const error = await failure(connection.callTool('silent', {}, signal))
  assert.equal(error, signal.reason)
  assert.equal(error.name, 'TimeoutError')
  if (!AbortSignal.any) return
  const any = failure(
    connection.callTool(
      'silent',
      {},
      AbortSignal.any([new AbortController().signal, AbortSignal.timeout(50)]),
    ),
  )
  assert.equal((await any).name, 'TimeoutError')
})

test('an abort after the answer changes nothing and sends nothing', async t => {
  const { connection, log } = await connected(t)
  const controller = new AbortController()
  const call = connection.callTool('echo', { a: 1 }, controller.signal)
  assert.equal(text(await call), '{"a":1}')
  assert.deepEqual(getEventListeners(controller.signal, 'abort'), [])
  controller.abort()
  assert.equal(text(await call), '{"a":1}')
  await connection.callTool('echo')
  assert.deepEqual(cancelled(log), [])
})

test('one signal for many calls: all reject, no listener stays, and Node warns of no leak', async t => {
  const { connection, log } = await connected(t)
  const warnings = []
  const onWarning = warning => warnings.push(warning.name)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const controller = new AbortController()
  const calls = Array.from({ length: 20 }, () =>
    failure(connection.callTool('silent', {}, controller.signal)),
  )
  await soon(() => received(log, 'tools/call').length === 20)
  controller.abort('all of you')
  assert.deepEqual(await Promise.all(calls), Array(20).fill('all of you'))
  assert.deepEqual(getEventListeners(controller.signal, 'abort'), [])
  await soon(() => cancelled(log).length === 20)
  assert.equal(new Set(cancelled(log).map(({ params }) => params.requestId)).size, 20)
  assert.deepEqual(warnings, [])
})

test('no listener stays on the signal of a call that failed', async t => {
  const { connection } = await connected(t)
  const { signal } = new AbortController()
  await failure(connection.callTool('rpc_error', { error: '{"code":1}' }, signal))
  await failure(connection.callTool('no such tool', {}, signal))
  await failure(connection.callTool('silent', {}, { signal, timeout: 1 }))
  await failure(connection.callTool('echo', null, signal))
  assert.deepEqual(getEventListeners(signal, 'abort'), [])
})

test('a late answer is ignored, whatever it answers', async t => {
  const { connection } = await connected(t)
  const controller = new AbortController()
  const aborted = failure(connection.callTool('sleep', { ms: 300 }, controller.signal))
  const expired = failure(connection.callTool('sleep', { ms: 300 }, { timeout: 20 }))
  assert.equal((await expired).code, 'ERR_MCP_TIMEOUT')
  controller.abort('enough')
  assert.equal(await aborted, 'enough')
  await soon(() => connection.diagnostics().unexpectedAnswers === 2)
  assert.equal(text(await connection.callTool('echo', { a: 1 })), '{"a":1}')
})

test('an aborted listing rejects with the reason and leaves the tools as they were', async t => {
  const { connection, log } = await connected(t, ['--list-slow', '200'])
  const { tools } = connection
  const controller = new AbortController()
  const listing = failure(connection.listTools(undefined, { signal: controller.signal }))
  const { id } = await soon(() => received(log, 'tools/list')[1])
  controller.abort('enough')
  assert.equal(await listing, 'enough')
  await soon(() => cancelled(log).length === 1)
  assert.deepEqual(cancelled(log)[0].params, { requestId: id })
  assert.equal(connection.tools, tools)
  assert.equal((await connection.listTools()).tools.length, tools.length)
})

test('the timeout of a call goes before that of the definition, and the server is told once', async t => {
  const { connection, log } = await connected(t, [], {}, { timeout: 1_000 })
  const short = await failure(connection.callTool('silent', {}, { timeout: 50 }))
  assert.equal(short.code, 'ERR_MCP_TIMEOUT')
  assert.equal(short.serverId, 'fixture')
  assert.deepEqual(short.details, { phase: 'call', ms: 50 })
  const standard = await failure(connection.callTool('silent'))
  assert.deepEqual(standard.details, { phase: 'call', ms: 1_000 })
  assert.equal(text(await connection.callTool('sleep', { ms: 1_300 }, { timeout: 30_000 })), 'slept 1300')
  const request = await failure(connection.request('tools/call', { name: 'silent' }, { timeout: 60 }))
  assert.deepEqual(request.details, { phase: 'call', ms: 60 })
  const silent = received(log, 'tools/call').filter(({ params }) => params.name === 'silent')
  await soon(() => cancelled(log).length === 3)
  assert.deepEqual(
    cancelled(log).map(({ params }) => params.requestId),
    silent.map(({ id }) => id),
  )
})

test('a listing has a timeout of its own phase', async t => {
  const { connection } = await connected(t, ['--list-slow', '1000'])
  const { tools } = connection
  for (const options of [{ timeout: 30 }, { maxTotalTimeout: 30 }]) {
    const error = await failure(connection.listTools(undefined, options))
    assert.equal(error.code, 'ERR_MCP_TIMEOUT')
    assert.deepEqual(error.details, { phase: 'list', ms: 30 })
  }
  assert.equal(connection.tools, tools)
})

test('a listing that waits for another one has its own timeout and its own signal', async t => {
  const { connection, log } = await connected(t, ['--list-slow', '1500'])
  const order = []
  const settled = (name, listing) => listing.catch(error => error).finally(() => order.push(name))
  const controller = new AbortController()
  const first = settled('first', connection.listTools())
  await soon(() => received(log, 'tools/list').length === 2)
  const short = settled('short', connection.listTools(undefined, { timeout: 50 }))
  const aborted = settled('aborted', connection.listTools(undefined, { signal: controller.signal }))
  assert.deepEqual((await short).details, { phase: 'list', ms: 50 })
  controller.abort('enough')
  assert.equal(await aborted, 'enough')
  assert.ok((await first).tools.length > 0)
  assert.deepEqual(order, ['short', 'aborted', 'first'])
})

for (const spelling of ['onProgress', 'onprogress']) {
  test(`${spelling} hears progress in order, the last one always, and none after the result`, async t => {
    const { connection, log } = await connected(t)
    const heard = []
    let isSettled = false
    const call = connection.callTool(
      'sleep',
      { ms: 200, progress: 5 },
      {
        [spelling](progress) {
          assert.equal(isSettled, false)
          heard.push(progress)
        },
      },
    )
    assert.equal(text(await call), 'slept 200')
    isSettled = true
    const steps = heard.map(({ progress }) => progress)
    assert.deepEqual(
      steps,
      [...steps].sort((a, b) => a - b),
    )
    assert.deepEqual(heard.at(-1), { progress: 5, total: 5, message: 'step 5' })
    const [{ id, params }] = received(log, 'tools/call')
    assert.equal(params._meta.progressToken, id)
  })
}

test('without a listener no progress is asked for', async t => {
  const { connection, log } = await connected(t)
  await connection.callTool('sleep', { ms: 1, progress: 5 })
  assert.equal('_meta' in received(log, 'tools/call')[0].params, false)
})

test('progress of other calls, of nobody, and after the answer is not heard', async t => {
  const { connection } = await connected(t)
  const heard = []
  const progress = (token, number) =>
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${number}}}`
  const answer = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
  const lines = [progress(999, 1), progress('"x"', 2), progress('$ID', 3), answer, progress('$ID', 4)]
  await connection.callTool('raw', { lines }, { onProgress: ({ progress }) => heard.push(progress) })
  await connection.callTool('echo')
  assert.deepEqual(heard, [3])
})

test('no progress is heard after an abort', async t => {
  const { connection } = await connected(t)
  const controller = new AbortController()
  const heard = []
  const onProgress = ({ progress }) => {
    heard.push(progress)
    controller.abort('one is enough')
  }
  const options = { signal: controller.signal, onProgress }
  assert.equal(
    await failure(connection.callTool('sleep', { ms: 300, progress: 10 }, options)),
    'one is enough',
  )
  await soon(() => connection.diagnostics().unexpectedAnswers === 1)
  assert.equal(heard.length, 1)
})

test('with resetTimeoutOnProgress a call outlives its timeout, and without a listener too', async t => {
  const { connection } = await connected(t)
  const sleep = { ms: 6_000, progress: 40 }
  const options = { timeout: 3_000, resetTimeoutOnProgress: true }
  assert.equal(text(await connection.callTool('sleep', sleep, options)), 'slept 6000')
})

test('without resetTimeoutOnProgress progress changes nothing', async t => {
  const { connection } = await connected(t)
  const options = { timeout: 300, onProgress() {} }
  const error = await failure(connection.callTool('sleep', { ms: 60_000, progress: 2_000 }, options))
  assert.deepEqual(error.details, { phase: 'call', ms: 300 })
})

test('maxTotalTimeout bounds a call whatever progress it makes', async t => {
  const { connection } = await connected(t)
  const options = { timeout: 30_000, resetTimeoutOnProgress: true, maxTotalTimeout: 500 }
  const error = await failure(connection.callTool('sleep', { ms: 60_000, progress: 2_000 }, options))
  assert.deepEqual(error.details, { phase: 'call', ms: 500 })
})
