// What a definition may say: every rule through the public functions, with the values JavaScript can hold and JSON cannot.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import vm from 'node:vm'
import { connectMcpServer, connectMcpServers, McpError, normalizeMcpServers } from '../index.mjs'
import { failure } from './support/fixture.mjs'

/** Stands wherever a secret could; no error may show it. */
const CANARY = 'c4n4ry-Zq8wLm3xTv'
const GITHUB_TOKEN = 'ghp_k3Jx9QmZ2vLw8RtY5bNc7HdF4sGp6TaE1uXo'
const ENV = { PATH: '/usr/bin:/bin', HOME: '/home/somebody' }

const base = Object.freeze({ id: 'notes', command: Object.freeze(['/usr/bin/notes', '--stdio']) })
const normalized = async (more, options) => (await normalizeMcpServers([{ ...base, ...more }], options))[0]
const refused = (more, options) => failure(normalizeMcpServers([{ ...base, ...more }], options))

/** Every text that an error can put into a log. */
function texts(error) {
  const shown = [error.message, error.stack, String(error), JSON.stringify(error)]
  return [...shown, inspect(error, { depth: 20, showHidden: true })]
}

function assertRefusal(error, { code = 'ERR_MCP_INVALID_DEFINITION', path, says = [] }) {
  assert.ok(error instanceof McpError, inspect(error))
  assert.equal(error.code, code, error.message)
  assert.equal(error.details.path, path, error.message)
  assert.ok(error.message.startsWith(`${path} `), error.message)
  assert.match(error.message, /^[^!\n]+$/)
  for (const part of says) assert.ok(error.message.includes(part), `${error.message} does not say: ${part}`)
  for (const text of texts(error)) {
    assert.equal(text.includes(CANARY), false, text)
    assert.equal(text.includes(GITHUB_TOKEN), false, text)
  }
}

