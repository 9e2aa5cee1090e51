import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { fixture } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'

// Built with the cargo feature `panics`, by `npm test -- build`.
const folder = fileURLToPath(new URL('../target/panics/', import.meta.url))
const [binary] = readdirSync(folder).filter(file => file.endsWith('.node'))
const env = { ...process.env, NAPI_RS_NATIVE_LIBRARY_PATH: `${folder}${binary}` }
const given = { definition: fixture().definition, loader: new URL('../binding.js', import.meta.url).href }

for (const place of ['call', 'task', 'pool']) {
  test(`a panic in a ${place} costs neither the process nor a connection`, async () => {
    const { code, signal, stderr, said } = await host(
      `
      const { default: binding } = await import(given.loader)
      const connection = await workflow.connectMcpServer(given.definition)
      const pending = connection.callTool('sleep', { ms: 300 })
      try {
        binding.panicIn(${JSON.stringify(place)})
        say('nothing thrown')
      } catch (error) {
        say(error instanceof Error)
      }
      say((await pending).content[0].text)
      say((await connection.callTool('echo', { n: 1 })).structuredContent)
      const other = await workflow.connectMcpServer({ ...given.definition, id: 'other' })
      say((await other.callTool('echo', { n: 2 })).structuredContent)
      await Promise.all([connection.close(), other.close()])
      `,
      { given, env },
    ).ended
    assert.deepEqual([code, signal], [0, null], stderr)
    assert.match(stderr, /panics for a test/, 'it panicked')
    assert.deepEqual(said, [place === 'call' ? true : 'nothing thrown', 'slept 300', { n: 1 }, { n: 2 }])
  })
}
