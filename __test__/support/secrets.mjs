// Secrets that a server inherits, a server that tells them wherever it can, and what may be seen of them: nothing.

import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { texts } from './refusals.mjs'

export const SECRETS = {
  NOTES_TOKEN: 'c4n4ry Zq8wL/m3xTv+"ü\\',
  NOTES_DATABASE: 'postgres://notes:p4ssw0rd-c4n4ry-7Qx@db.example/notes',
  NOTES_PEM:
    '-----BEGIN PRIVATE KEY-----\nMIIc4n4ryFirstLine0x81\nMIIc4n4rySecondLine7k2\n-----END PRIVATE KEY-----\n',
  NOTES_LABEL: 'an ordinary value, c4n4ry 12',
  // What a host may be called, which comes back in small letters.
  NOTES_TENANT: 'Tenant-C4N4RY-7xQ4',
}

/** Secrets that somebody wrote into a project file, and those that a function for headers gives. */
export const LITERALS = { key: 'lit-c4n4ry-5Rk9/Zw+2q', password: 'pa55 c4n4ry w0rd' }
export const GIVEN = ['first c4n4ry/hYt4-Lm8+x', 'second c4n4ry/B7wQ-Vn2+k']

/** The codes of failures that only projects have: canary-http.test.mjs and canary-projects.test.mjs make them happen. */
export const CODES_OF_PROJECTS = [
  'ERR_MCP_CONFIG',
  'ERR_MCP_SERVER_NOT_FOUND',
  'ERR_MCP_SERVER_HAS_NO_URL',
  'ERR_MCP_WOULD_BLOCK',
  'ERR_MCP_HTTP',
  'ERR_MCP_AUTH_REQUIRED',
  'ERR_MCP_CONNECT',
]

/** What may stand nowhere: the values, their telling parts, and how they read in the forms that the server uses. */
const FORBIDDEN = [
  'c4n4ry',
  ...[...Object.values(SECRETS), ...Object.values(LITERALS), ...GIVEN].flatMap(value => {
    const base64 = Buffer.from(value).toString('base64')
    return [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1), base64.slice(8, -8)]
  }),
]

const TELLTALE = fileURLToPath(new URL('../../tests/fixtures/telltale.mjs', import.meta.url))

/** A definition of the server that tells; `words` are further words of its command. */
export function telltale(when, ...words) {
  return {
    id: 'telltale',
    command: [process.execPath, TELLTALE, when, ...Object.keys(SECRETS), ...words],
    inheritEnvironment: Object.keys(SECRETS),
    timeout: 30_000,
  }
}

/** The options of a host that hands the secrets on. */
export const inheriting = {
  env: { PATH: '/usr/bin:/bin', ...SECRETS },
  allowedInheritedEnvKeys: Object.keys(SECRETS),
}

/** That a text holds none of the secrets, and the names in place of these. */
export function assertTold(text, names = Object.keys(SECRETS)) {
  for (const forbidden of FORBIDDEN) {
    assert.equal(
      text.toLowerCase().includes(forbidden.toLowerCase()),
      false,
      `${JSON.stringify(forbidden)} is in ${text}`,
    )
  }
  for (const name of names) assert.ok(text.includes(`«${name}»`), `«${name}» is not in ${text}`)
}

export function assertErrorTellsNothing(error) {
  // A cause need not be an error of ours, with details.
  for (const text of texts(error)) if (text !== undefined) assertTold(text, [])
}
