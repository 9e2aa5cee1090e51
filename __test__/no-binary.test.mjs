// What the package does where its binary is not, or is not what it should be; and where it is found.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as workflow from '../index.mjs'
import { failure } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

/** What `npm publish` would publish, in a folder of its own: there is no binary in it. */
function published(t) {
  const folder = mkdtempSync(join(tmpdir(), 'workflow-mcp-published-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
  })
  for (const { path: file } of JSON.parse(packed)[0].files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  return folder
}

test('without a binary the package loads, and every call that needs one rejects and says what was tried', async t => {
  const copy = createRequire(import.meta.url)(published(t))
  assert.deepEqual(Object.keys(copy).sort(), Object.keys(workflow).sort())
  const calls = [
    () => copy.normalizeMcpServers([]),
    () => copy.normalizeMcpServers('not even this'),
    () => copy.connectMcpServer({}),
    () => copy.connectMcpServers([]),
    () => copy.mcpCall('exa', 'x'),
    async () => copy.openMcpProject(),
    async () => copy.configureMcp({}),
    async () => copy.mcp('exa'),
    async () => copy.mcpCallSync('exa', 'x'),
  ]
  for (const call of calls) {
    const error = await failure(call())
    assert.ok(error instanceof copy.McpError)
    assert.ok(workflow.McpError.is(error), 'an error of another copy of the package is recognised')
    assert.equal(error.code, 'ERR_MCP_NATIVE_LOAD')
    const { platform, arch, libc, tried } = error.details
    assert.deepEqual([platform, arch], [process.platform, process.arch])
    if (process.platform === 'linux') assert.ok(['gnu', 'musl'].includes(libc))
    else assert.equal(libc, undefined)
    assert.ok(tried.length >= 2 && tried.every(attempt => typeof attempt === 'string'), String(tried))
    assert.ok(
      tried.some(attempt => attempt.includes(`workflow-mcp.${platform}-${arch}`)),
      String(tried),
    )
    assert.ok(error.message.includes(`${platform}-${arch}`) && error.message.includes('npm run build'))
    assert.ok(error.cause instanceof Error)
    assert.deepEqual(JSON.parse(JSON.stringify(error)).details, error.toJSON().details)
  }
})

test('a binary that cannot be loaded is named; one that has come since is loaded', async t => {
  const folder = published(t)
  const binary = await loadedBinary()
  const place = join(folder, binary.slice(root.length))
  writeFileSync(place, 'no library at all')
  const copy = createRequire(import.meta.url)(folder)
  const error = await failure(copy.normalizeMcpServers([]))
  assert.equal(error.code, 'ERR_MCP_NATIVE_LOAD')
  assert.ok(
    error.details.tried.some(attempt => attempt.includes(place)),
    String(error.details.tried),
  )
  rmSync(place)
  symlinkSync(binary, place)
  assert.deepEqual(await copy.normalizeMcpServers([]), [])
})

test('the binary of a package of its own is found, at once and by the generated loader', async t => {
  await workflow.normalizeMcpServers([])
  const folder = published(t)
  const binary = await loadedBinary()
  const file = binary.slice(root.length)
  const own = join(
    folder,
    'node_modules',
    file.replace(/\.node$/, '').replace('workflow-mcp.', 'workflow-mcp-'),
  )
  mkdirSync(own, { recursive: true })
  writeFileSync(join(own, 'package.json'), JSON.stringify({ main: file, version: '0.1.0' }))
  symlinkSync(binary, join(own, file))
  const loads = (env = {}) =>
    execFileSync(
      process.execPath,
      [
        '-e',
        `require(process.argv[1]).normalizeMcpServers([]).then(list => {
          console.log(list.length, Object.keys(require.cache).some(path => path.endsWith('binding.js')))
        })`,
        folder,
      ],
      { env: { ...process.env, ...env }, encoding: 'utf8' },
    ).trim()
  const { glibcVersionRuntime } = process.report.getReport().header
  // Only where there can be no doubt which C library it is.
  const atOnce = process.platform !== 'linux' || (glibcVersionRuntime && !hasMuslLoader())
  assert.equal(loads({ NAPI_RS_NATIVE_LIBRARY_PATH: '' }), `0 ${!atOnce}`)
  assert.equal(loads({ NAPI_RS_NATIVE_LIBRARY_PATH: binary }), '0 true')
})

test('where Node.js was told to load no addons, the error says so', async () => {
  const { ended } = host(
    `workflow.normalizeMcpServers([]).catch(({ code, message }) => say({ code, message }))`,
    { flags: ['--no-addons'] },
  )
  const { said, code, stderr } = await ended
  assert.equal(code, 0, stderr)
  assert.equal(said[0].code, 'ERR_MCP_NATIVE_LOAD')
  assert.match(said[0].message, /--no-addons/)
  assert.doesNotMatch(said[0].message, /npm run build/)
})

test('a process.dlopen that somebody has put another in the place of fails every call with a code, or does its work', async () => {
  const { ended } = host(`const { dlopen } = process
    const others = [
      () => { throw new Error('none') },
      () => {},
      module => { module.exports = { DispatcherHandle: class {} } },
      undefined,
      (...given) => dlopen.apply(process, given),
    ]
    for (const other of others) {
      process.dlopen = other
      await workflow.normalizeMcpServers([]).then(() => say('loaded'), ({ code }) => say(code))
    }`)
  const { said, code, stderr } = await ended
  assert.equal(code, 0, stderr)
  assert.deepEqual(said, [...Array(4).fill('ERR_MCP_NATIVE_LOAD'), 'loaded'])
})

/** The path of the binary that this process loads. */
async function loadedBinary() {
  await workflow.normalizeMcpServers([])
  const { sharedObjects } = process.report.getReport()
  const binary = sharedObjects.find(path => /workflow-mcp[^/\\]*\.node$/.test(path))
  assert.ok(binary, 'the binary is loaded')
  return binary
}

function hasMuslLoader() {
  return readdirSync('/lib').some(name => name.startsWith('ld-musl-'))
}
