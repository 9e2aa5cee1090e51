// One secret, every failure that this package can produce, every surface on which something of it can be seen. With servers over HTTP,
// and in projects: canary-http.test.mjs, canary-projects.test.mjs.
//
// The secret is in variables that the server inherits, in an argument of its command and in a variable that the definition fixes;
// the server tells what it was handed wherever a server can write something (tests/fixtures/telltale.mjs).

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { connectMcpServer, connectMcpServers, createMcpTools, normalizeMcpServers } from '../index.mjs'
import { failure } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import {
  assertErrorTellsNothing,
  assertTold,
  CODES_OF_PROJECTS,
  inheriting,
  SECRETS,
  telltale,
} from './support/secrets.mjs'

const { MCP_ERROR_CODES } = createRequire(import.meta.url)('../lib/errors.js')

const [TOKEN] = Object.values(SECRETS)
/** What stands in the command line and in the fixed variables; no format and no equality gives it away. */
const HIDDEN = 'hidden c4n4ry, 34 characters of it'

const definition = when => ({ ...telltale(when, HIDDEN), environment: { GREETING: HIDDEN } })

/** Everything that can be heard of a server. */
function listening(heard) {
  const hear = (...what) => heard.push(what)
  return { onStderr: hear, onLog: hear, onWarning: hear, onToolsChanged: () => {}, onClose: hear }
}

/** A start that fails. */
const start = (when, options) => heard =>
  failure(connectMcpServer(definition(when), { ...inheriting, ...listening(heard), ...options }))

/** A definition or options that are wrong, wherever they are judged. */
const judged = (more, options) => async () => {
  const wrong = { ...definition('serve'), ...more }
  const errors = [
    await failure(normalizeMcpServers([wrong], { ...inheriting, ...options })),
    await failure(connectMcpServer(wrong, { ...inheriting, ...options })),
    await failure(connectMcpServers([wrong], { ...inheriting, ...options })),
  ]
  return errors
}

/** A call that fails, after the server has told all in every other place, and what the connection then shows. */
const call =
  (then, { args, options, more } = {}) =>
  async heard => {
    const connection = await connectMcpServer(definition('serve'), {
      ...inheriting,
      ...listening(heard),
      ...more,
    })
    const onProgress = progress => heard.push([progress])
    for (const where of ['stderr', 'split', 'log', 'noise', 'progress', 'escaped progress']) {
      await connection.callTool('tell', { where }, { onProgress })
    }
    const asked = args ?? { where: 'stderr', then }
    const errors = [await failure(connection.callTool('tell', asked, { onProgress, ...options }))]
    if (then === 'exit') {
      errors.push(await failure(connection.callTool('tell', asked)))
    } else if (args === undefined && options === undefined) {
      const [tell] = (await createMcpTools({ connection })).filter(
        ({ metadata }) => metadata.toolName === 'tell',
      )
      errors.push(await failure(tell.execute(asked)), await failure(tell.invoke({}, JSON.stringify(asked))))
    }
    heard.push([
      connection.stderr(),
      connection.diagnostics(),
      inspect(connection, { depth: 20, showHidden: true }),
    ])
    // There was something to hide.
    assertTold(inspect(heard, { depth: 30, maxStringLength: null, maxArrayLength: null }), ['NOTES_TOKEN'])
    await connection.close()
    return errors
  }

