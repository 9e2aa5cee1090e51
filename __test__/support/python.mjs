// The Python that the tests' Python servers run in: installed on first use, from the pinned requirements, into a folder of its own under
// target/ that is named after them; used again until they change.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const REQUIREMENTS = fileURLToPath(new URL('../python/requirements.txt', import.meta.url))
const TARGET = fileURLToPath(new URL('../../target/', import.meta.url))

/** The path of an interpreter that has them. */
export function python() {
  const version = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12)
  const home = join(TARGET, `python-${version}`)
  if (!existsSync(home)) install(home)
  return join(home, 'bin', 'python')
}

/** Beside its place first: whoever finds the folder finds all of it, also when two install at the same time. */
function install(home) {
  const draft = `${home}.${process.pid}`
  run(interpreter(), ['-m', 'venv', draft])
  run(join(draft, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', '--no-input', '-r', REQUIREMENTS])
  try {
    renameSync(draft, home)
  } catch (error) {
    if (!existsSync(home)) throw error
    rmSync(draft, { recursive: true })
  }
}

/** Python 3.11 if it is there, else whatever the machine calls Python: the SDK wants 3.10 or newer. */
function interpreter() {
  const there = spawnSync('python3.11', ['--version']).status === 0
  return there ? 'python3.11' : 'python3'
}

function run(program, args) {
  const { status, error, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${error?.message ?? stderr}`)
}
