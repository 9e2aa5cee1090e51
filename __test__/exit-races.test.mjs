// A host that leaves while results are on their way to it.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { fixture, soon } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { gone, seen } from './support/processes.mjs'

describe('a host that calls process.exit at any moment of twenty calls', { concurrency: 4 }, () => {
  for (let round = 0; round < 100; round++) {
    // The moments are spread evenly: what a random one finds cannot be found again.
    const ms = round / 5
    test(`${ms} ms after their start exits with 0, says nothing and leaves no server`, async () => {
      const program = host(
        `const connection = await workflow.connectMcpServer(given.definition)
        say(connection.pid)
        told()
        for (let index = 0; index < 20; index++) connection.callTool(index % 2 ? 'echo' : 'silent', { index })
        const start = performance.now()
        const leave = () => performance.now() - start < given.ms ? setImmediate(leave) : process.exit(0)
        leave()`,
        { given: { definition: fixture().definition, ms } },
      )
      const server = seen(await program.next())
      program.tell()
      const { code, signal, stderr } = await program.ended
      assert.deepEqual({ code, signal, stderr }, { code: 0, signal: null, stderr: '' })
      await gone(server)
    })
  }
})

describe('a host without a guardian that calls process.exit while eight servers start', {
  concurrency: 2,
}, () => {
  // Long arguments draw out what lies between the birth of a process and the moment the host knows it, so that it is met.
  const stubborn = `trap '' TERM HUP INT; while :; do sleep 1; done`

  for (let round = 0; round < 24; round++) {
    const ms = round / 2
    test(`${ms} ms after the call leaves no server`, { skip: process.platform !== 'linux' }, async () => {
      const mark = `${process.pid}-${round}-leaves-no-server`
      const program = host(
        `const long = Array(2).fill('x'.repeat(100_000))
        const command = ['/bin/sh', '-c', given.stubborn, given.mark, ...long]
        const definitions = given.ids.map(id => ({ id, command }))
        await workflow.normalizeMcpServers(definitions)
        const start = performance.now()
        workflow.connectMcpServers(definitions, { guardian: false })
        const leave = () => performance.now() - start < given.ms ? setImmediate(leave) : process.exit(0)
        leave()`,
        { given: { ids: [...'abcdefgh'], stubborn, mark, ms } },
      )
      const { code, stderr } = await program.ended
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
      await soon(() => running(mark).length === 0, `the end of ${mark}`)
    })
  }
})

/** The pids of the processes that have this word among their first arguments. */
function running(mark) {
  return readdirSync('/proc').filter(name => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'latin1').split('\0', 4)[3] === mark
    } catch {
      return false
    }
  })
}
