// Projects of the fixture server over stdio, and folders with project files in them.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fixture } from './fixture.mjs'
import { opened } from './project.mjs'

/** The fixture server as a project names it, and the log it writes. `more` are further properties of the integration. */
export function integration(switches = [], more = {}) {
  const { log, definition } = fixture(switches)
  const [command, ...args] = definition.command
  return { log, integration: { command, args, timeout: 30_000, ...more } }
}

/** A client of the fixture server, in a project of its own that is closed with the test. */
export function scripted(t, switches = [], options = {}, more = {}) {
  const { log, integration: server } = integration(switches, more)
  const project = opened(t, { server }, { allowStdio: true, ...options })
  return { project, client: project.mcp('server'), log }
}

/** A folder that is a repository, with these files; it goes with the test. */
export function folder(t, files = {}) {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'workflow-mcp-project-')))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  mkdirSync(join(path, '.git'))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return path
}

/** What a function throws; it must throw. */
export function thrown(run) {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('it did not throw')
}
