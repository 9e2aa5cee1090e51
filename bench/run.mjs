// npm run bench                    every row, into bench/results.md
// npm run bench -- --quick         the same in about two minutes, printed only
// npm run bench -- --only call     rows whose names begin so, printed only; also a list: --only call,rows
// npm run bench -- --rounds 3
//
// Side by side: the clients take turns in rounds, each time in a process of its own, against the same server. A row that fails is
// shown as failed, and so is the run.

import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { CLIENTS, OURS } from './clients.mjs'
import { allowedCores, onCore } from './cores.mjs'
import { machine, report } from './report.mjs'
import { ROWS } from './rows.mjs'
import { SERVER } from './workloads.mjs'

const execFileLater = promisify(execFile)
const path = relative => fileURLToPath(new URL(relative, import.meta.url))

const { values: given } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    rounds: { type: 'string' },
  },
})
const rounds = Number(given.rounds ?? (given.quick ? 2 : 5))
const rows = chosen(given.only)

prepare()
const before = machine()
const outcomes = []
for (const row of rows) {
  const outcome = await measureRow(row)
  outcomes.push(outcome)
  process.stdout.write(report([outcome]).terminal)
}
const isWhole = !given.quick && given.only === undefined && given.rounds === undefined
const { markdown, failed, missed } = report(outcomes, { before, after: machine(), rounds })
if (isWhole) writeFileSync(path('results.md'), markdown)
console.log(isWhole ? '\nwritten to bench/results.md' : '\nnot written: only a whole run is')
if (missed.length > 0) console.log(`bars missed:\n${missed.join('\n')}`)
if (failed.length > 0) {
  console.error(`rows failed:\n${failed.join('\n')}`)
  process.exitCode = 1
}

function chosen(only) {
  if (only === undefined) return ROWS
  const begins = only.split(',')
  const rows = ROWS.filter(({ name }) => begins.some(begin => name.startsWith(begin)))
  if (rows.length === 0) throw new Error(`no such row; there are ${ROWS.map(({ name }) => name).join(', ')}`)
  return rows
}

/** The server, the peers and a release build of ours. */
function prepare() {
  const run = (program, ...args) => execFileSync(program, args, { cwd: path('..'), stdio: 'inherit' })
  run(
    'cargo',
    'build',
    '--release',
    '--locked',
    '--quiet',
    '--manifest-path',
    'bench/server/Cargo.toml',
    '--target-dir',
    'target/bench',
  )
  if (!existsSync(path('peers/node_modules')))
    run('npm', 'ci', '--prefix', 'bench/peers', '--ignore-scripts', '--no-audit')
  const binary = readdirSync(path('..')).find(file => file.endsWith('.node'))
  // A debug build has six times the size.
  if (binary === undefined || statSync(path(`../${binary}`)).size > 10_000_000) {
    throw new Error('there is no release build: npm run build')
  }
}

async function measureRow(row) {
  const names = row.ours ? [OURS] : Object.keys(CLIENTS)
  if (row.floor) names.push(row.floor)
  const samples = Object.fromEntries(names.map(name => [name, []]))
  const failures = {}
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      if (failures[name]) continue
      try {
        samples[name].push(await measure(row, name))
      } catch (error) {
        failures[name] = why(error)
      }
    }
  }
  return { row, samples, failures }
}

async function measure(row, name) {
  const args = [path('measure.mjs'), row.name, name, given.quick ? 'quick' : 'full', SERVER]
  const begun = performance.now()
  const anywhere = [process.execPath, ...args]
  const [program, ...words] = row.isOnOneCore ? onCore(allowedCores()[0], anywhere) : anywhere
  const { stdout } = await execFileLater(program, words, { timeout: 300_000 })
  const ms = performance.now() - begun
  return row.name === 'cold' ? { ms } : JSON.parse(stdout)
}

/** The line of a failed process that says the most. */
function why({ stderr, message }) {
  const lines = (stderr ?? '').split('\n')
  return lines.find(line => /Error/.test(line)) ?? message
}
