// What a definition may say: every rule, through the public functions.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { connectMcpServer, connectMcpServers, normalizeMcpServers } from '../index.mjs'
import { failure } from './support/fixture.mjs'
import {
  assertRefusal,
  base,
  CANARY,
  ENV,
  GITHUB_TOKEN,
  normalized,
  refused,
  texts,
} from './support/refusals.mjs'

test('an id is one to 64 small letters, digits and dashes, a letter first', async () => {
  for (const id of ['a', 'a1', 'a-', 'a--b', 'project-tools', 'a'.repeat(64)]) {
    assert.equal((await normalized({ id })).id, id)
  }
  const wrong = ['', 'A', '1a', '-a', 'a_b', 'a.b', 'a b', ' a', 'a ', 'a\n', 'ä', 'a'.repeat(65), 'ａ']
  for (const id of wrong) {
    assertRefusal(await refused({ id }), { path: 'servers[0].id', says: ['1 to 64', 'small letters'] })
  }
  assertRefusal(await failure(normalizeMcpServers([{ command: ['/x'] }])), {
    path: 'servers[0].id',
    says: ['is missing'],
  })
})

test('ids are unique in one call', async () => {
  const error = await failure(normalizeMcpServers([base, { ...base, id: 'other' }, { ...base }]))
  assertRefusal(error, { path: 'servers[2].id', says: ['notes', 'servers[0]', 'unique'] })
})

test('a call takes 0 to 8 definitions', async () => {
  const many = count => Array.from({ length: count }, (_, index) => ({ ...base, id: `s${index}` }))
  assert.deepEqual(await normalizeMcpServers([]), [])
  assert.equal((await normalizeMcpServers(many(8))).length, 8)
  for (const definitions of [many(9), new Array(9), many(8).concat([null])]) {
    for (const call of [normalizeMcpServers, connectMcpServers]) {
      const error = await failure(call(definitions))
      assert.equal(error.code, 'ERR_MCP_TOO_MANY_SERVERS')
      assert.deepEqual(error.details, { limit: 8, count: 9 })
    }
  }
  assertRefusal(await failure(connectMcpServers([])), { path: 'servers', says: ['1 to 8'] })
})

test('the program is an absolute path', { skip: process.platform === 'win32' }, async () => {
  for (const program of ['/', '/usr/bin/node', '/a b/ü', '//x', '/../x']) {
    assert.deepEqual((await normalized({ command: [program] })).command, [program])
  }
  for (const program of ['', 'node', './node', '../node', '~/node', 'C:\\node.exe', 'file:///x', ' /x']) {
    const error = await refused({ command: [program] })
    assertRefusal(error, { path: 'servers[0].command[0]', says: ['absolute path'] })
  }
  assertRefusal(await refused({ command: [] }), { path: 'servers[0].command', says: ['an empty array'] })
  assertRefusal(await refused({ command: undefined }), { path: 'servers[0].command', says: ['is missing'] })
})

test('arguments are any strings without NUL', async () => {
  const args = ['', ' ', '-', '--', '$HOME', '`id`', '"', "'", '\n', 'ü\u{1f600}', '*', 'a\tb']
  assert.deepEqual((await normalized({ command: ['/x', ...args] })).command, ['/x', ...args])
  for (const argument of ['\0', `${CANARY}\0`]) {
    const error = await refused({ command: ['/x', '', argument] })
    assertRefusal(error, { path: 'servers[0].command[2]', says: ['NUL'] })
  }
  const holed = ['/x', 'a', 'b']
  delete holed[1]
  assertRefusal(await refused({ command: holed }), { path: 'servers[0].command[1]', says: ['a hole'] })
  assertRefusal(await refused({ command: ['/x', undefined] }), { path: 'servers[0].command[1]' })
})

test('cwd is an absolute path without NUL', { skip: process.platform === 'win32' }, async () => {
  assert.equal((await normalized({ cwd: '/no/such/folder' })).cwd, '/no/such/folder')
  assert.equal('cwd' in (await normalized({ cwd: undefined })), false)
  for (const cwd of ['', '.', 'folder', '~', '/x\0', 'C:\\x']) {
    assertRefusal(await refused({ cwd }), { path: 'servers[0].cwd', says: ['absolute path'] })
  }
})

