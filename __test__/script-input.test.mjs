// Servers over stdio that ask the user in mid-call. Those over HTTP: http-input.test.mjs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure, received } from './support/fixture.mjs'
import { scripted, thrown } from './support/scripts.mjs'

const QUESTION = { method: 'elicitation/create', params: { message: 'Which region?' } }
const required = more => ({
  text: JSON.stringify({ resultType: 'input_required', inputRequests: { region: QUESTION }, ...more }),
})
/** A request of the server, in the middle of a call that nobody answers. */
const asking = { lines: [JSON.stringify({ jsonrpc: '2.0', id: 'q', ...QUESTION })] }
const answerOf = async log => {
  for (let waited = 0; waited < 10_000; waited += 10) {
    const answer = received(log).find(({ id }) => id === 'q')
    if (answer) return answer
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  throw new Error('no answer')
}

test('a call is sent again with the answers, under a new id and with the state as it came, ten times at most', async t => {
  const asked = []
  const onInputRequired = async (request, name) => {
    asked.push([request, name])
    return { region: { action: 'accept', content: { region: 'eu' } } }
  }
  const { client, log } = scripted(t, ['--modern'], { onInputRequired })
  const state = 'a "state" \ud83d\ude00 \u0000 é'
  const error = await failure(client.call('result', required({ requestState: state })))
  assert.equal(error.code, 'ERR_MCP_INPUT_REQUIRED')
  assert.match(error.message, /10 rounds/)
  assert.equal(asked.length, 10)
  assert.deepEqual(asked[0], [{ inputRequests: { region: QUESTION } }, 'server'])
  const calls = received(log, 'tools/call')
  assert.equal(new Set(calls.map(({ id }) => id)).size, 11)
  for (const { params } of calls.slice(1)) {
    assert.equal(params.requestState, state)
    assert.deepEqual(params.inputResponses, { region: { action: 'accept', content: { region: 'eu' } } })
  }
})

test('an abort ends the call while the host still thinks', async t => {
  const controller = new AbortController()
  const reason = new Error('enough')
  const onInputRequired = () => {
    setImmediate(() => controller.abort(reason))
    return new Promise(() => {})
  }
  const { client } = scripted(t, ['--modern'], { onInputRequired })
  assert.equal(await failure(client.call('result', required(), { signal: controller.signal })), reason)
})

test('what the host answers must be an object, and what it throws is the cause', async t => {
  const { client } = scripted(t, ['--modern'], { onInputRequired: async () => 'eu' })
  assert.equal((await failure(client.call('result', required()))).code, 'ERR_MCP_INVALID_ARGUMENT')
  const cause = new Error('the window is closed')
  const throwing = () => {
    throw cause
  }
  const other = scripted(t, ['--modern'], { onInputRequired: throwing })
  const error = await failure(other.client.call('result', required()))
  assert.deepEqual([error.code, error.cause], ['ERR_MCP_INPUT_REQUIRED', cause])
})

test('without a host that answers, such a call ends at once', async t => {
  const { client, log } = scripted(t, ['--modern'])
  assert.equal((await failure(client.call('result', required()))).code, 'ERR_MCP_INPUT_REQUIRED')
  assert.equal(thrown(() => client.callSync('result', required())).code, 'ERR_MCP_INPUT_REQUIRED')
  assert.equal(received(log, 'tools/call').length, 2)
})

test('a question that is a request of its own is answered, or refused where the host failed', async t => {
  const asked = []
  const { client, log } = scripted(t, [], {
    async onInputRequired(request) {
      asked.push(request)
      return { request: { action: 'decline' } }
    },
  })
  const pending = client.call('raw', asking, { timeout: 30_000 })
  assert.deepEqual((await answerOf(log)).result, { action: 'decline' })
  assert.deepEqual(asked, [{ inputRequests: { request: QUESTION } }])
  pending.catch(() => {})

  const failing = scripted(t, [], {
    onInputRequired: async () => {
      throw new Error('s3cret reason')
    },
  })
  failing.client.call('raw', asking).catch(() => {})
  const { error } = await answerOf(failing.log)
  assert.equal(error.code, -32603)
  assert.ok(!error.message.includes('s3cret'))
})

test('a synchronous call that is asked something is refused at once: who would answer is the thread it blocks', async t => {
  const asked = []
  const onInputRequired = async request => {
    asked.push(request)
    return { request: { action: 'cancel' } }
  }
  const modern = scripted(t, ['--modern'], { onInputRequired })
  const error = thrown(() => modern.client.callSync('result', required()))
  assert.deepEqual([error.code, error.serverId], ['ERR_MCP_WOULD_BLOCK', 'server'])

  const { client, log } = scripted(t, [], { onInputRequired })
  const begun = performance.now()
  assert.equal(thrown(() => client.callSync('raw', asking, 30_000)).code, 'ERR_MCP_WOULD_BLOCK')
  assert.ok(performance.now() - begun < 20_000)
  // The server is answered all the same, now that the thread is free.
  assert.deepEqual((await answerOf(log)).result, { action: 'cancel' })
  assert.equal(asked.length, 1)
  assert.equal(received(log, 'notifications/cancelled').length, 1)
})
