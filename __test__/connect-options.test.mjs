// What the options of a connect may say, which every function that takes definitions checks.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { connectMcpServer, connectMcpServers, normalizeMcpServers } from '../index.mjs'
import { failure } from './support/fixture.mjs'
import { ARRAYS, KINDS } from './support/odd-values.mjs'
import { assertRefusal, base, CANARY, normalized, refused } from './support/refusals.mjs'

test('process.env, proxies and objects with undefined entries serve as env', async () => {
  const options = env => ({ allowedInheritedEnvKeys: ['NOTES_TOKEN'], env })
  const seen = []
  const watched = new Proxy(
    { NOTES_TOKEN: CANARY },
    {
      get(target, key, receiver) {
        seen.push(key)
        return Reflect.get(target, key, receiver)
      },
    },
  )
  const bare = Object.assign(Object.create(null), {
    GONE: undefined,
    'ProgramFiles(x86)': 'x',
    '': 'x',
    '=C:': 'x',
  })
  for (const env of [process.env, watched, bare, { GONE: undefined }, { ...process.env }, undefined]) {
    assert.equal((await normalized({ inheritEnvironment: ['NOTES_TOKEN'] }, options(env))).id, 'notes')
  }
  assert.ok(seen.includes('NOTES_TOKEN'))
  const wrong = [...KINDS, ...ARRAYS]
  for (const [, env, kind] of wrong) {
    const error = await refused({}, { env })
    assertRefusal(error, { code: 'ERR_MCP_INVALID_ARGUMENT', path: 'options.env', says: [kind] })
  }
  for (const [, value, kind] of [...KINDS, ...ARRAYS]) {
    const error = await refused({}, { env: { A: 'x', NOTES_TOKEN: value } })
    assertRefusal(error, { code: 'ERR_MCP_INVALID_ARGUMENT', path: 'options.env.NOTES_TOKEN', says: [kind] })
  }
})

test('options that an object inherits do not count either', async () => {
  const inherited = {
    env: null,
    allowedInheritedEnvKeys: ['NOTES_TOKEN'],
    signal: AbortSignal.abort(new Error('inherited')),
    connectTimeout: 0,
    onClose: 1,
    partial: true,
  }
  const options = Object.create(inherited)
  assert.deepEqual(await normalizeMcpServers([base], options), await normalizeMcpServers([base]))
  const inherits = await refused({ inheritEnvironment: ['NOTES_TOKEN'] }, options)
  assert.equal(inherits.code, 'ERR_MCP_ENV_NOT_ALLOWED')
  const missing = { ...base, command: ['/no/such/program'] }
  assert.equal((await failure(connectMcpServer(missing, options))).code, 'ERR_MCP_SPAWN')
  assert.equal((await failure(connectMcpServers([missing], options))).code, 'ERR_MCP_SPAWN')
})

test('the options of a connect are checked here too', async () => {
  const { signal } = new AbortController()
  const right = [
    {},
    undefined,
    { signal, env: undefined, allowedInheritedEnvKeys: undefined },
    { connectTimeout: 1, protocol: 'modern', maxMessageBytes: 1024, guardian: false, shutdown: {} },
    { shutdown: { endOfInput: 0, terminate: 0 }, onStderr() {}, onLog() {}, onClose() {}, onWarning() {} },
    Object.freeze({ protocol: '2025-11-25', onToolsChanged: undefined }),
  ]
  for (const options of right) assert.equal((await normalizeMcpServers([base], options)).length, 1)
  const wrong = {
    allowedInheritedEnvKeys: ['A', null, {}, [1]],
    signal: [null, 1, true, 'x', () => {}],
    connectTimeout: [null, 0, -1, 0.5, '1000', Number.NaN, 2 ** 31],
    protocol: [null, 1, '', 'newest', '2025-11-24'],
    maxMessageBytes: [null, 0, 1023, 1024.5, 2 ** 30, '64MiB'],
    shutdown: [null, 1, [], { endOfInput: -1 }, { terminate: '1' }, { wait: 1 }],
    guardian: [null, 0, 'true'],
    partial: [true, null],
    onStderr: [null, 'x', {}],
    onLog: [null, 1],
    onToolsChanged: [null, 1],
    onWarning: [null, 1],
    onClose: [null, 1],
  }
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values) {
      const error = await failure(normalizeMcpServers([base], { [name]: value }))
      assert.equal(error.code, 'ERR_MCP_INVALID_ARGUMENT', `${name}: ${inspect(value)}`)
      assert.ok(error.details.path.startsWith(`options.${name}`), error.details.path)
    }
  }
  for (const [, options] of [...KINDS, ...ARRAYS]) {
    assertRefusal(await failure(normalizeMcpServers([], options)), {
      code: 'ERR_MCP_INVALID_ARGUMENT',
      path: 'options',
    })
  }
})