test('timeout is an integer from 1,000 to 300,000, by default 60,000', async () => {
  assert.equal((await normalized({})).timeout, 60_000)
  assert.equal((await normalized({ timeout: undefined })).timeout, 60_000)
  for (const timeout of [1_000, 1_001, 299_999, 300_000]) {
    assert.equal((await normalized({ timeout })).timeout, timeout)
  }
  const wrong = [0, -0, 1, 999, 999.999, 1_000.5, 300_001, 2 ** 31, 2 ** 53, Number.MAX_VALUE, -60_000]
  for (const timeout of wrong) {
    assertRefusal(await refused({ timeout }), { path: 'servers[0].timeout', says: ['1000 to 300000'] })
  }
})

test('variables have names of letters, digits and _, no digit first', async () => {
  for (const name of ['A', 'a', '_', '_1', 'FOO_BAR', 'constructor', 'toString', 'hasOwnProperty']) {
    assert.deepEqual((await normalized({ environment: { [name]: 'x' } })).environment, { [name]: 'x' })
    const options = { allowedInheritedEnvKeys: [name] }
    assert.deepEqual((await normalized({ inheritEnvironment: [name] }, options)).inheritEnvironment, [name])
  }
  const paths = {
    '1A': '["1A"]',
    '': '[""]',
    'A B': '["A B"]',
    'A-B': '["A-B"]',
    'A=B': '["A=B"]',
    Ä: '["Ä"]',
  }
  for (const [name, shown] of Object.entries(paths)) {
    assertRefusal(await refused({ environment: { [name]: CANARY } }), {
      path: `servers[0].environment${shown}`,
    })
    const error = await refused({ inheritEnvironment: [name] }, { allowedInheritedEnvKeys: ['A'] })
    assertRefusal(error, { path: 'servers[0].inheritEnvironment[0]' })
    assertRefusal(await failure(normalizeMcpServers([], { allowedInheritedEnvKeys: ['A', name] })), {
      code: 'ERR_MCP_INVALID_ARGUMENT',
      path: 'options.allowedInheritedEnvKeys[1]',
    })
  }
})

test('values of variables are strings without NUL; undefined counts as absent', async () => {
  const environment = { EMPTY: '', ODD: ' =\n"\u{1f600}', GONE: undefined }
  assert.deepEqual((await normalized({ environment })).environment, { EMPTY: '', ODD: ' =\n"\u{1f600}' })
  const error = await refused({ environment: { A: '', B: `${CANARY}\0` } })
  assertRefusal(error, { path: 'servers[0].environment.B', says: ['NUL'] })
})

test('a name is inherited only where the host allows it', async () => {
  const error = await refused(
    { inheritEnvironment: ['NOTES_TOKEN', 'NOTES_TOKNE'] },
    { allowedInheritedEnvKeys: ['NOTES_TOKEN'], env: { NOTES_TOKNE: CANARY } },
  )
  assertRefusal(error, {
    code: 'ERR_MCP_ENV_NOT_ALLOWED',
    path: 'servers[0].inheritEnvironment[1]',
    says: ['NOTES_TOKNE', 'options.allowedInheritedEnvKeys', 'NOTES_TOKEN'],
  })
  assert.equal(error.details.key, 'NOTES_TOKNE')
  assert.equal(error.serverId, 'notes')
  // Names are told apart by case, and the names of objects' own methods are not allowed by themselves.
  for (const name of ['notes_token', 'constructor', 'hasOwnProperty', 'PATH']) {
    const error = await refused({ inheritEnvironment: [name] }, { allowedInheritedEnvKeys: ['NOTES_TOKEN'] })
    assert.equal(error.code, 'ERR_MCP_ENV_NOT_ALLOWED', name)
  }
})

