// Servers that want something of the user in the middle of a call: `onInputRequired` answers, in both eras.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure, soon } from './support/fixture.mjs'
import { httpServer, inTurn, LEGACY, MODERN, usual } from './support/http-server.mjs'
import { clientOf, text } from './support/project.mjs'

const QUESTION = {
  method: 'elicitation/create',
  params: {
    message: 'Which region?',
    requestedSchema: { type: 'object', properties: { region: { type: 'string' } } },
  },
}
const ANSWER = { action: 'accept', content: { region: 'eu' } }
const STATE = 'opaque «state» {"a": 1}'

const required = more => exchange =>
  exchange.result({ resultType: 'input_required', inputRequests: { region: QUESTION }, ...more })

/** Answers every question, and keeps what it was asked. */
function host(
  answers = request => Object.fromEntries(Object.keys(request.inputRequests).map(key => [key, ANSWER])),
) {
  const asked = []
  return {
    asked,
    async onInputRequired(request, serverName) {
      asked.push({ request, serverName })
      return answers(request)
    },
  }
}

test('a question in the middle of a call is answered, and the call goes on', async t => {
  const answers = { 'tools/call slow': inTurn(required({ requestState: STATE }), usual) }
  const server = await httpServer(t, answers, { revision: MODERN })
  const { asked, onInputRequired } = host()
  const { client } = clientOf(t, server, {}, { onInputRequired })
  assert.equal(text(await client.call('slow', { a: 1 })), 'slow done')
  assert.equal(asked.length, 1)
  assert.equal(asked[0].serverName, 'server')
  assert.deepEqual(asked[0].request.inputRequests, { region: QUESTION })
  const [first, second] = server.seen('tools/call slow').map(({ message }) => message)
  assert.notEqual(first.id, second.id)
  assert.deepEqual(second.params.inputResponses, { region: ANSWER })
  assert.equal(second.params.requestState, STATE)
  assert.deepEqual(second.params.arguments, { a: 1 })
  const capabilities = first.params._meta['io.modelcontextprotocol/clientCapabilities']
  assert.equal(typeof capabilities.elicitation, 'object')
})

test('a state that the server did not give is not sent', async t => {
  const server = await httpServer(t, { 'tools/call slow': inTurn(required(), usual) }, { revision: MODERN })
  const { client } = clientOf(t, server, {}, { onInputRequired: host().onInputRequired })
  await client.call('slow')
  assert.equal('requestState' in server.seen('tools/call slow')[1].message.params, false)
  await client.call('echo', { text: 'hi' })
  const { params } = server.seen('tools/call echo')[0].message
  assert.ok(!('requestState' in params || 'inputResponses' in params))
})

test('a server that only wants time is asked again, without the host', async t => {
  const waiting = exchange => exchange.result({ resultType: 'input_required', requestState: STATE })
  const server = await httpServer(t, { 'tools/call slow': inTurn(waiting, usual) }, { revision: MODERN })
  const { asked, onInputRequired } = host()
  const { client } = clientOf(t, server, {}, { onInputRequired })
  assert.equal(text(await client.call('slow')), 'slow done')
  assert.equal(asked.length, 0)
  assert.equal(server.seen('tools/call slow')[1].message.params.requestState, STATE)
})

test('a server that never has enough is given up', async t => {
  const server = await httpServer(t, { 'tools/call slow': required() }, { revision: MODERN })
  const { asked, onInputRequired } = host()
  const { client } = clientOf(t, server, {}, { onInputRequired })
  assert.equal((await failure(client.call('slow'))).code, 'ERR_MCP_INPUT_REQUIRED')
  assert.ok(asked.length >= 1 && asked.length <= 10, `${asked.length} questions`)
})

test('without a host the call ends, and the client never said it could', async t => {
  const server = await httpServer(t, { 'tools/call slow': required() }, { revision: MODERN })
  const { client } = clientOf(t, server)
  assert.equal((await failure(client.call('slow'))).code, 'ERR_MCP_INPUT_REQUIRED')
  const [{ message }] = server.seen('tools/call slow')
  assert.deepEqual(message.params._meta['io.modelcontextprotocol/clientCapabilities'], {})
  assert.equal(server.seen('tools/call slow').length, 1)
})

