// A host on a system that has no thread left to give: what runs has to be stopped all the same.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'

test('the thread that stops a server is there before it is needed, also after a long idle time', {
  skip: process.platform !== 'linux',
}, async () => {
  const program = host(
    `import { readdirSync, readFileSync } from 'node:fs'
      const connection = await workflow.connectMcpServer(given.definition)
      await new Promise(resolve => setTimeout(resolve, 6_000))
      const names = readdirSync('/proc/self/task').map(id => readFileSync('/proc/self/task/' + id + '/comm', 'utf8'))
      say(names.filter(name => name.startsWith('workflow-mcp-po')).length > 0)
      await connection.close()`,
    { given: { definition: fixture().definition } },
  )
  const { code, stderr, said } = await program.ended
  assert.deepEqual({ code, stderr, said }, { code: 0, stderr: '', said: [true] })
})
