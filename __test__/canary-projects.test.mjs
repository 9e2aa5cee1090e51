// The canary test for projects: whatever may be wrong with a configuration, a file, the way to a server, or a server
// that is a command. The secret is nowhere.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import * as workflow from '../index.mjs'
import { failure } from './support/fixture.mjs'
import { httpProxy } from './support/http-proxy.mjs'
import { tellingServer } from './support/http-telltale.mjs'
import { opened } from './support/project.mjs'
import { thrown } from './support/scripts.mjs'
import { allowed, assertNothingTold } from './support/secret-projects.mjs'
import { inheriting, LITERALS, SECRETS, telltale } from './support/secrets.mjs'

const { NOTES_TOKEN: TOKEN } = SECRETS

/** The errors of using a project in many wrong ways. */
async function errorsOf(
  t,
  integration,
  options = {},
  use = client => client.call('echo', { text: LITERALS.key }),
) {
  const heard = []
  const given = { ...allowed, onWarning: (...warning) => heard.push(warning), ...options }
  const errors = []
  try {
    const project = opened(t, { server: { timeout: 5_000, ...integration } }, given)
    await use(project.mcp('server'))
  } catch (error) {
    errors.push(error)
  }
  assert.equal(errors.length, 1, inspect(integration))
  assertNothingTold(errors, heard)
  return errors[0]
}

const A = 'https://a.example/mcp'
const header = (value, name = 'X-Api-Key') => ({ url: A, headers: { [name]: value } })

test('an integration that cannot be used is refused without its secrets', async t => {
  const { key } = LITERALS
  const stdio = { allowStdio: true }
  for (const [integration, code, options] of [
    [{ url: `ws://a.example/?key=${key}` }, 'CONFIG'],
    [{ url: key }, 'CONFIG'],
    [{ url: `https://notes:${key}@a.example/` }, 'CONFIG'],
    [{ url: `${A}?key=\${NOTES_TOKEN}#c4n4ry` }, 'CONFIG'],
    [{ url: `http://a.example/?api_key=\${NOTES_TOKEN}` }, 'CONFIG'],
    [{ url: `${A}?key=\${NOTES_TOKEN&key=${key}` }, 'CONFIG'],
    [{ url: `${A}?key=\${NOTES-TOKEN:-${key}}` }, 'CONFIG'],
    [{ url: `${A}?key=\${NOTES TOKEN=${key}}` }, 'CONFIG'],
    [{ url: [key] }, 'CONFIG'],
    [header(`\${NOTES_TOKEN}\n`), 'CONFIG'],
    [header('${NOTES_PEM}'), 'CONFIG'],
    [header(`${key}\0`), 'CONFIG'],
    [header([key]), 'CONFIG'],
    [header(key, 'Content-Type'), 'CONFIG'],
    [{ url: 'http://a.example', headers: { 'X-Api-Key': key } }, 'CONFIG'],
    [{ url: A, headers: { Authorization: key }, bearerTokenEnv: 'NOTES_TOKEN' }, 'CONFIG'],
    [{ url: A, bearerTokenEnv: 'NOTES_PEM' }, 'CONFIG'],
    [{ url: A, type: key }, 'CONFIG'],
    [{ url: A, protocol: key }, 'CONFIG'],
    [{ url: A, timeout: key }, 'CONFIG'],
    [header('${OTHER_TOKEN}'), 'ENV_NOT_ALLOWED'],
    [{ url: A, bearerTokenEnv: 'OTHER_TOKEN' }, 'ENV_NOT_ALLOWED'],
    [{ url: A, headers: async () => ({ 'X-Api-Key': `${key}\n` }) }, 'CONFIG'],
    [{ url: A, headers: async () => ({ 'X-Api-Key': [key] }) }, 'CONFIG'],
    [{ url: A, headers: async () => ({ Host: key }) }, 'CONFIG'],
    [{ url: A, headers: async () => key }, 'CONFIG'],
    [{ url: 'http://a.example', headers: async () => ({ 'X-Api-Key': key }) }, 'CONFIG'],
    [{ command: 'node', args: [key] }, 'SERVER_HAS_NO_URL'],
    [{ [key]: key }, 'SERVER_HAS_NO_URL'],
    [{ ...header(key), disabled: true }, 'SERVER_NOT_FOUND'],
    [{ command: `no-such-program --api-key ${key}` }, 'CONFIG', stdio],
    [{ command: `/no/such/program --api-key ${key}` }, 'SPAWN', stdio],
    [{ command: 'node', args: ['--api-key', [key]] }, 'CONFIG', stdio],
    [{ command: 'node', env: { API_KEY: [key] } }, 'CONFIG', stdio],
    [{ command: 'node', env: { API_KEY: `${key}\0` } }, 'CONFIG', stdio],
    [{ command: 'node', env: { API_KEY: `\${NOTES_TOKEN${key}` } }, 'CONFIG', stdio],
    [{ command: process.execPath, args: [key, '${NOTES_TOKEN}', 'x'.repeat(4 << 20)] }, 'SPAWN', stdio],
  ]) {
    const env = { ...inheriting.env, OTHER_TOKEN: TOKEN }
    const { code: is, message } = await errorsOf(t, integration, { ...options, env })
    assert.equal(is, `ERR_MCP_${code}`, `${message} ${inspect(integration)}`)
  }
})

