// Servers with the processes around them: tests/fixtures/family.sh.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { soon } from './fixture.mjs'
import { lives, seen } from './processes.mjs'

const SCRIPT = fileURLToPath(new URL('../../tests/fixtures/family.sh', import.meta.url))

/** What a family is to a reader, and how many processes it has. */
export const FAMILIES = {
  direct: { name: 'direct server', size: 1 },
  wrapper: { name: 'sh -c wrapper', size: 2 },
  'with-helper': { name: 'wrapper with a background helper', size: 3 },
  'ignores-end': { name: 'server that ignores the end of its input', size: 1 },
  'ignores-term': { name: 'server that ignores SIGTERM too', size: 1 },
  'with-rude-grandchild': { name: 'polite wrapper with a rude grandchild', size: 3 },
  'with-setsid-grandchild': { name: 'wrapper with a rude setsid grandchild', size: 3 },
}

const folder = mkdtempSync(join(tmpdir(), 'workflow-mcp-families-'))
const families = new Set()
process.on('exit', () => {
  rmSync(folder, { recursive: true, force: true })
  // Whatever a test that failed, or one about what cannot be ended, has left.
  for (const members of families)
    for (const member of members) if (lives(member)) process.kill(member.pid, 'SIGKILL')
})
let count = 0

/** A definition of a family; `members()` waits until all of it is up, and gives its processes. */
export function family(kind) {
  const file = join(folder, `${++count}`)
  return {
    definition: { id: 'family', command: ['/bin/sh', SCRIPT, kind, file], timeout: 30_000 },
    async members() {
      const all = await soon(() => {
        const pids = lines(file).map(Number)
        return pids.length === FAMILIES[kind].size && pids.map(seen)
      }, `a whole family ${kind}`)
      if (all.includes(undefined)) throw new Error(`a member of ${kind} has left already`)
      families.add(all)
      return all
    },
  }
}

function lines(file) {
  try {
    return readFileSync(file, 'utf8').split('\n').slice(0, -1)
  } catch (error) {
    if (error.code === 'ENOENT') return []
    throw error
  }
}
