// In PID namespaces, as containers have them: nobody there reaps orphans, so every helper that outlived its parent
// stays a zombie, and zombies answer for their group for ever.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { test } from 'node:test'
import { FAMILIES, family } from './support/families.mjs'
import { PATIENCE } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'

/** Starts a program as PID 1 of its own, if this system lets us: as root, or as root of a user namespace. */
const UNSHARE = [
  ['unshare', '--pid', '--fork', '--kill-child'],
  ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child'],
].find(([program, ...words]) => spawnSync(program, [...words, '--mount-proc', 'true']).status === 0)
const refused = { skip: UNSHARE ? false : 'this system refuses unshare --pid' }

/** A PID 1 that waits for its own child alone. */
const IDLE_INIT = [
  process.execPath,
  '-e',
  `require('node:child_process')
    .spawn(process.argv[1], process.argv.slice(2), { stdio: 'inherit' })
    .on('exit', code => process.exit(code ?? 99))`,
]

const CLOSE = `
  const { readFileSync } = await import('node:fs')
  const connection = await workflow.connectMcpServer(given.definition, given.options)
  const pids = () => readFileSync(given.definition.command.at(-1), 'utf8').split('\\n').slice(0, -1)
  while (pids().length < given.size) await new Promise(resolve => setTimeout(resolve, 5))
  const info = await connection.close()
  const states = pids().map(pid => {
    try {
      const stat = readFileSync('/proc/' + pid + '/stat', 'utf8')
      return stat[stat.lastIndexOf(')') + 2]
    } catch {
      return 'gone'
    }
  })
  say({ server: connection.pid, info, states })
  told()
  process.exit(0)
`

/** Closes a connection in there; gives what the host says of it, and what programs run on in its namespace, as seen from outside. */
async function closeIn(kind, under) {
  const { definition } = family(kind)
  const options = { shutdown: { endOfInput: 500, terminate: 500 } }
  const given = { definition, options, size: FAMILIES[kind].size }
  const program = host(CLOSE, { given, under })
  const late = setTimeout(() => program.child.kill('SIGKILL'), PATIENCE)
  const report = await program.next()
  const running = programsIn(program.child.pid)
  program.tell()
  const { code, signal, stderr } = await program.ended
  clearTimeout(late)
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, stderr)
  return { ...report, running }
}

/** The names of the living programs in the PID namespace that this process has made for its child. */
function programsIn(unshare) {
  const stats = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const [, name, state, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').match(
          /\((.*)\) (\S) (\d+)/s,
        )
        return [{ name, state, parent: Number(parent), namespace: readlinkSync(`/proc/${pid}/ns/pid`) }]
      } catch {
        return []
      }
    })
  const namespace = stats.find(({ parent }) => parent === unshare)?.namespace
  assert.ok(namespace && namespace !== readlinkSync('/proc/self/ns/pid'))
  return stats.filter(one => one.namespace === namespace && one.state !== 'Z').map(({ name }) => name)
}

for (const [who, init] of [
  ['the host is PID 1', []],
  ['PID 1 waits for its own child alone', IDLE_INIT],
]) {
  for (const kind of ['with-helper', 'with-rude-grandchild', 'with-setsid-grandchild']) {
    test(
      `where ${who}, close() ends a ${FAMILIES[kind].name} and does not wait for its zombies`,
      refused,
      async () => {
        const { info, states, running } = await closeIn(kind, [...UNSHARE, '--mount-proc', ...init])
        assert.deepEqual(info.survivors, [])
        assert.ok(!running.includes('sleep'), `${running}`)
        assert.ok(states.includes('Z'), `there are no zombies, so this shows nothing: ${states}`)
      },
    )
  }
}

test(
  'where /proc is that of another namespace, close() believes nothing of it, and still comes to an end',
  refused,
  async () => {
    for (const kind of ['direct', 'with-helper', 'with-rude-grandchild']) {
      const { server, info, running } = await closeIn(kind, UNSHARE)
      assert.ok(!running.includes('sleep'), `${running}`)
      // Zombies answer for the group, and there is no other way to ask.
      const namesTheGroup = info.survivors.every(pid => pid === server)
      assert.ok(namesTheGroup, `${info.survivors}`)
    }
  },
)
