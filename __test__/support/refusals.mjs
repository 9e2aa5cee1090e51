// Refusals of definitions and options: what each of them says, and what none may show.

import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { McpError, normalizeMcpServers } from '../../index.mjs'
import { failure } from './fixture.mjs'

/** Stands wherever a secret could; no error may show it. */
export const CANARY = 'c4n4ry-Zq8wLm3xTv'
export const GITHUB_TOKEN = 'ghp_k3Jx9QmZ2vLw8RtY5bNc7HdF4sGp6TaE1uXo'
export const ENV = { PATH: '/usr/bin:/bin', HOME: '/home/somebody' }

export const base = Object.freeze({ id: 'notes', command: Object.freeze(['/usr/bin/notes', '--stdio']) })
export const normalized = async (more, options) =>
  (await normalizeMcpServers([{ ...base, ...more }], options))[0]
export const refused = (more, options) => failure(normalizeMcpServers([{ ...base, ...more }], options))

/** Every text of an error that can end up in a log, causes included. */
export function texts(error) {
  const shown = []
  for (let each = error; each !== undefined; each = each.cause) {
    shown.push(each.message, each.stack, String(each), JSON.stringify(each), JSON.stringify(each.details))
    shown.push(inspect(each, { depth: 20, showHidden: true, maxStringLength: null, maxArrayLength: null }))
  }
  return shown
}

export function assertRefusal(error, { code = 'ERR_MCP_INVALID_DEFINITION', path, says = [] }) {
  assert.ok(error instanceof McpError, inspect(error))
  assert.equal(error.code, code, error.message)
  assert.equal(error.details.path, path, error.message)
  assert.ok(error.message.startsWith(`${path} `), error.message)
  assert.match(error.message, /^[^!\n]+$/)
  for (const part of says) assert.ok(error.message.includes(part), `${error.message} does not say: ${part}`)
  for (const text of texts(error)) {
    assert.equal(text.includes(CANARY), false, text)
    assert.equal(text.includes(GITHUB_TOKEN), false, text)
  }
}
