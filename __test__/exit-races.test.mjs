// A host that leaves while results are on their way to it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixture } from './support/fixture.mjs'
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
