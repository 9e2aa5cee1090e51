// A host, or a library in it, that has added members to Object.prototype. What they are called must not decide how things end.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fixture } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'

/** Words that the package uses itself: in events, errors and operations. */
const NAMES = [
  'stderr',
  'log',
  'warning',
  'tools',
  'closed',
  'cause',
  'arrived',
  'endsFirst',
  'owner',
  'serverId',
  // Of the descriptors of properties.
  'get',
  'set',
  'enumerable',
]

const LIFE = `
  Object.prototype[given.name] = 'added by somebody'
  const connection = await workflow.connectMcpServer(given.definition)
  const codes = []
  const heard = promise => promise.then(() => codes.push('none'), error => codes.push(error.code ?? error))
  await heard(connection.callTool('echo', { a: 1 }))
  await heard(connection.callTool('nowhere'))
  await heard(connection.callTool('silent', {}, { timeout: 20 }))
  const controller = new AbortController()
  const aborted = heard(connection.callTool('silent', {}, controller.signal))
  controller.abort('aborted')
  await aborted
  await heard(connection.listTools())
  await heard(workflow.connectMcpServer({ id: 'false', command: ['/bin/false'] }))
  const { reason } = await connection.close()
  delete Object.prototype[given.name]
  say({ codes, reason })
`

describe('with a member of this name on Object.prototype every promise settles as without it', {
  concurrency: 2,
}, () => {
  for (const name of NAMES) {
    test(name, { timeout: 30_000 }, async () => {
      const program = host(LIFE, { given: { name, definition: fixture().definition } })
      const { code, stderr, said } = await program.ended
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
      assert.deepEqual(said, [
        {
          codes: [
            'none',
            'ERR_MCP_TOOL_NOT_FOUND',
            'ERR_MCP_TIMEOUT',
            'aborted',
            'none',
            'ERR_MCP_HANDSHAKE',
          ],
          reason: 'closed',
        },
      ])
    })
  }
})
