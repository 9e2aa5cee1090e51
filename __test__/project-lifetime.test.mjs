// How long projects live: collected when nothing holds them, kept by what is pending, and never what keeps Node alive.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loggedPid } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { gone, seen } from './support/processes.mjs'
import { integration } from './support/scripts.mjs'

const OPEN = `
  const open = (more = {}) => workflow.openMcpProject({ allowStdio: true, config: { servers: { server: given.integration } }, ...more })
  const turn = () => new Promise(resolve => setTimeout(resolve, 10))
`
const collecting = { flags: ['--expose-gc'] }

function running(code, more = {}) {
  const { log, integration: server } = integration()
  return { log, ...host(OPEN + code, { given: { integration: server }, ...more }) }
}

test('an idle project with an open session does not keep Node alive, and its server ends with it', async () => {
  const { ended, next, log } = running(
    `const project = open({ onWarning() {}, onInputRequired() {} })
    say((await project.mcp('server').call('about')).structuredContent.pid)
    globalThis.kept = project`,
  )
  const server = seen(await next()) ?? { pid: loggedPid(log), start: 'gone already' }
  const { code, stderr } = await ended
  assert.equal(code, 0, stderr)
  await gone(server)
})

test('a pending call keeps Node alive', async () => {
  const { ended } = running(
    `open().mcp('server').call('sleep', { ms: 300 }).then(({ content }) => say(content[0].text))`,
  )
  const { code, said, stderr } = await ended
  assert.deepEqual([code, said], [0, ['slept 300']], stderr)
})

test('a project that nothing holds any more is collected, and its session ends', async () => {
  const { ended, next, tell, log } = running(
    `let project = open({ onWarning() {} })
    await project.mcp('server').call('echo')
    project = undefined
    say('dropped')
    const timer = setInterval(gc, 20)
    process.stdin.once('data', () => { clearInterval(timer); process.stdin.destroy() })`,
    collecting,
  )
  await next()
  await gone(seen(loggedPid(log)) ?? { pid: loggedPid(log), start: 'gone already' })
  tell()
  const { code, stderr } = await ended
  assert.equal(code, 0, stderr)
})

test('a client keeps its project, and so does a call that is pending', async () => {
  const { ended } = running(
    `const { call } = open().mcp('server')
    await call('echo')
    for (let round = 0; round < 20; round++) { gc(); await turn() }
    say((await call('echo', { a: 1 })).structuredContent)
    let pending = open().mcp('server').call('sleep', { ms: 400 })
    for (let round = 0; round < 20; round++) { gc(); await turn() }
    say((await pending).content[0].text)`,
    collecting,
  )
  const { code, said, stderr } = await ended
  assert.deepEqual([code, said], [0, [{ a: 1 }, 'slept 400']], stderr)
})

test('two hundred projects that are opened and closed start no thread, and the next one works', async () => {
  const { ended } = running(
    `import { readdirSync, readFileSync } from 'node:fs'
    const threads = () => readdirSync('/proc/self/task').map(task => readFileSync('/proc/self/task/' + task + '/comm', 'utf8'))
    const ours = () => process.platform === 'linux' && threads().some(name => name.startsWith('workflow-mcp'))
    for (let round = 0; round < 200; round++) {
      const project = workflow.openMcpProject({ config: { servers: { a: { url: 'https://a.example' } } } })
      project.mcp('a')
      await project.close()
    }
    say(ours())
    const project = open()
    say(project.mcp('server').callSync('echo', { a: 1 }).structuredContent)
    await project.close()`,
  )
  const { code, said, stderr } = await ended
  assert.deepEqual([code, said], [0, [false, { a: 1 }]], stderr)
})