test('a name that is a secret itself is not told, and neither are options', async t => {
  const project = opened(t, { server: { url: A } }, allowed)
  const errors = [
    ...Object.values(SECRETS).map(secret => thrown(() => project.mcp(secret))),
    thrown(() => workflow.openMcpProject({ ...allowed, allowedOrigins: [TOKEN] })),
    thrown(() => workflow.openMcpProject({ ...allowed, config: { mcpServers: [TOKEN] } })),
    thrown(() =>
      workflow.openMcpProject({ ...allowed, config: { mcpServers: { server: TOKEN } } }).mcp('server'),
    ),
    thrown(() => workflow.openMcpProject({ env: { NOTES_TOKEN: [TOKEN] } })),
    await failure(project.mcp('server').call('echo', [TOKEN])),
    await failure(project.mcp('server').call('echo', {}, { timeout: TOKEN })),
    await failure(project.mcp('server').call(7, { TOKEN })),
  ]
  assertNothingTold(errors)
  assert.deepEqual([...new Set(errors.map(({ code }) => code))].sort(), [
    'ERR_MCP_CONFIG',
    'ERR_MCP_INVALID_ARGUMENT',
    'ERR_MCP_SERVER_HAS_NO_URL',
    'ERR_MCP_SERVER_NOT_FOUND',
  ])
})

test('a project file is refused without anything of what stands in it', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'workflow-mcp-canary-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, '.mcp.json')
  const { key } = LITERALS
  for (const [text, code, options = { config: file }] of [
    [`{"mcpServers": {"server": {"headers": {"X-Api-Key": "${key}}`, 'CONFIG'],
    [`{"mcpServers": ${key}}`, 'CONFIG'],
    [`{"mcpServers": {"server": {"headers": {"X-Api-Key": '${key}'}}}}`, 'CONFIG'],
    [`{"mcpServers": {"server": "\\uc4n4ry ${key}"}}`, 'CONFIG'],
    [JSON.stringify(key), 'CONFIG'],
    [JSON.stringify({ mcpServers: [key] }), 'CONFIG'],
    [JSON.stringify({ mcpServers: { server: key } }), 'SERVER_HAS_NO_URL'],
    [JSON.stringify({ mcpServers: { server: header(`${key}\n`) } }), 'CONFIG'],
    [
      JSON.stringify({ mcpServers: { server: header('${NOTES_TOKEN}') } }),
      'ENV_NOT_ALLOWED',
      { from: folder },
    ],
    [
      JSON.stringify({
        mcpServers: { server: { url: 'https://${NOTES_TENANT}.example/?key=${NOTES_TOKEN}' } },
      }),
      'ENV_NOT_ALLOWED',
      { from: folder },
    ],
  ]) {
    writeFileSync(file, text)
    const use = async () => {
      const project = workflow.openMcpProject({ ...allowed, ...options })
      t.after(() => project.close())
      return await project.mcp('server').call('echo')
    }
    const error = await failure(use())
    assertNothingTold([error])
    assert.equal(error.code, `ERR_MCP_${code}`, text)
  }
})

