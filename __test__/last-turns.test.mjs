// What a host begins in the turn in which it ends.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixture, loggedPid, received } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { gone, seen } from './support/processes.mjs'

/** How a host can end in the turn that begins calls. */
const LAST_TURNS = {
  'process.exit': 'begin(); process.exit(0)',
  'process.reallyExit': 'begin(); process.reallyExit(0)',
  'a listener for exit': "process.on('exit', begin); process.exit(0)",
  'a listener for beforeExit': "process.once('beforeExit', () => { begin(); process.exit(0) })",
  'a listener for uncaughtException':
    "process.on('uncaughtException', () => { begin(); process.exit(0) }); setTimeout(() => { throw new Error('x') })",
  'a close and process.exit': 'begin(); connection.close(); process.exit(0)',
}

/**
 * Puts a server out of the reach of what ends the group of its leader when the host has gone: it reads to the end of its input,
 * however long it takes to.
 */
const AWAY = `const { spawn } = require('node:child_process')
  spawn(process.execPath, process.argv.slice(1), { detached: true, stdio: 'inherit' })`

function readerOfAll() {
  const { definition, log } = fixture()
  const [node, ...words] = definition.command
  return { definition: { ...definition, command: [node, '-e', AWAY, '--', ...words] }, log }
}

describe('what a host called before it exits reaches the server, few calls and many', {
  concurrency: 2,
}, () => {
  for (const [way, code] of Object.entries(LAST_TURNS)) {
    test(way, async () => {
      // The 23rd call under way is the first of many; those after it go out together.
      for (const count of [1, 22, 23, 24, 38, 40, 100]) {
        const { definition, log } = readerOfAll()
        const program = host(
          `const connection = await workflow.connectMcpServer(given.definition)
          say('connected')
          told()
          const begin = () => {
            for (let index = 0; index < given.count; index++) connection.callTool('echo', { index }).catch(() => {})
          }
          ${code}`,
          { given: { definition, count } },
        )
        assert.equal(await program.next(), 'connected')
        const server = seen(loggedPid(log))
        program.tell()
        assert.equal((await program.ended).code, 0)
        await gone(server)
        assert.equal(received(log, 'tools/call').length, count)
      }
    })
  }
})