test('a secret where a name belongs is not shown', async () => {
  for (const [inherit, env] of [
    [GITHUB_TOKEN, {}],
    ['c4n4ryZq8wLm3xTv', { NOTES_TOKEN: 'c4n4ryZq8wLm3xTv' }],
  ]) {
    const error = await refused({ inheritEnvironment: [inherit] }, { env })
    assert.equal(error.code, 'ERR_MCP_ENV_NOT_ALLOWED')
    for (const text of texts(error)) assert.equal(text.includes(inherit), false, text)
  }
  for (const more of [
    { environment: { [GITHUB_TOKEN]: 1 } },
    { environment: { [`A=${GITHUB_TOKEN}`]: 'x' } },
    { [GITHUB_TOKEN]: 1 },
    { id: GITHUB_TOKEN },
    { tools: { [GITHUB_TOKEN]: 1 } },
  ]) {
    const error = await refused(more)
    for (const text of texts(error)) assert.equal(text.includes(GITHUB_TOKEN), false, text)
  }
})

test('a name in environment and in inheritEnvironment is refused', async () => {
  const error = await refused({ environment: { MODE: CANARY }, inheritEnvironment: ['MODE'] })
  assertRefusal(error, { path: 'servers[0].inheritEnvironment[0]', says: ['MODE', 'environment'] })
})

test('a capability is refused wherever it is written down, with the way out', async () => {
  const env = { ...ENV, DEPLOY_TOKEN: CANARY, SHORT_TOKEN: 'elevenchars', PLAIN: 'an ordinary long value' }
  const options = { env, allowedInheritedEnvKeys: ['NOTES_MODE'] }
  const cases = [
    [{ environment: { NOTES_MODE: CANARY } }, 'environment.NOTES_MODE', 'NOTES_MODE', 'allowed-key'],
    [{ environment: { GITHUB_TOKEN } }, 'environment.GITHUB_TOKEN', 'GITHUB_TOKEN', 'name'],
    [{ environment: { PGPASSWORD: 'x' } }, 'environment.PGPASSWORD', 'PGPASSWORD', 'name'],
    [{ environment: { pgpassword: 'x' } }, 'environment.pgpassword', 'pgpassword', 'name'],
    [{ environment: { HOLDER: GITHUB_TOKEN } }, 'environment.HOLDER', 'HOLDER', 'value'],
    [{ environment: { HOLDER: `Bearer ${CANARY}` } }, 'environment.HOLDER', 'HOLDER', 'value'],
    [{ environment: { DB: `postgres://u:${CANARY}@h/d` } }, 'environment.DB', 'DB', 'value'],
    [{ environment: { HOLDER: CANARY } }, 'environment.HOLDER', 'HOLDER', 'value'],
    [{ command: ['/x', GITHUB_TOKEN] }, 'command[1]', undefined, 'value'],
    [{ command: ['/x', `--token=${GITHUB_TOKEN}`] }, 'command[1]', undefined, 'value'],
    [{ command: ['/x', '-v', CANARY] }, 'command[2]', undefined, 'value'],
    [{ command: ['/x', `--key=${CANARY}`] }, 'command[1]', undefined, 'value'],
  ]
  for (const [more, path, key, why] of cases) {
    const error = await refused(more, options)
    assertRefusal(error, {
      code: 'ERR_MCP_CAPABILITY_IN_DEFINITION',
      path: `servers[0].${path}`,
      says: ['options.env', 'inheritEnvironment', 'options.allowedInheritedEnvKeys'],
    })
    assert.equal(error.details.why, why)
    assert.equal(error.details.key, key)
    assert.equal(error.serverId, 'notes')
  }
  const ordinary = {
    TOKENIZERS_PARALLELISM: 'false',
    MAX_TOKENS: '4096',
    TOKEN_URL: 'https://example.com/token',
    SECRETS_MANAGER_REGION: 'eu-central-1',
    SAME: 'elevenchars',
    PLAIN_TOO: 'an ordinary long value',
    KEYCLOAK_URL: 'https://user@example.com/',
  }
  assert.deepEqual((await normalized({ environment: ordinary }, options)).environment, ordinary)
})

