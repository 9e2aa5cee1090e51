import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connected, failure, received, soon } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'

const MODERN = ['--modern', '--subscriptions']
const FIXTURE = JSON.stringify(new URL('support/fixture.mjs', import.meta.url))

const names = ({ tools }) => tools.map(({ name }) => name)
const listens = log => received(log, 'subscriptions/listen')

test('a server that tells only subscribers of changes is subscribed to once, before the first list', async t => {
  const { connection, log } = await connected(t, MODERN)
  const methods = received(log).map(({ method }) => method)
  assert.deepEqual(methods, ['initialize', 'server/discover', 'subscriptions/listen', 'tools/list'])
  const [{ params }] = listens(log)
  assert.deepEqual(params.notifications, { toolsListChanged: true })
  assert.equal(params._meta['io.modelcontextprotocol/protocolVersion'], '2026-07-28')
  for (const name of ['one', 'two']) {
    await connection.callTool('change', { add: [name] })
    await soon(() => names(connection).includes(name))
    assert.equal((await connection.callTool(name)).content[0].text, name)
  }
  assert.equal(listens(log).length, 1)
})

test('onToolsChanged hears what a subscription tells of', async t => {
  const heard = []
  const onToolsChanged = tools => heard.push(tools)
  const { connection } = await connected(t, MODERN, { onToolsChanged })
  await connection.callTool('change', { add: ['extra'] })
  await soon(() => heard.length > 0)
  assert.equal(heard[0], connection.tools)
})

test('a subscription is no pending call', async t => {
  const { connection } = await connected(t, MODERN)
  assert.equal(connection.diagnostics().pendingRequests, 0)
  // What an error without an id answers is the only call that waits.
  const lines = ['{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"unreadable"}}']
  assert.equal((await failure(connection.callTool('raw', { lines }))).details.rpcCode, -32700)
})

test('a subscription keeps no host alive', async () => {
  const { ended } = host(`
    import { fixture } from ${FIXTURE}
    const connection = await workflow.connectMcpServer(fixture(${JSON.stringify(MODERN)}).definition)
    await connection.callTool('echo')
    say(connection.pid)
  `)
  const { code, signal, stderr, said } = await ended
  assert.deepEqual([code, signal, stderr, said.length], [0, null, '', 1])
})

test('a change that is told to another subscription is not ours', async t => {
  const { connection, log } = await connected(t, MODERN)
  const told = id =>
    `{"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":${id}}}}`
  const lines = [told(999_999), told('"a"'), '{"jsonrpc":"2.0","id":$ID,"result":{}}']
  await connection.callTool('raw', { lines })
  assert.equal(connection.diagnostics().unknownMessages, 2)
  await connection.callTool('echo')
  assert.equal(received(log, 'tools/list').length, 1)
})

test('a server that refuses a subscription is asked once and serves as any other', async t => {
  const warnings = []
  const { connection, log } = await connected(t, ['--modern'], {
    onWarning: warning => warnings.push(warning),
  })
  await connection.callTool('echo')
  await connection.listTools()
  assert.equal(listens(log).length, 1)
  const { pendingRequests, unexpectedAnswers } = connection.diagnostics()
  assert.deepEqual([pendingRequests, unexpectedAnswers, warnings], [0, 0, []])
})

test('a server that tells of changes without a subscription is heard, too', async t => {
  const { connection } = await connected(t, ['--modern'])
  await connection.callTool('change', { add: ['extra'] })
  await soon(() => names(connection).includes('extra'))
})

for (const [kind, switches] of [
  ['legacy servers', []],
  [
    'servers that tell of no changes',
    ['--initialize-result', '{"protocolVersion":"2026-07-28","capabilities":{"tools":{}}}'],
  ],
  ['servers without tools', ['--no-tools', '--protocol', '2026-07-28']],
]) {
  test(`${kind} are not asked for a subscription`, async t => {
    const { connection, log } = await connected(t, switches)
    await connection.request('ping')
    assert.deepEqual(listens(log), [])
  })
}

test('a subscription that the server ends is opened again, and what changed meanwhile is found', async t => {
  const { connection, log } = await connected(t, MODERN)
  await connection.callTool('unsubscribe')
  await connection.callTool('change', { add: ['meanwhile'] })
  assert.ok(!names(connection).includes('meanwhile'))
  await soon(() => names(connection).includes('meanwhile'))
  assert.equal(listens(log).length, 2)
  await connection.callTool('change', { add: ['after'] })
  await soon(() => names(connection).includes('after'))
})

test('a connection that is closed while its subscription waits to be opened again opens none', async t => {
  const { connection, log } = await connected(t, MODERN)
  await connection.callTool('unsubscribe')
  await connection.close()
  await new Promise(resolve => setTimeout(resolve, 1_500))
  assert.equal(listens(log).length, 1)
})