/** By code: what makes it happen, with all that it told meanwhile in `heard`. */
const FAILURES = {
  ERR_MCP_INVALID_DEFINITION: [
    judged({ timeout: HIDDEN }),
    judged({ cwd: HIDDEN }),
    judged({ command: [HIDDEN] }),
    judged({ command: [process.execPath, { HIDDEN }] }),
    judged({ environment: { GREETING: `${HIDDEN}\0` } }),
    judged({ environment: { GREETING: [HIDDEN] } }),
  ],
  ERR_MCP_CAPABILITY_IN_DEFINITION: [
    judged({ environment: { NOTES_TOKEN: HIDDEN } }),
    judged({ environment: { GREETING: TOKEN } }),
    judged({ environment: { ACME_TOKEN: HIDDEN } }),
    judged({ environment: { DATABASE: SECRETS.NOTES_DATABASE } }),
    judged({ command: [process.execPath, SECRETS.NOTES_PEM] }),
    judged({ command: [process.execPath, `--token=${TOKEN}`] }),
  ],
  ERR_MCP_ENV_NOT_ALLOWED: [judged({}, { allowedInheritedEnvKeys: ['NOTES_TOKEN'] })],
  ERR_MCP_TOO_MANY_SERVERS: [
    async () => {
      const nine = Array.from({ length: 9 }, (_, index) => ({ ...definition('serve'), id: `s${index}` }))
      return failure(connectMcpServers(nine, inheriting))
    },
  ],
  ERR_MCP_TOO_MANY_TOOLS: [start('many')],
  ERR_MCP_TOO_MANY_PAGES: [start('endless')],
  ERR_MCP_SPAWN: [
    () =>
      failure(
        connectMcpServer({ ...definition('serve'), command: ['/nonexistent/notes', HIDDEN] }, inheriting),
      ),
    () => failure(connectMcpServer({ ...definition('serve'), cwd: '/nonexistent' }, inheriting)),
    () =>
      failure(
        connectMcpServer(
          { ...definition('serve'), command: [process.execPath, HIDDEN, 'x'.repeat(4 << 20)] },
          inheriting,
        ),
      ),
  ],
  ERR_MCP_HANDSHAKE: ['refuse', 'exit', 'unreadable', 'exit-list'].map(when => start(when)),
  ERR_MCP_PROTOCOL_VERSION: [start('version'), start('serve', { protocol: 'modern' })],
  ERR_MCP_TIMEOUT: [
    start('silent', { connectTimeout: 2_000 }),
    start('silent-list', { connectTimeout: 2_000 }),
    call('wait', { options: { timeout: 50 } }),
  ],
  ERR_MCP_EXITED: [call('exit')],
  ERR_MCP_CLOSED: [
    async heard => {
      const connection = await connectMcpServer(definition('serve'), { ...inheriting, ...listening(heard) })
      const pending = failure(connection.callTool('tell', { where: 'stderr', then: 'wait' }))
      await connection.close()
      return [await pending, await failure(connection.callTool('tell', { where: TOKEN }))]
    },
  ],
  ERR_MCP_TOOL_NOT_FOUND: [
    async heard => {
      const connection = await connectMcpServer(definition('serve'), { ...inheriting, ...listening(heard) })
      const errors = []
      for (const secret of Object.values(SECRETS)) {
        errors.push(await failure(connection.callTool(secret, { text: HIDDEN })))
      }
      await connection.close()
      return errors
    },
  ],
  ERR_MCP_RPC: [start('refuse-list'), call('refuse')],
  ERR_MCP_INVALID_MESSAGE: [start('unreadable-list'), call('unreadable')],
  ERR_MCP_MESSAGE_TOO_LARGE: [call('flood', { more: { maxMessageBytes: 30_000 } })],
  ERR_MCP_INPUT_REQUIRED: [call('ask')],
  ERR_MCP_INVALID_ARGUMENT: [
    call('', { args: [HIDDEN] }),
    call('', { args: { text: HIDDEN, big: 1n } }),
    call('', { args: {}, options: { timeout: HIDDEN } }),
    judged({}, { connectTimeout: HIDDEN }),
    judged({}, { env: { NOTES_TOKEN: [TOKEN] } }),
    judged({}, { protocol: HIDDEN }),
    judged({}, { allowedInheritedEnvKeys: [[HIDDEN]] }),
  ],
  ERR_MCP_NATIVE_LOAD: [
    // A binary that is none, in an environment that has the secret, too.
    async () => {
      const { said, stderr } = await host(
        `
        import { inspect } from 'node:util'
        // As where neither this package nor one for the platform brought a binary for this system.
        process.dlopen = (_module, path) => {
          throw new Error('Cannot open ' + path)
        }
        try {
          await workflow.normalizeMcpServers([given.definition])
          say('nothing thrown')
        } catch (error) {
          say({ code: error.code, shown: [error.stack, inspect(error, { depth: 20, showHidden: true }), JSON.stringify(error)] })
        }`,
        { given: { definition: definition('serve') }, env: { ...process.env, ...SECRETS } },
      ).ended
      assert.equal(said[0]?.code, 'ERR_MCP_NATIVE_LOAD', stderr)
      for (const text of [stderr, ...said[0].shown]) assertTold(text, [])
      return Object.assign(new Error('seen in the host'), { code: said[0].code })
    },
  ],
}

/** Says that this package is at fault: nothing known produces it. */
const NEVER = ['ERR_MCP_INTERNAL']

test('every code has its failures here or in the canary tests of projects', () => {
  const all = [...Object.keys(FAILURES), ...CODES_OF_PROJECTS, ...NEVER]
  assert.deepEqual(all.sort(), [...MCP_ERROR_CODES].sort())
})

for (const [code, failures] of Object.entries(FAILURES)) {
  test(`the secret is nowhere on any surface when ${code} comes about`, async () => {
    for (const fail of failures) {
      const heard = []
      const errors = [await fail(heard)].flat()
      for (const error of errors) {
        // What comes after the end of a connection has the end as its cause.
        assert.ok([error.code, error.cause?.code].includes(code), inspect(error))
        assertErrorTellsNothing(error)
        assertErrorTellsNothing(
          structuredClone({ message: error.message, details: error.details, stack: error.stack }),
        )
      }
      assertTold(
        inspect(heard, { depth: 30, maxStringLength: null, maxArrayLength: null, showHidden: true }),
        [],
      )
      assertTold(JSON.stringify(heard), [])
    }
  })
}

test('the process itself has nothing to say of the secret either: its stdout, stderr, warnings and reports', async () => {
  const { stderr, said, code } = await host(
    `
    const heard = []
    process.on('warning', warning => heard.push(String(warning.stack)))
    for (const when of ['exit', 'refuse', 'version', 'many', 'unreadable']) {
      const definition = { ...given.definition, command: given.definition.command.with(2, when) }
      // Not caught on purpose, but for the end of the process: Node prints the error.
      await workflow.connectMcpServer(definition, given.options).catch(error => console.error(error))
    }
    say(heard)
    process.exitCode = 0
    const definition = { ...given.definition, command: given.definition.command.with(2, 'exit') }
    workflow.connectMcpServer(definition, given.options)`,
    { given: { definition: definition('serve'), options: inheriting } },
  ).ended
  assert.equal(code, 1, stderr)
  assert.match(stderr, /ERR_MCP_HANDSHAKE/)
  assertTold(stderr, ['NOTES_TOKEN'])
  assertTold(JSON.stringify(said), [])
})
