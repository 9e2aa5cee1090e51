// The canary test for servers over HTTP: a secret in every place where a project may have one, a server that tells it
// wherever a server can write something. The secret is nowhere. Over stdio: canary.test.mjs; whatever fails before
// anything is sent: canary-projects.test.mjs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { failure } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { httpServer, json, MODERN } from './support/http-server.mjs'
import { answers, tellingServer } from './support/http-telltale.mjs'
import { clientOf, opened } from './support/project.mjs'
import { thrown } from './support/scripts.mjs'
import { allowed, assertNothingTold, PLACES, telling } from './support/secret-projects.mjs'
import { assertTold, SECRETS } from './support/secrets.mjs'

const { NOTES_TOKEN: TOKEN, NOTES_LABEL: LABEL } = SECRETS

/** The codes that came about. */
const seen = new Set()

for (const place of Object.keys(PLACES)) {
  for (const method of ['initialize', 'notifications/initialized', 'tools/list', 'tools/call']) {
    test(`a secret in ${place} is nowhere, however a server answers ${method}`, async t => {
      for (const answer of Object.keys(answers(['-']))) {
        const { client, project, heard } = await telling(t, place, { method, answer })
        const errors = []
        // Where there is nothing to see at once, the call's own end has to be seen.
        const timeout = answer === 'nothing' ? 150 : 5_000
        const ask = async () =>
          method === 'tools/list'
            ? await client.listTools({ timeout })
            : await client.call('echo', { text: 'hi' }, { timeout })
        await ask().then(
          // What a server answers to a notification need not matter.
          () => assert.ok(method === 'notifications/initialized' || answer === 'a flood', answer),
          error => errors.push(error),
        )
        for (const { code } of errors) seen.add(code)
        heard.push(inspect([client, project], { depth: 20, showHidden: true }))
        assertNothingTold(errors, heard)
      }
    })
  }

  test(`of a secret in ${place} progress says nothing, and the result says all, byte for byte`, async t => {
    for (const revision of [undefined, MODERN]) {
      const protocol = revision && 'modern'
      const { client, heard, told, forms } = await telling(t, place, { revision, protocol })
      const result = await client.call(
        'tell',
        { secret: TOKEN },
        { onProgress: progress => heard.push(progress) },
      )
      assert.deepEqual(result.content, [{ type: 'text', text: told }])
      assert.deepEqual(result.structuredContent, { forms })
      assert.ok(heard.some(({ progress }) => progress === 1))
      assertNothingTold([], heard)
      const shown = await client.call('echo', { text: told })
      assert.equal(shown.content[0].text, told)
      await assert.doesNotReject(client.listTools())
    }
  })
}

test('what is no secret is shown as the server says it', async t => {
  const ordinary = {
    ZONE: 'eu-central-1',
    STAGE: 'production',
    FOLDER: '/srv/notes/data',
    COUNT: '1234567890123',
  }
  const said = `no room for ${Object.values(ordinary).join(', ')}, and no index notes_by_day`
  const server = await httpServer(t, { 'tools/call': json(500, { error: said }) })
  const names = Object.keys(ordinary)
  const written = Object.fromEntries(names.map(name => [`X-${name}`, `\${${name}}`]))
  const given = async () => Object.fromEntries(names.map(name => [`X-${name}`, ordinary[name]]))
  for (const headers of [written, given]) {
    const options = { env: ordinary, allowedInheritedEnvKeys: names }
    const { client } = clientOf(t, server, { headers }, options)
    const { code, details } = await failure(client.call('echo'))
    assert.deepEqual([code, details.body], ['ERR_MCP_HTTP', JSON.stringify({ error: said })])
  }
})

test('a call that would block, a question that nobody answers, and a project that is closed tell nothing', async t => {
  const asks = { method: 'tools/call', revision: MODERN, protocol: 'modern' }
  const { told } = await tellingServer(t, [TOKEN])
  const question = {
    method: 'elicitation/create',
    params: { message: told, requestedSchema: { type: 'object' } },
  }
  const required = exchange =>
    exchange.result({ resultType: 'input_required', inputRequests: { [told]: question } })
  for (const place of Object.keys(PLACES)) {
    const asked = []
    const answered = async request => {
      asked.push(request)
      return request
    }
    for (const [onInputRequired, code] of [
      [undefined, 'INPUT_REQUIRED'],
      [answered, 'INPUT_REQUIRED'],
      [async () => undefined, 'INVALID_ARGUMENT'],
    ]) {
      const { client, server, project, heard } = await telling(t, place, {
        ...asks,
        answer: 'a text',
        onInputRequired,
      })
      server.answers['tools/call'] = required
      const errors = [await failure(client.call('echo', { text: told }))]
      assert.equal(errors[0].code, `ERR_MCP_${code}`, errors[0].message)
      if (place.startsWith('a function')) {
        // Another client, which would have to ask for its headers.
        const [integration] = PLACES[place](server.url)
        const { mcp } = opened(t, { server: integration }, allowed)
        errors.push(thrown(() => mcp('server').callSync('echo', { text: told })))
        assert.equal(errors[1].code, 'ERR_MCP_WOULD_BLOCK')
      }
      const pending = failure(client.call('slow', {}, { timeout: 5_000 }))
      await project.close()
      errors.push(await pending, await failure(client.call('echo', { text: told })))
      for (const { code } of errors) seen.add(code)
      assertNothingTold(errors, heard)
    }
    // What a server asks is for the person to read, as it is.
    assert.ok(
      asked.length > 0 && asked.every(({ inputRequests }) => inputRequests[told].params.message === told),
    )
  }
})

test('the process itself has nothing to say of the secrets of a project', async t => {
  const { server } = await tellingServer(t, [TOKEN, LABEL], { method: 'tools/call', answer: 'a text' })
  const [integration] = PLACES['a query'](server.url)
  const { stderr, code } = await host(
    `
    process.on('warning', warning => console.error(warning.stack))
    workflow.configureMcp(given.options)
    await workflow.mcpCall('server', 'echo').catch(error => console.error(error))
    // Not caught on purpose: Node prints the error.
    workflow.mcpCallSync('server', 'echo')`,
    { given: { options: { ...allowed, config: { mcpServers: { server: integration } } } } },
  ).ended
  assert.equal(code, 1, stderr)
  assert.match(stderr, /ERR_MCP_HTTP/)
  assertTold(stderr, ['NOTES_TOKEN', 'NOTES_LABEL'])
})

test('each code that servers over HTTP can bring about came about above', () => {
  for (const code of [
    'HTTP',
    'AUTH_REQUIRED',
    'CONNECT',
    'RPC',
    'INVALID_MESSAGE',
    'TIMEOUT',
    'CLOSED',
    'WOULD_BLOCK',
  ])
    assert.ok(seen.has(`ERR_MCP_${code}`), `${code} did not come about`)
})
