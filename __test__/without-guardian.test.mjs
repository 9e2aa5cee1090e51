// Without a guardian, switched off or not to be had, servers that ignore everything still end with every orderly exit of their host.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fixture } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { gone, seen } from './support/processes.mjs'

const STUBBORN = ['--ignore-end', '--ignore-term']

/** Where /bin/sh is no program. */
const NO_SHELL = ['unshare', '--mount', 'sh', '-c', 'mount --bind /dev/null /bin/sh && exec "$@"', 'sh']
const refused = {
  skip:
    spawnSync(NO_SHELL[0], [...NO_SHELL.slice(1), process.execPath, '-e', '0']).status === 0
      ? false
      : 'this system lets us hide /bin/sh from nobody',
}

const CONNECT = `
  const warnings = []
  const connection = await workflow.connectMcpServer(given.definition, {
    guardian: given.guardian,
    shutdown: { endOfInput: 100, terminate: 100 },
    onWarning: ({ code, message }, id) => warnings.push({ code, message, id }),
  })
  const grandchild = await connection.callTool('grandchild')
  say([connection.pid, Number(grandchild.content[0].text)])
  if (given.guardian) while (warnings.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  say(warnings)
  told()
`

const ENDS = {
  'loop drain': { code: CONNECT, exit: 0 },
  'process.exit': { code: `${CONNECT} process.exit(3)`, exit: 3 },
  'an uncaught exception': {
    code: `${CONNECT} setImmediate(() => { throw new Error('on purpose') })`,
    exit: 1,
  },
  'an unhandled rejection': { code: `${CONNECT} Promise.reject(new Error('on purpose'))`, exit: 1 },
  'process.exit after another server was closed': {
    code: `await (await workflow.connectMcpServer(given.definition, { shutdown: { endOfInput: 100, terminate: 100 }, guardian: given.guardian })).close()
      ${CONNECT} process.exit(3)`,
    exit: 3,
  },
}

async function leavesNobody({ code, exit }, guardian, under) {
  const definition = fixture(STUBBORN).definition
  const program = host(code, { given: { definition, guardian }, under })
  const servers = (await program.next()).map(seen)
  const warnings = await program.next()
  program.tell()
  const end = await program.ended
  assert.equal(end.code, exit, end.stderr)
  for (const server of servers) await gone(server)
  return warnings
}

for (const [name, end] of Object.entries(ENDS)) {
  test(`with the guardian switched off, ${name} leaves nobody, and nobody is warned`, async () => {
    assert.deepEqual(await leavesNobody(end, false), [])
  })

  test(
    `where no guardian can be started, ${name} leaves nobody, and the host is warned`,
    refused,
    async () => {
      const warnings = await leavesNobody(end, true, NO_SHELL)
      assert.equal(warnings.length, 1)
      assert.equal(warnings[0].code, 'WARN_MCP_GUARDIAN')
      assert.equal(warnings[0].id, 'fixture')
      assert.match(
        warnings[0].message,
        /^The guardian \/bin\/sh could not be started \(.+\); .+ may stay behind$/,
      )
    },
  )
}