test('a server that cannot be reached is told of without its secrets, those in its name and those of a proxy too', async t => {
  const proxy = await httpProxy(t, {}, { refusal: 407 })
  const at = (user, place = proxy.address) => ({
    ...inheriting.env,
    HTTP_PROXY: `http://${user}@${place}`,
    HTTPS_PROXY: `${user}@${place}`,
  })
  const user = `notes:${encodeURIComponent(LITERALS.password)}`
  const { url } = (await tellingServer(t, [])).server
  const nowhere = url.replace('127.0.0.1', '${NOTES_TENANT}.localhost').replace(/:\d+/, ':9')
  for (const [integration, options, code = 'CONNECT'] of [
    [{ url: nowhere, bearerTokenEnv: 'NOTES_TOKEN' }],
    [{ url: 'https://${NOTES_TENANT}.invalid/?key=${NOTES_TOKEN}' }],
    [{ url: url.replace('http:', 'https:'), bearerTokenEnv: 'NOTES_TOKEN' }],
    [{ url: A, bearerTokenEnv: 'NOTES_TOKEN' }, { env: at(user) }],
    [{ url: 'http://a.example' }, { env: at(user) }, 'HTTP'],
    [{ url: 'http://a.example' }, { env: at(LITERALS.key.replaceAll('/', '%2F')) }, 'HTTP'],
    [{ url: 'http://a.example' }, { env: at(user, '127.0.0.1:9') }],
    [{ url: 'http://a.example' }, { env: at(user, 'proxy.invalid') }],
    [{ url: A, headers: { 'X-Notes': '${NOTES_TOKEN}' } }, { env: at(user, '127.0.0.1:9') }],
    [{ url: A }, { env: { HTTPS_PROXY: `ftp://${user}@proxy.invalid:c4n4ry` } }],
  ]) {
    const error = await errorsOf(t, integration, options)
    assert.equal(error.code, `ERR_MCP_${code}`, error.message)
  }
  assert.ok(proxy.seen.length >= 3)
})

test('a server of a project that is a command tells nothing of its arguments and variables', async t => {
  const { command, inheritEnvironment } = telltale(
    'exit',
    'NOTES_KEY',
    '--token=${NOTES_TOKEN}',
    '--api-key',
    LITERALS.key,
  )
  const env = Object.fromEntries(inheritEnvironment.map(name => [name, `\${${name}}`]))
  for (const [when, code, use] of [
    ['exit', 'HANDSHAKE'],
    ['refuse', 'HANDSHAKE'],
    ['version', 'PROTOCOL_VERSION'],
    ['silent', 'TIMEOUT'],
    ['many', 'TOO_MANY_TOOLS', client => client.listTools()],
    ['endless', 'TOO_MANY_PAGES', client => client.listTools()],
    ['refuse-list', 'RPC', client => client.listTools()],
    ['serve', 'EXITED', client => client.call('tell', { where: 'noise', then: 'exit' })],
    ['serve', 'RPC', client => client.call('tell', { where: 'stderr', then: 'refuse' })],
    ['serve', 'INVALID_MESSAGE', client => client.call('tell', { where: 'log', then: 'unreadable' })],
  ]) {
    const [program, script, , ...words] = command
    const integration = {
      command: program,
      args: [script, when, ...words],
      env: { ...env, NOTES_KEY: LITERALS.key },
      timeout: when === 'silent' ? 2_000 : 20_000,
    }
    const error = await errorsOf(t, integration, { allowStdio: true }, use)
    assert.equal(error.code, `ERR_MCP_${code}`, error.message)
  }
})
