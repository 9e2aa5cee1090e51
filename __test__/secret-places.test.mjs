// Where a secret is, and where it is not: with the server that inherits it, and with nobody else.

import assert from 'node:assert/strict'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { connectMcpServer, connectMcpServers } from '../index.mjs'
import { failure, fixture, SERVER, soon } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'

const linux = { skip: process.platform !== 'linux' && 'reads /proc' }
const posix = { skip: process.platform === 'win32' }
const SECRET = 'c4n4ry-Zq8wLm3xTv-of-the-notes'

/** What /proc shows of every process that may be read: its command line and its environment. */
function processes() {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return pids.flatMap(pid => {
    try {
      const [command, environment] = ['cmdline', 'environ'].map(file =>
        readFileSync(`/proc/${pid}/${file}`, 'latin1'),
      )
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      return [
        {
          pid: Number(pid),
          parent: Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]),
          command,
          environment,
        },
      ]
    } catch {
      // It has ended, or is another user's.
      return []
    }
  })
}

function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'workflow-mcp-places-'))
  t.after(() => rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 }))
  return path
}

test(
  'an inherited secret is in the environment of its own server and of no other process, and on no command line (BR-65)',
  linux,
  async t => {
    const { definition } = fixture()
    const group = await connectMcpServers(
      [
        { ...definition, id: 'has-it', inheritEnvironment: ['NOTES_TOKEN'] },
        { ...definition, id: 'has-not' },
      ],
      { env: { PATH: process.env.PATH, NOTES_TOKEN: SECRET }, allowedInheritedEnvKeys: ['NOTES_TOKEN'] },
    )
    t.after(() => group.close())
    const owner = group.get('has-it').pid
    const guardian = await soon(
      () =>
        processes().find(
          ({ parent, command }) => parent === process.pid && command.includes('workflow-mcp-guardian'),
        ),
      'the guardian',
    )
    assert.equal(guardian.environment, '')
    const all = processes()
    assert.ok(all.some(({ pid }) => pid === group.get('has-not').pid))
    assert.deepEqual(
      all.filter(({ environment }) => environment.includes(SECRET)).map(({ pid }) => pid),
      [owner],
    )
    assert.deepEqual(
      all.filter(({ command }) => command.includes(SECRET)).map(({ pid }) => pid),
      [],
    )
  },
)

test(
  'the package writes no file: neither in the temporary folder nor in that of the user or of the program',
  linux,
  async t => {
    const path = folder(t)
    const places = Object.fromEntries(['tmp', 'home', 'work'].map(name => [name, join(path, name)]))
    for (const place of Object.values(places)) mkdirSync(place)
    const command = [process.execPath, SERVER]
    const { said, code, stderr } = await host(
      `
    import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
    process.chdir(given.places.work)
    const definition = { id: 'notes', command: given.command, inheritEnvironment: ['NOTES_TOKEN'] }
    const options = { allowedInheritedEnvKeys: ['NOTES_TOKEN'] }
    const connection = await workflow.connectMcpServer(definition, options)
    await connection.callTool('big', { bytes: 5 << 20 })
    await workflow.connectMcpServer({ ...definition, command: [...given.command, '--exit-at', 'start:3'] }, options).catch(() => {})
    const files = readdirSync('/proc/self/fd').flatMap(fd => {
      try {
        return [readlinkSync('/proc/self/fd/' + fd)]
      } catch {
        return []
      }
    })
    say(files.filter(file => file.startsWith('/') && !file.startsWith('/dev/') && !file.startsWith('/proc/')))
    say(files.filter(file => file.startsWith('/memfd:')))
    await connection.close()
    `,
      {
        given: { places, command },
        env: { PATH: process.env.PATH, TMPDIR: places.tmp, HOME: places.home, NOTES_TOKEN: SECRET },
      },
    ).ended
    assert.equal(code, 0, stderr)
    assert.deepEqual(said, [[], []])
    for (const place of Object.values(places)) assert.deepEqual(readdirSync(place), [], place)
  },
)

test('each start sees the same variables, with the values that options.env has then (BR-66)', async () => {
  const { definition } = fixture([], { environment: { MODE: 'quiet' }, inheritEnvironment: ['NOTES_TOKEN'] })
  const env = { PATH: '/usr/bin:/bin', NOTES_TOKEN: `${SECRET}-1` }
  const options = { env, allowedInheritedEnvKeys: ['NOTES_TOKEN'] }
  const seen = []
  for (const how of ['close', 'crash', 'close']) {
    const connection = await connectMcpServer(definition, options)
    const { env: variables } = (await connection.callTool('about')).structuredContent
    delete variables.__CF_USER_TEXT_ENCODING
    seen.push(variables)
    if (how === 'crash') await failure(connection.callTool('leave', { how: 'SIGKILL' }))
    else await connection.close()
    env.NOTES_TOKEN = `${SECRET}-${seen.length + 1}`
    env.OTHER_TOKEN = SECRET
  }
  const expected = number => ({ PATH: '/usr/bin:/bin', MODE: 'quiet', NOTES_TOKEN: `${SECRET}-${number}` })
  assert.deepEqual(seen, [1, 2, 3].map(expected))
})