test('an unknown property is refused with the nearest known one', async () => {
  const nearest = {
    Id: 'id',
    cmd: 'cwd',
    comand: 'command',
    env: undefined,
    inheritEnviroment: 'inheritEnvironment',
  }
  for (const [name, expected] of Object.entries(nearest)) {
    const error = await refused({ [name]: CANARY })
    assertRefusal(error, { path: `servers[0].${name}`, says: ['not a known property'] })
    if (expected !== undefined) assert.match(error.message, new RegExp(`nearest is ${expected}\\b`))
  }
  const tools = await refused({ tools: { includes: [CANARY] } })
  assertRefusal(tools, { path: 'servers[0].tools.includes', says: ['nearest is include,'] })
  const option = await failure(normalizeMcpServers([], { allowedInheritedEnvKey: [CANARY] }))
  assertRefusal(option, {
    code: 'ERR_MCP_INVALID_ARGUMENT',
    path: 'options.allowedInheritedEnvKey',
    says: ['allowedInheritedEnvKeys'],
  })
  // An unknown property that is undefined is absent.
  assert.deepEqual(await normalized({ comand: undefined }), await normalized({}))
})

test('the first fault in document order is the answer', async () => {
  const wrong = {
    id: 'notes',
    command: ['relative'],
    environment: { A: 1 },
    inheritEnvironment: ['1'],
    timeout: 1,
    cwd: 'x',
    tools: { include: 1 },
  }
  const mended = [
    ['command[0]', { command: ['/x'] }],
    ['environment.A', { environment: {} }],
    ['inheritEnvironment[0]', { inheritEnvironment: [] }],
    ['timeout', { timeout: 1_000 }],
    ['cwd', { cwd: '/x' }],
    ['tools.include', { tools: {} }],
  ]
  let definition = wrong
  for (const [path, cure] of mended) {
    // Written in another order, it is the same document.
    const reversed = Object.fromEntries(Object.entries(definition).reverse())
    for (const given of [definition, reversed]) {
      const error = await failure(normalizeMcpServers([base, { ...given, id: 'second' }, { id: 7 }]))
      assertRefusal(error, { path: `servers[1].${path}` })
    }
    definition = { ...definition, ...cure }
  }
  assert.equal((await normalizeMcpServers([definition])).length, 1)
  assertRefusal(await refused({ command: ['/x', 1, 2], environment: { B: 1, A: 2 } }), {
    path: 'servers[0].command[1]',
  })
  assertRefusal(await refused({ environment: { B: 1, A: 2 } }), { path: 'servers[0].environment.B' })
  // Options come before definitions.
  const error = await failure(normalizeMcpServers([{ id: 7 }], { connectTimeout: 0 }))
  assert.equal(error.details.path, 'options.connectTimeout')
})

test('the result is complete, frozen to the bottom, plain JSON, and stays the same when it is normalised again', async () => {
  const full = {
    id: 'full',
    command: ['/usr/bin/node', '/opt/server.js', ''],
    environment: { B: '2', A: 'ü', constructor: 'x' },
    inheritEnvironment: ['FULL_TOKEN', 'FULL_TOKEN', 'LANG'],
    timeout: 5_000,
    cwd: '/opt',
    tools: { include: ['b', 'a'], exclude: [] },
  }
  const options = { allowedInheritedEnvKeys: ['LANG', 'FULL_TOKEN'], env: { FULL_TOKEN: CANARY } }
  const result = await normalizeMcpServers([{ ...base }, full], options)
  assert.deepEqual(result, [
    { id: 'notes', command: base.command, environment: {}, inheritEnvironment: [], timeout: 60_000 },
    { ...full, inheritEnvironment: ['FULL_TOKEN', 'LANG'] },
  ])
  assert.deepEqual(Object.keys(result[1].environment), ['B', 'A', 'constructor'])
  assertDeepFrozen(result)
  assert.equal(Object.getPrototypeOf(result[0]), Object.prototype)
  assert.equal(JSON.stringify(result).includes(CANARY), false)
  assert.deepEqual(JSON.parse(JSON.stringify(result)), result)
  assert.deepEqual(structuredClone(result), result)
  const again = await normalizeMcpServers(result, options)
  assert.deepEqual(again, result)
  assert.equal(JSON.stringify(again), JSON.stringify(result))
  assert.deepEqual(await normalizeMcpServers(JSON.parse(JSON.stringify(result)), options), result)
})