function revoked(target) {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

/** A proxy all of whose traps throw. */
function hostile(target) {
  const trap = () => {
    throw new Error(CANARY)
  }
  return new Proxy(target, new Proxy({}, { get: () => trap }))
}

function cyclic() {
  const object = {}
  object.id = object
  object.command = object
  return object
}

/** Every kind of value there is, with the words by which a message calls it. */
const KINDS = [
  ['null', null, 'null'],
  ['true', true, 'a boolean'],
  ['a number with a fraction', 1.5, 'a number'],
  ['a negative number', -5, 'a number'],
  ['NaN', Number.NaN, 'NaN'],
  ['Infinity', Number.POSITIVE_INFINITY, 'an infinite number'],
  ['-Infinity', Number.NEGATIVE_INFINITY, 'an infinite number'],
  ['a BigInt', 10n, 'a bigint'],
  ['a symbol', Symbol(CANARY), 'a symbol'],
  ['a function', () => CANARY, 'a function'],
  ['a class', class Secret {}, 'a function'],
  ['a string with NUL', `/${CANARY}\0`, 'a string'],
  ['a string with half an emoji', `/${CANARY}\ud83d`, 'a string that is not well-formed Unicode'],
  ['a boxed string', Object(CANARY), 'a boxed primitive'],
  ['a boxed number', Object(1), 'a boxed primitive'],
  ['a Date', new Date(0), 'a Date'],
  ['a Date of another realm', vm.runInNewContext('new Date(0)'), 'a Date'],
  ['a RegExp', /x/, 'a RegExp'],
  ['a Map', new Map([['id', CANARY]]), 'a Map'],
  ['a Map of another realm', vm.runInNewContext('new Map()'), 'a Map'],
  ['a Set', new Set([CANARY]), 'a Set'],
  ['a WeakMap', new WeakMap(), 'a WeakMap'],
  ['a WeakSet', new WeakSet(), 'a WeakSet'],
  ['a Promise', Promise.resolve(CANARY), 'a Promise'],
  ['an Error', new Error(CANARY), 'an Error'],
  ['a generator', (function* values() {})(), 'an iterator'],
  ['an iterator', [CANARY].values(), 'an iterator'],
  ['Headers', new Headers({ id: CANARY }), 'a Headers'],
  ['a Uint8Array', new Uint8Array(2), 'a typed array'],
  ['a Float64Array', new Float64Array(2), 'a typed array'],
  ['a Buffer', Buffer.from(CANARY), 'a typed array'],
  ['a DataView', new DataView(new ArrayBuffer(2)), 'a typed array'],
  ['an ArrayBuffer', new ArrayBuffer(2), 'an ArrayBuffer'],
  ['a revoked proxy', revoked({}), 'throws'],
  ['a revoked proxy of an array', revoked([]), 'throws'],
  ['a proxy whose traps throw', hostile({}), 'throws'],
]

const OBJECTS = [
  ['a plain object', { key: CANARY }, 'an object'],
  ['a cyclic object', cyclic(), 'an object'],
  ['an object without prototype', Object.assign(Object.create(null), { key: CANARY }), 'an object'],
]

const ARRAYS = [
  ['an array', [CANARY], 'an array'],
  ['an array with a hole', new Array(1), 'an array'],
  ['an array of another realm', vm.runInNewContext('[1]'), 'an array'],
]

/** Where only a string, a number or a list may stand, and what stands there is neither. */
const PLACES = [
  { path: 'servers[0].id', with: value => ({ id: value }), wrong: [...KINDS, ...OBJECTS, ...ARRAYS] },
  { path: 'servers[0].command', with: value => ({ command: value }), wrong: [...KINDS, ...OBJECTS] },
  {
    path: 'servers[0].command[0]',
    with: value => ({ command: [value] }),
    wrong: [...KINDS, ...OBJECTS, ...ARRAYS],
  },
  {
    path: 'servers[0].command[1]',
    with: value => ({ command: ['/x', value] }),
    wrong: [...KINDS, ...OBJECTS, ...ARRAYS],
  },
  { path: 'servers[0].environment', with: value => ({ environment: value }), wrong: [...KINDS, ...ARRAYS] },
  {
    path: 'servers[0].environment.LEVEL',
    with: value => ({ environment: { LEVEL: value } }),
    wrong: [...KINDS, ...OBJECTS, ...ARRAYS],
  },
  {
    path: 'servers[0].inheritEnvironment',
    with: value => ({ inheritEnvironment: value }),
    wrong: [...KINDS, ...OBJECTS],
  },
  {
    path: 'servers[0].inheritEnvironment[0]',
    with: value => ({ inheritEnvironment: [value] }),
    wrong: [...KINDS, ...OBJECTS, ...ARRAYS],
  },
  {
    path: 'servers[0].timeout',
    with: value => ({ timeout: value }),
    wrong: [...KINDS, ...OBJECTS, ...ARRAYS, ['a string', '5000', 'a string']],
  },
  { path: 'servers[0].cwd', with: value => ({ cwd: value }), wrong: [...KINDS, ...OBJECTS, ...ARRAYS] },
  { path: 'servers[0].tools', with: value => ({ tools: value }), wrong: [...KINDS, ...ARRAYS] },
  {
    path: 'servers[0].tools.include',
    with: value => ({ tools: { include: value } }),
    wrong: [...KINDS, ...OBJECTS],
  },
  {
    path: 'servers[0].tools.exclude[0]',
    with: value => ({ tools: { exclude: [value] } }),
    wrong: [...KINDS, ...OBJECTS, ...ARRAYS],
  },
]

for (const place of PLACES) {
  test(`${place.path} refuses every value of a wrong kind, and says its kind but not the value`, async () => {
    for (const [name, value, kind] of place.wrong) {
      const error = await refused(place.with(value))
      assertRefusal(error, { path: place.path })
      // Numbers are told more precisely where a number is allowed.
      const isNumber = typeof value === 'number' && place.path.endsWith('timeout')
      const says = isNumber && Number.isFinite(value) ? 'a number' : kind
      assert.ok(error.message.includes(says), `${name}: ${error.message}`)
      assert.match(error.message, /allowed (is|are) /, name)
      assert.equal(typeof error.details.reason, 'string')
    }
  })
}

test('the list of definitions, and each definition, refuse every value of a wrong kind', async () => {
  for (const [name, value, kind] of [...KINDS, ...OBJECTS, ['undefined', undefined, 'missing']]) {
    const error = await failure(normalizeMcpServers(value))
    assertRefusal(error, { path: 'servers', says: [kind, 'an array of definitions'] })
    assert.ok(error.message.includes(kind), `${name}: ${error.message}`)
  }
  for (const [, value, kind] of [...KINDS, ...ARRAYS, ['undefined', undefined, 'undefined']]) {
    const error = await failure(normalizeMcpServers([value]))
    assertRefusal(error, { path: 'servers[0]', says: [kind, 'an object with id and command'] })
  }
  assertRefusal(await failure(normalizeMcpServers(new Array(1))), { path: 'servers[0]', says: ['a hole'] })
})

test('a lone definition is called by its own paths, without servers[0]', async () => {
  for (const [, value] of [...KINDS, ...ARRAYS, ['undefined', undefined]]) {
    assertRefusal(await failure(connectMcpServer(value)), { path: 'definition' })
    assertRefusal(await failure(connectMcpServer({ ...base, command: [value] })), { path: 'command[0]' })
    const error = await failure(connectMcpServer({ ...base, environment: { '1A': value ?? null } }))
    assertRefusal(error, { path: 'environment["1A"]' })
  }
})

test('whatever the functions are given, they return a promise and throw nothing', async () => {
  const everything = [...KINDS, ...OBJECTS, ...ARRAYS].map(([, value]) => value)
  for (const call of [normalizeMcpServers, connectMcpServer, connectMcpServers]) {
    for (const value of [...everything, undefined]) {
      for (const given of [
        [value, {}],
        [[value], {}],
        [[base], value === undefined ? null : value],
        [base, [value]],
        [[base], { env: value === undefined ? null : value }],
        [base, { signal: value === undefined ? null : value, env: ENV, connectTimeout: 0 }],
      ]) {
        const promise = call(...given)
        assert.ok(promise instanceof Promise)
        // An object serves as env; everything else is refused.
        const outcome = await promise.catch(error => error)
        if (Array.isArray(outcome)) continue
        assert.ok(McpError.is(outcome), inspect(outcome))
        for (const text of texts(outcome)) assert.equal(text.includes(CANARY), false, text)
      }
    }
    assert.ok(McpError.is(await failure(call())))
  }
})

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

test('a secret where the name of a variable belongs is not shown', async () => {
  for (const [inherit, env] of [
    [GITHUB_TOKEN, {}],
    ['c4n4ryZq8wLm3xTv', { NOTES_TOKEN: 'c4n4ryZq8wLm3xTv' }],
  ]) {
    const error = await refused({ inheritEnvironment: [inherit] }, { env })
    assert.equal(error.code, 'ERR_MCP_ENV_NOT_ALLOWED')
    for (const text of texts(error)) assert.equal(text.includes(inherit), false, text)
  }
  for (const environment of [{ [GITHUB_TOKEN]: 1 }, { [`A=${GITHUB_TOKEN}`]: 'x' }]) {
    const error = await refused({ environment })
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

test('own keys named __proto__ are refused, symbol keys and inherited properties do not count', async () => {
  const poisoned = JSON.parse(`{"id":"a","command":["/x"],"__proto__":{"cwd":"${CANARY}"}}`)
  assertRefusal(await failure(normalizeMcpServers([poisoned])), { path: 'servers[0].__proto__' })
  const environment = JSON.parse(`{"__proto__":"${CANARY}"}`)
  assertRefusal(await refused({ environment }), { path: 'servers[0].environment.__proto__' })
  const tools = JSON.parse('{"__proto__":["x"]}')
  assertRefusal(await refused({ tools }), { path: 'servers[0].tools.__proto__' })
  assertRefusal(await failure(normalizeMcpServers([], JSON.parse('{"__proto__":{"env":{}}}'))), {
    code: 'ERR_MCP_INVALID_ARGUMENT',
    path: 'options.__proto__',
  })
  assert.equal({}.cwd, undefined)

  assert.deepEqual(await normalized({ [Symbol('cwd')]: 1 }), await normalized({}))
  assertRefusal(await failure(normalizeMcpServers([Object.create(base)])), { path: 'servers[0].id' })
  const heir = Object.assign(Object.create({ timeout: 5_000, cwd: '/x' }), base)
  assert.deepEqual((await normalizeMcpServers([heir]))[0], await normalized({}))
  const hidden = Object.defineProperty({ ...base }, 'cwd', { value: '/x', enumerable: false })
  assert.equal('cwd' in (await normalizeMcpServers([hidden]))[0], false)
})

test('objects without prototype, instances with own properties, getters and proxies are read as they are', async () => {
  class Definition {
    id = 'notes'
    command = ['/usr/bin/notes', '--stdio']
  }
  const lazy = {
    get id() {
      return 'notes'
    },
    get command() {
      return base.command
    },
  }
  const bare = Object.assign(Object.create(null), base)
  const foreign = vm.runInNewContext('({ id: "notes", command: ["/usr/bin/notes", "--stdio"] })')
  const expected = await normalizeMcpServers([base])
  for (const definition of [new Definition(), lazy, bare, foreign, new Proxy({ ...base }, {})]) {
    assert.deepEqual(await normalizeMcpServers([definition]), expected)
  }
  assert.deepEqual(await normalizeMcpServers(new Proxy([base], {})), expected)
})

test('each property is read once', async () => {
  const reads = {}
  const counted = (target, path) =>
    new Proxy(target, {
      get(object, key, receiver) {
        if (typeof key === 'string' && key !== 'length')
          reads[`${path}.${key}`] = (reads[`${path}.${key}`] ?? 0) + 1
        return Reflect.get(object, key, receiver)
      },
    })
  const definition = {
    ...base,
    command: counted(['/x', 'a'], 'command'),
    environment: counted({ A: '1' }, 'env'),
  }
  await normalizeMcpServers([counted(definition, 'definition')])
  for (const [path, count] of Object.entries(reads)) assert.equal(count, 1, path)
  assert.equal(reads['definition.id'], 1)
})

test('getters that throw are faults in their place', async () => {
  const throwing = name =>
    Object.defineProperty({ ...base }, name, {
      enumerable: true,
      get() {
        throw new Error(CANARY)
      },
    })
  for (const name of ['id', 'command', 'environment', 'inheritEnvironment', 'timeout', 'cwd', 'tools']) {
    const error = await failure(normalizeMcpServers([throwing(name)]))
    assertRefusal(error, { path: `servers[0].${name}`, says: ['throws'] })
  }
  const list = ['/x', 'a']
  Object.defineProperty(list, 1, { get: () => assert.fail(CANARY) })
  assertRefusal(await refused({ command: list }), { path: 'servers[0].command[1]', says: ['throws'] })
  const options = Object.defineProperty({}, 'env', { enumerable: true, get: () => assert.fail(CANARY) })
  const error = await failure(normalizeMcpServers([], options))
  assertRefusal(error, { code: 'ERR_MCP_INVALID_ARGUMENT', path: 'options.env' })
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

test('long strings and long lists are judged in a time that grows no faster than they do', async () => {
  const many = Array.from({ length: 1e5 }, (_, index) => `NAME_${index}`)
  const fixed = Object.fromEntries(many.map(name => [name, 'x']))
  // With a time that grew with the square, each of these would take minutes.
  const right = [
    [{ command: ['/x', ...many] }],
    [{ command: ['/x', 'y'.repeat(5e6)] }],
    [{ environment: fixed }],
    [{ inheritEnvironment: many }, { allowedInheritedEnvKeys: many }],
    [{ tools: { include: many, exclude: many } }],
    [{ inheritEnvironment: many.slice(1) }, { allowedInheritedEnvKeys: many, env: fixed }],
  ]
  for (const [more, options] of right) assert.equal((await normalized(more, options)).id, 'notes')
  const huge = 'k'.repeat(1e6)
  const wrong = [
    [{ command: ['/x', ...many, 1] }, 'servers[0].command[100001]'],
    [{ command: new Array(1e5) }, 'servers[0].command[0]'],
    [{ id: huge }, 'servers[0].id'],
    [{ environment: { ...fixed, '': 'x' } }, 'servers[0].environment[""]'],
  ]
  for (const [more, path] of wrong) {
    const error = await refused(more)
    assertRefusal(error, { path })
    assert.ok(error.message.length < 500)
  }
  const error = await refused({ [huge]: 1 })
  assert.ok(error.message.length < 500, 'a name of a million letters is cut')
  const count = (await failure(normalizeMcpServers(many))).details.count
  assert.equal(count, 1e5)
})

test('a length that promises more than there is costs nothing', async () => {
  const sparse = ['/x']
  sparse.length = 2 ** 32 - 1
  const lying = length => new Proxy(['/x'], { get: (list, key) => (key === 'length' ? length : list[key]) })
  for (const command of [sparse, lying(2 ** 53 - 1), lying(Number.POSITIVE_INFINITY), lying(1e12)]) {
    assertRefusal(await refused({ command }), { path: 'servers[0].command', says: ['elements'] })
  }
  const throwing = lying({
    valueOf() {
      throw new Error(CANARY)
    },
  })
  assertRefusal(await refused({ command: throwing }), { path: 'servers[0].command', says: ['throws'] })
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