test('a host that fails ends the call with its own error as the cause', async t => {
  const server = await httpServer(t, { 'tools/call slow': required() }, { revision: MODERN })
  const { onInputRequired } = host(() => {
    throw new Error('the window is closed')
  })
  const { client } = clientOf(t, server, {}, { onInputRequired })
  const error = await failure(client.call('slow'))
  assert.equal(error.code, 'ERR_MCP_INPUT_REQUIRED')
  assert.equal(error.cause.message, 'the window is closed')
  assert.equal(server.seen('tools/call slow').length, 1)
})

/** A legacy server whose tool asks on the stream of its answer, and then says what it was answered. */
function asking() {
  return {
    'tools/call slow': async exchange => {
      const { server } = exchange
      const stream = exchange.stream()
      stream.send({ jsonrpc: '2.0', id: 'question', ...QUESTION })
      const replied = ({ message }) => message?.id === 'question'
      const { message } = await soon(() => server.requests.find(replied))
      stream.send(exchange.answer({ content: [{ type: 'text', text: JSON.stringify(message) }] }))
    },
  }
}

test('a legacy server that asks is answered by the same host', async t => {
  const server = await httpServer(t, asking(), { revision: LEGACY })
  const { asked, onInputRequired } = host()
  const { client } = clientOf(t, server, {}, { onInputRequired })
  assert.deepEqual(JSON.parse(text(await client.call('slow'))).result, ANSWER)
  assert.deepEqual(asked, [{ request: { inputRequests: { request: QUESTION } }, serverName: 'server' }])
  const [{ message }] = server.seen('initialize')
  assert.equal(typeof message.params.capabilities.elicitation, 'object')
})

test('a legacy server that asks where there is no host is told that nobody can', async t => {
  const server = await httpServer(t, asking(), { revision: LEGACY })
  const { client } = clientOf(t, server)
  assert.equal(JSON.parse(text(await client.call('slow'))).error.code, -32601)
  assert.deepEqual(server.seen('initialize')[0].message.params.capabilities, {})
})

test('closing the project ends the wait for a host that never answers, and for a server that wants time', async t => {
  const waiting = exchange => exchange.result({ resultType: 'input_required', requestState: STATE })
  const answers = { 'tools/call slow': required(), 'tools/call later': waiting }
  const server = await httpServer(t, answers, { revision: MODERN })
  let asked
  const isAsked = new Promise(resolve => {
    asked = resolve
  })
  const onInputRequired = () => {
    asked()
    return new Promise(() => {})
  }
  const { project, client } = clientOf(t, server, {}, { onInputRequired })
  const calls = [client.call('slow'), client.call('later')].map(failure)
  await isAsked
  await soon(() => server.seen('tools/call later').length >= 2, 'the server is asked again')
  await project.close()
  for (const error of await Promise.all(calls)) {
    assert.equal(error.code, 'ERR_MCP_CLOSED')
    assert.equal(error.serverId, 'server')
  }
})

test('a server that asks without end, takes back or asks at length, is refused what is too much', async t => {
  const ROUNDS = 200
  const flooding = exchange => {
    const stream = exchange.stream()
    for (let round = 0; round < ROUNDS; round++) {
      stream.send({ jsonrpc: '2.0', id: `q${round}`, ...QUESTION })
      stream.send({
        jsonrpc: '2.0',
        method: 'notifications/cancelled',
        params: { requestId: `q${round}` },
      })
    }
    const message = 'x'.repeat(2 ** 20)
    stream.send({ jsonrpc: '2.0', id: 'long', ...QUESTION, params: { ...QUESTION.params, message } })
    stream.send(exchange.answer({ content: [] }))
  }
  const server = await httpServer(t, { 'tools/call slow': flooding }, { revision: LEGACY })
  let asked = 0
  const onInputRequired = () => {
    asked++
    return new Promise(() => {})
  }
  const { client } = clientOf(t, server, {}, { onInputRequired })
  await client.call('slow')
  const replied = id => server.requests.some(({ message }) => message?.id === id && message.error)
  await soon(() => replied('long') && replied(`q${ROUNDS - 1}`), 'the last questions are refused')
  assert.ok(asked >= 1 && asked <= 64, `${asked} questions`)
})