function assertDeepFrozen(value) {
  if (typeof value !== 'object' || value === null) return
  assert.ok(Object.isFrozen(value), inspect(value))
  for (const key of Reflect.ownKeys(value)) assertDeepFrozen(value[key])
}

test("the caller's objects stay as they are, frozen or not, and are no part of the result", async () => {
  const make = () => ({
    definitions: [
      {
        id: 'notes',
        command: ['/x', 'a'],
        environment: { A: '1' },
        inheritEnvironment: ['B'],
        tools: { include: ['t'] },
        cwd: undefined,
      },
    ],
    options: { allowedInheritedEnvKeys: ['B'], env: { B: 'b', C: undefined } },
  })
  const given = make()
  const result = await normalizeMcpServers(given.definitions, given.options)
  assert.deepEqual(given, make())
  given.definitions[0].command.push('later')
  given.definitions[0].environment.A = 'later'
  assert.deepEqual(result[0].command, ['/x', 'a'])
  assert.deepEqual(result[0].environment, { A: '1' })
  const frozen = deepFrozen(make())
  assert.deepEqual(await normalizeMcpServers(frozen.definitions, frozen.options), result)
})

function deepFrozen(value) {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFrozen(inner)
  }
  return value
}

test('what a definition says is taken when the function is called; later changes do not count', async () => {
  const definition = { ...base, command: ['/no/such/program', 'a'] }
  const options = { env: { ...ENV } }
  const started = connectMcpServer(definition, options)
  const listed = normalizeMcpServers([definition], options)
  definition.command.length = 0
  definition.id = 7
  options.env = null
  const error = await failure(started)
  assert.deepEqual(
    [error.code, error.serverId, error.details.path],
    ['ERR_MCP_SPAWN', 'notes', '/no/such/program'],
  )
  assert.deepEqual((await listed)[0].command, ['/no/such/program', 'a'])
})

test('the connect functions refuse the same, before anything has started', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'workflow-mcp-definitions-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const witness = name => ({
    id: name,
    command: [
      process.execPath,
      '-e',
      `require('node:fs').writeFileSync(${JSON.stringify(join(folder, name))}, '')`,
    ],
  })
  const faults = [
    [{ command: ['node'] }, 'ERR_MCP_INVALID_DEFINITION', 'command[0]'],
    [{ timeout: 1 }, 'ERR_MCP_INVALID_DEFINITION', 'timeout'],
    [{ environment: { PGPASSWORD: CANARY } }, 'ERR_MCP_CAPABILITY_IN_DEFINITION', 'environment.PGPASSWORD'],
    [{ inheritEnvironment: ['HOME'] }, 'ERR_MCP_ENV_NOT_ALLOWED', 'inheritEnvironment[0]'],
    [{ comand: [] }, 'ERR_MCP_INVALID_DEFINITION', 'comand'],
  ]
  for (const [more, code, path] of faults) {
    const lone = await failure(connectMcpServer({ ...witness('lone'), ...more }))
    assertRefusal(lone, { code, path })
    for (const partial of [undefined, true]) {
      const given = [witness('first'), { ...witness('second'), ...more }]
      const error = await failure(connectMcpServers(given, { partial }))
      assertRefusal(error, { code, path: `servers[1].${path}` })
    }
  }
  assert.equal(
    (await failure(connectMcpServer(witness('lone'), { guard: true }))).code,
    'ERR_MCP_INVALID_ARGUMENT',
  )
  assert.deepEqual(readdirSync(folder), [])
  // The witnesses do testify where they are started.
  await failure(connectMcpServer(witness('started')))
  assert.ok(existsSync(join(folder, 'started')))
})
