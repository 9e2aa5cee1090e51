// Everything that a change has to pass, in one place: `npm test` runs all of it, `npm test -- rust js` these steps alone
// (generated, types and js want a build), `npm test -- --list` says which there are. CI runs the same line.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, buildPanics, buildSlowPaths, checkGenerated, installBinary } from './generated.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
process.chdir(root)

const denyWarnings = ['--', '-D', 'warnings']

/** Most of a test's time is spent waiting for processes: by default node leaves one core idle, which doubles the time where there are two. */
const testing = ['node', '--test', '--test-reporter=spec', `--test-concurrency=${availableParallelism()}`]

/** The tests that reach what the cargo feature `slow-paths` changes. */
const SLOW_PATHS = [
  'buffers',
  'calls',
  'call-answers',
  'call-ends',
  'event-loop',
  'exit-races',
  'large-results',
  'lone-calls',
  'lone-texts',
  'messages',
  'threads',
]

/** Fast ones first; each is a list of commands, and of functions that give a fault if they find one. */
const steps = {
  format: [
    ['cargo', 'fmt', '--check'],
    ['cargo', 'fmt', '--check', '--manifest-path', 'fuzz/Cargo.toml'],
  ],
  biome: [['biome', 'ci', '.']],
  clippy: [
    ['cargo', 'clippy', '--locked', '--all-targets', ...denyWarnings],
    ['cargo', 'clippy', '--locked', '--all-targets', '--no-default-features', ...denyWarnings],
  ],
  rust: [
    ['cargo', 'test', '--locked', '--no-default-features'],
    // What the line above leaves out.
    ['cargo', 'test', '--locked', '--lib', 'node::'],
    ['cargo', 'test', '--locked', '--no-default-features', '--features', 'slow-paths', '--lib', 'link::'],
  ],
  build: [buildPanics, buildSlowPaths, build, installBinary],
  generated: [checkGenerated],
  types: [
    ['tsc', '--noEmit', '-p', '__test__/types'],
    ['tsc', '--noEmit', '-p', '__test__/types/tsconfig.dom.json'],
  ],
  // Named one by one: by itself node --test would also take files of other folders for tests.
  js: [[...testing, ...testFiles('__test__')]],
  slow: [runSlowPaths],
  publint: [['publint', '--strict']],
}

const asked = process.argv.slice(2)
if (asked.includes('--list')) {
  console.log(Object.keys(steps).join('\n'))
} else {
  process.exitCode = runAll(asked.length > 0 ? asked : Object.keys(steps))
}

function runAll(names) {
  const unknown = names.filter(name => !Object.hasOwn(steps, name))
  if (unknown.length > 0) {
    console.error(`There is no step ${unknown.join(', ')}; the steps are ${Object.keys(steps).join(', ')}.`)
    return 2
  }
  const started = Date.now()
  for (const [index, name] of names.entries()) {
    const begun = Date.now()
    console.log(`\n━━ ${name} (${index + 1} of ${names.length})`)
    const fault = run(steps[name])
    if (fault) {
      console.error(`\n━━ ${name} failed after ${seconds(begun)}: ${fault}`)
      console.error(`   It alone: npm test -- ${name}`)
      return 1
    }
    console.log(`━━ ${name} passed in ${seconds(begun)}`)
  }
  console.log(`\n━━ all ${names.length} steps passed in ${seconds(started)}`)
  return 0
}

function run(step) {
  for (const part of step) {
    const fault = typeof part === 'function' ? part() : runCommand(part)
    if (fault) return fault
  }
}

/** What the tests find that go through the other ways: copied strings, a threadsafe function, a pipe that only its own thread writes to. */
function runSlowPaths() {
  const folder = join(root, 'target/slow-paths')
  const binary = readdirSync(folder).find(file => file.endsWith('.node'))
  const files = SLOW_PATHS.map(name => `__test__/${name}.test.mjs`)
  const env = { NAPI_RS_NATIVE_LIBRARY_PATH: join(folder, binary) }
  return runCommand([...testing, ...files], env)
}

function runCommand([program, ...args], env = {}) {
  console.log(`$ ${shown([program, ...args])}`)
  const path = program === 'node' ? process.execPath : program
  const { status, signal, error } = spawnSync(path, args, {
    stdio: 'inherit',
    env: { ...environment(), ...env },
  })
  if (error) return `${program} could not be started (${error.code})`
  if (status !== 0) return `${program} ended with ${signal ?? `exit code ${status}`}`
}

/** Programs of the dependencies are on the PATH under npm, and should be found without it too. */
function environment() {
  const bin = join(root, 'node_modules', '.bin')
  return { ...process.env, PATH: `${bin}:${process.env.PATH}` }
}

function shown(command) {
  const line = command.join(' ')
  return line.length > 160 ? `${line.slice(0, 159)}…` : line
}

function testFiles(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap(entry => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return testFiles(path)
      return entry.name.endsWith('.test.mjs') ? [path] : []
    })
    .sort()
}

function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`
}