test('a change of options.env after the call to connect is not seen by the server', async t => {
  const env = { NOTES_TOKEN: SECRET }
  const connecting = connectMcpServer(fixture([], { inheritEnvironment: ['NOTES_TOKEN'] }).definition, {
    env,
    allowedInheritedEnvKeys: ['NOTES_TOKEN'],
  })
  env.NOTES_TOKEN = 'changed'
  const connection = await connecting
  t.after(() => connection.close())
  assert.equal((await connection.callTool('about')).structuredContent.env.NOTES_TOKEN, SECRET)
})

test('a proxy, an object without a prototype and process.env give a server the same variables', async t => {
  const variables = { PATH: '/usr/bin:/bin', NOTES_TOKEN: SECRET, 'ProgramFiles(x86)': 'x', GONE: undefined }
  const before = process.env.NOTES_TOKEN
  t.after(() => {
    if (before === undefined) delete process.env.NOTES_TOKEN
    else process.env.NOTES_TOKEN = before
  })
  process.env.NOTES_TOKEN = SECRET
  const proxy = new Proxy(variables, { get: (target, key) => target[key] })
  const bare = Object.assign(Object.create(null), variables)
  for (const env of [variables, proxy, bare, process.env]) {
    const { definition } = fixture([], { inheritEnvironment: ['NOTES_TOKEN'] })
    const connection = await connectMcpServer(definition, { env, allowedInheritedEnvKeys: ['NOTES_TOKEN'] })
    const seen = (await connection.callTool('about')).structuredContent.env
    await connection.close()
    assert.equal(seen.NOTES_TOKEN, SECRET)
    assert.equal(seen.PATH, env.PATH)
    assert.equal('GONE' in seen || 'ProgramFiles(x86)' in seen, false)
  }
})

test(
  'a script finds its interpreter in the PATH of options.env, and without it the error says where was looked (BR-63, BR-64)',
  posix,
  async t => {
    const path = folder(t)
    symlinkSync(process.execPath, join(path, 'notes-runtime'))
    const script = join(path, 'server')
    writeFileSync(script, `#!/usr/bin/env notes-runtime\nimport(${JSON.stringify(SERVER)})\n`)
    chmodSync(script, 0o755)
    const definition = { id: 'notes', command: [script], timeout: 30_000 }
    const bare = '/usr/bin:/bin'
    const full = `${path}:${bare}`
    for (const [more, options] of [
      [{}, { env: { PATH: full } }],
      [{ environment: { PATH: full } }, { env: { PATH: bare } }],
      [{ inheritEnvironment: ['PATH'] }, { env: { PATH: full }, allowedInheritedEnvKeys: ['PATH'] }],
    ]) {
      const connection = await connectMcpServer({ ...definition, ...more }, options)
      assert.equal((await connection.callTool('about')).structuredContent.env.PATH, full)
      await connection.close()
    }
    const error = await failure(connectMcpServer(definition, { env: { PATH: bare } }))
    assert.equal(error.code, 'ERR_MCP_HANDSHAKE')
    assert.equal(error.details.exitCode, 127)
    assert.equal(error.details.searchPath, bare)
    assert.match(error.message, /notes-runtime/)
  },
)

test('nothing is expanded in a definition: placeholders arrive as they are written (BR-67)', async t => {
  const environment = { A: `\${NOPE}`, B: '$HOME', C: '%PATH%', D: `\${NOPE:-x}`, E: '~/x', F: '`id`' }
  const words = [`\${NOPE}`, '$HOME', '%PATH%', '*', '~', '$(id)']
  const { definition } = fixture()
  const command = [...definition.command, ...words.map(word => `--noise=${word}`)]
  const connection = await connectMcpServer(
    { ...definition, command, environment },
    { env: { HOME: '/root' } },
  )
  t.after(() => connection.close())
  const { env } = (await connection.callTool('about')).structuredContent
  for (const [name, value] of Object.entries(environment)) assert.equal(env[name], value)
  assert.deepEqual(connection.diagnostics().skippedLineSamples, words)
})
