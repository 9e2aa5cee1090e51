// Proxies and private authorities, as companies have them.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { authority } from './support/certificates.mjs'
import { failure } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { httpProxy } from './support/http-proxy.mjs'
import { httpServer } from './support/http-server.mjs'
import { clientOf, text } from './support/project.mjs'

const hi = { text: 'hi' }
// A name that nobody resolves (RFC 6761): whoever gets there went through the proxy.
const NAME = 'server.test'
const PASSWORD = 'pass-5f2c81d09e'

const port = server => Number(new URL(server.url).port)

/** A TLS server of a private authority, and the file with the authority's certificate. */
async function secure(t, ...hosts) {
  const own = authority()
  const folder = mkdtempSync(join(tmpdir(), 'workflow-mcp-ca-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'ca.pem')
  writeFileSync(file, own.certificate)
  return { server: await httpServer(t, {}, { tls: own.issue(...hosts) }), file }
}

/** One that nobody writes to. */
function fifo(t) {
  const folder = mkdtempSync(join(tmpdir(), 'workflow-mcp-fifo-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'ca.pem')
  execFileSync('mkfifo', [path])
  return path
}

test('a server with a private authority is reached with NODE_EXTRA_CA_CERTS', async t => {
  const { server, file } = await secure(t, '127.0.0.1')
  const { project, client } = clientOf(t, server, {}, { env: { NODE_EXTRA_CA_CERTS: file } })
  assert.equal(text(await client.call('echo', hi)), 'hi')
  await project.close()
  assert.equal(server.seen('DELETE').length, 1)
})

test('a file of several authorities is taken whole', async t => {
  const { server, file } = await secure(t, '127.0.0.1')
  const own = await secure(t, '127.0.0.1')
  writeFileSync(file, `# two\n${authority('Another').certificate}\n`, { flag: 'a' })
  const { client } = clientOf(t, server, {}, { env: { NODE_EXTRA_CA_CERTS: file } })
  assert.equal(text(await client.call('echo', hi)), 'hi')
  const other = clientOf(t, own.server, {}, { env: { NODE_EXTRA_CA_CERTS: file } })
  assert.equal((await failure(other.client.call('echo', hi))).code, 'ERR_MCP_CONNECT')
})

test('NODE_EXTRA_CA_CERTS of the process counts where the options do not say otherwise', async t => {
  const { server, file } = await secure(t, '127.0.0.1')
  const program = host(
    `
    const project = workflow.openMcpProject({ config: { mcpServers: { server: { url: given.url } } } })
    say(await project.mcp('server').call('echo', { text: 'hi' }))
    await project.close()`,
    { given: { url: server.url }, env: { ...process.env, NODE_EXTRA_CA_CERTS: file } },
  )
  const { code, said } = await program.ended
  assert.equal(code, 0)
  assert.equal(text(said[0]), 'hi')
})

for (const [what, path] of [
  ['a folder', tmpdir],
  ['a device', () => '/dev/zero'],
  ['a FIFO', t => fifo(t)],
]) {
  test(`NODE_EXTRA_CA_CERTS that names ${what} is a warning`, {
    skip: process.platform === 'win32',
  }, async t => {
    const { server } = await secure(t, '127.0.0.1')
    const warnings = []
    const options = { env: { NODE_EXTRA_CA_CERTS: path(t) }, onWarning: ({ code }) => warnings.push(code) }
    const { client } = clientOf(t, server, {}, options)
    assert.equal((await failure(client.call('echo', hi))).code, 'ERR_MCP_CONNECT')
    assert.deepEqual(warnings, ['WARN_MCP_EXTRA_CERTIFICATES'])
  })
}

for (const [what, hosts, env, cure] of [
  ['of an authority that nobody knows', ['127.0.0.1'], () => ({}), /NODE_EXTRA_CA_CERTS/],
  [
    'in spite of NODE_TLS_REJECT_UNAUTHORIZED',
    ['127.0.0.1'],
    () => ({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }),
    /NODE_EXTRA_CA_CERTS/,
  ],
  ['of another name', ['other.test'], file => ({ NODE_EXTRA_CA_CERTS: file }), /other\.test.*subjectAltName/],
]) {
  test(`a certificate ${what} is refused, and nothing is sent`, async t => {
    const { server, file } = await secure(t, ...hosts)
    const { client } = clientOf(t, server, { headers: { 'X-Api-Key': PASSWORD } }, { env: env(file) })
    const error = await failure(client.call('echo', hi))
    assert.equal(error.code, 'ERR_MCP_CONNECT')
    assert.match(error.message, /certificate/i)
    assert.match(error.message, cure)
    assert.equal(server.requests.length, 0)
  })
}

test('an authority that shows its own certificate is refused, with what helps', async t => {
  const own = authority('127.0.0.1')
  const server = await httpServer(t, {}, { tls: { key: own.key, cert: own.certificate } })
  const { client } = clientOf(t, server)
  const error = await failure(client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_CONNECT')
  assert.match(error.message, /authority \(CA:TRUE\).*CA:FALSE/)
})

test('plain HTTP where TLS is spoken, and the other way round, are errors', async t => {
  const { server } = await secure(t, '127.0.0.1')
  const plain = await httpServer(t)
  for (const [url, says] of [
    [server.url.replace('https', 'http'), /could not be reached/],
    [plain.url.replace('http', 'https'), /does not speak TLS.*http:/],
  ]) {
    const { client } = clientOf(t, { url })
    const error = await failure(client.call('echo', hi))
    assert.equal(error.code, 'ERR_MCP_CONNECT')
    assert.match(error.message, says)
  }
})

for (const variable of ['HTTP_PROXY', 'http_proxy']) {
  test(`plain requests go through the proxy of ${variable}`, async t => {
    const server = await httpServer(t)
    const proxy = await httpProxy(t, { [NAME]: port(server) })
    const env = { [variable]: `http://${proxy.address}` }
    const { project, client } = clientOf(t, { url: `http://${NAME}/mcp` }, {}, { env })
    assert.equal(text(await client.call('echo', hi)), 'hi')
    await project.close()
    assert.ok(proxy.seen.length >= 4)
    assert.equal(proxy.seen.length, server.requests.length)
  })
}

for (const variable of ['HTTPS_PROXY', 'https_proxy']) {
  test(`requests by TLS go through a tunnel of the proxy of ${variable}, which reads none of them`, async t => {
    const { server, file } = await secure(t, NAME)
    const proxy = await httpProxy(t, { [NAME]: port(server) })
    const env = { [variable]: `http://${proxy.address}`, NODE_EXTRA_CA_CERTS: file }
    const headers = { 'X-Api-Key': PASSWORD }
    const { client } = clientOf(t, { url: `https://${NAME}/mcp` }, { headers }, { env })
    assert.equal(text(await client.call('echo', hi)), 'hi')
    assert.ok(proxy.seen.length >= 1)
    for (const { method, target } of proxy.seen)
      assert.deepEqual([method, target], ['CONNECT', `${NAME}:443`])
    assert.ok(!JSON.stringify(proxy.seen).includes(PASSWORD))
  })
}

test('the user and password of a proxy go to the proxy, and into no error', async t => {
  const server = await httpServer(t)
  const proxy = await httpProxy(t, { [NAME]: port(server) })
  const refusing = await httpProxy(t, {}, { refusal: 407 })
  const env = address => ({ HTTP_PROXY: `http://me:${PASSWORD}@${address}` })
  const url = `http://${NAME}/mcp`
  await clientOf(t, { url }, {}, { env: env(proxy.address) }).client.call('echo', hi)
  const credentials = `Basic ${Buffer.from(`me:${PASSWORD}`).toString('base64')}`
  for (const { headers } of proxy.seen) assert.equal(headers['proxy-authorization'], credentials)

  const { client } = clientOf(t, { url }, {}, { env: env(refusing.address) })
  const error = await failure(client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_HTTP')
  // Although the proxy says it again.
  assert.match(error.details.body, /^Basic \S*«HTTP_PROXY»$/)
  const shown = JSON.stringify(error) + error.stack
  assert.ok(!shown.includes(PASSWORD) && !shown.includes(credentials))
})

test('a tunnel that is refused is an error', async t => {
  const proxy = await httpProxy(t, {}, { refusal: 403 })
  const env = { HTTPS_PROXY: `http://${proxy.address}` }
  const { client } = clientOf(t, { url: `https://${NAME}/mcp` }, {}, { env })
  assert.equal((await failure(client.call('echo', hi))).code, 'ERR_MCP_CONNECT')
  assert.ok(proxy.seen.length >= 1)
})

for (const [exceptions, excepted] of [
  [NAME, true],
  ['.test', true],
  ['test', true],
  [`other.test, ${NAME}`, true],
  ['*', true],
  ['*.test', true],
  [`${NAME}:80`, true],
  [`${NAME}:8080`, false],
  [`other.test ${NAME}`, true],
  ['other.test', false],
  ['er.test', false],
]) {
  test(`NO_PROXY=${exceptions} ${excepted ? 'leads past the proxy' : 'does not concern the server'}`, async t => {
    const server = await httpServer(t)
    const proxy = await httpProxy(t, { [NAME]: port(server) })
    const env = { HTTP_PROXY: `http://${proxy.address}`, NO_PROXY: exceptions }
    const { client } = clientOf(t, { url: `http://${NAME}/mcp` }, {}, { env })
    if (excepted) {
      // Past the proxy, nobody knows the name.
      assert.equal((await failure(client.call('echo', hi))).code, 'ERR_MCP_CONNECT')
      assert.equal(proxy.seen.length, 0)
    } else {
      assert.equal(text(await client.call('echo', hi)), 'hi')
    }
  })
}

test('what is for this machine goes to no proxy, whatever a resolver says of its name', async t => {
  const server = await httpServer(t)
  const proxy = await httpProxy(t, {})
  const env = { HTTP_PROXY: `http://${proxy.address}`, TOKEN: PASSWORD }
  const more = { headers: { Authorization: 'Bearer ${TOKEN}' } }
  // In clear, which is allowed because it does not leave this machine.
  for (const name of ['127.0.0.1', 'localhost', 'sub.localhost']) {
    const url = `http://${name}:${port(server)}/mcp`
    const { client } = clientOf(t, { url }, more, { env, allowedInheritedEnvKeys: ['TOKEN'] })
    assert.equal(text(await client.call('echo', hi)), 'hi')
  }
  assert.equal(proxy.seen.length, 0)
})

for (const address of [
  'ftp://proxy.test',
  'socks5://proxy.test:1080',
  'ht!tp://::::',
  '%%%',
  `http://me:${PASSWORD}@a b`,
]) {
  test(`a proxy that cannot be used (${address.split('@')[0]}) is an error, and nothing goes past it`, async t => {
    const { client } = clientOf(t, { url: `http://${NAME}/mcp` }, {}, { env: { HTTP_PROXY: address } })
    const error = await failure(client.call('echo', hi))
    assert.equal(error.code, 'ERR_MCP_CONNECT')
    assert.match(error.message, /The proxy that HTTP_PROXY names/)
    assert.ok(!JSON.stringify([error, error.message]).includes(PASSWORD))
  })
}

test('a proxy of the process does not count where the options name the environment', async t => {
  const server = await httpServer(t)
  const proxy = await httpProxy(t, { [NAME]: port(server) })
  const program = host(
    `
    for (const more of [{}, { env: {} }]) {
      const project = workflow.openMcpProject({ config: { mcpServers: { server: { url: given.url } } }, ...more })
      say(await project.mcp('server').call('echo', { text: 'hi' }).then(() => 'reached', error => error.code))
      await project.close()
    }`,
    {
      given: { url: `http://${NAME}/mcp` },
      env: { ...process.env, HTTP_PROXY: `http://${proxy.address}`, NO_PROXY: '', no_proxy: '' },
    },
  )
  const { code, said } = await program.ended
  assert.deepEqual([code, said], [0, ['reached', 'ERR_MCP_CONNECT']])
})

test('a proxy that is not there is an error that names it', async t => {
  const server = await httpServer(t)
  const { host: gone } = new URL(server.url)
  await server.stop()
  const { client } = clientOf(t, { url: `http://${NAME}/mcp` }, {}, { env: { HTTP_PROXY: `http://${gone}` } })
  const error = await failure(client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_CONNECT')
  assert.ok(error.message.includes(gone), error.message)
})

test('a name that nobody resolves is an error that names it', async t => {
  const { client } = clientOf(t, { url: `http://${NAME}/mcp` }, {}, { env: {} })
  const error = await failure(client.call('echo', hi))
  assert.equal(error.code, 'ERR_MCP_CONNECT')
  assert.ok(error.message.includes(NAME), error.message)
})
