// What JavaScript can pass for a definition and JSON cannot: values of every wrong kind, proxies, getters, prototypes, sheer size.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import vm from 'node:vm'
import { connectMcpServer, connectMcpServers, McpError, normalizeMcpServers } from '../index.mjs'
import { failure } from './support/fixture.mjs'
import { ARRAYS, KINDS, OBJECTS } from './support/odd-values.mjs'
import { assertRefusal, base, CANARY, ENV, normalized, refused, texts } from './support/refusals.mjs'

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
