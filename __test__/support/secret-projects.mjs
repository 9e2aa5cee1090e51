// Projects that have a secret, in every place where one may stand.

import { inspect } from 'node:util'
import { tellingServer } from './http-telltale.mjs'
import { opened } from './project.mjs'
import { assertErrorTellsNothing, assertTold, GIVEN, inheriting, LITERALS, SECRETS } from './secrets.mjs'

const { NOTES_TOKEN: TOKEN, NOTES_LABEL: LABEL, NOTES_DATABASE: DATABASE, NOTES_TENANT: TENANT } = SECRETS
const basic = Buffer.from(`notes:${LITERALS.password}`).toString('base64')

/** Where a project has a secret: what its server's integration is, and the values the server is sent. */
export const PLACES = {
  'a query': url => [{ url: `${url}?key=\${NOTES_TOKEN}&label=\${NOTES_LABEL}` }, [TOKEN, LABEL]],
  'a path': url => [{ url: `${url}/\${NOTES_LABEL}/\${NOTES_TOKEN}` }, [TOKEN, LABEL]],
  headers: url => [
    {
      url,
      headers: {
        'X-Notes': `\${NOTES_TOKEN}`,
        'X-Label': `\${env:NOTES_LABEL}`,
        'X-Db': `\${NOTES_DATABASE}`,
        'X-Tenant': `\${NOTES_TENANT}`,
      },
    },
    [TOKEN, LABEL, DATABASE, TENANT],
  ],
  bearerTokenEnv: url => [{ url, bearerTokenEnv: 'NOTES_TOKEN' }, [TOKEN]],
  'a function': url => [
    {
      url,
      headers: async () => ({
        Authorization: `Bearer ${GIVEN[0]}`,
        'X-Workspace': LABEL,
        'X-Tenant': TENANT,
      }),
    },
    [GIVEN[0], LABEL, TENANT],
  ],
  'a function that is asked again': url => {
    let asked = 0
    return [{ url, headers: async () => ({ Authorization: `Bearer ${GIVEN[Math.min(asked++, 1)]}` }) }, GIVEN]
  },
  literals: url => [
    {
      url: `${url}?api_key=${encodeURIComponent(LITERALS.key)}`,
      headers: { 'X-Api-Key': LITERALS.key, Authorization: `Basic ${basic}` },
    },
    Object.values(LITERALS),
  ],
  defaults: url => [
    {
      url: `${url}?key=\${UNSET:-${LITERALS.key}}`,
      headers: { Authorization: `Bearer \${UNSET:-${LITERALS.key}}` },
    },
    [LITERALS.key],
  ],
}

export const allowed = {
  env: inheriting.env,
  allowedInheritedEnvKeys: [...inheriting.allowedInheritedEnvKeys, 'UNSET'],
}

/** Everything that can be seen of errors and of what was heard meanwhile. */
export function assertNothingTold(errors, heard = []) {
  for (const error of errors) {
    assertErrorTellsNothing(error)
    assertErrorTellsNothing(
      structuredClone({ message: error.message, details: error.details, stack: error.stack }),
    )
  }
  assertTold(inspect(heard, { depth: 30, maxStringLength: null, maxArrayLength: null, showHidden: true }), [])
  assertTold(JSON.stringify(heard), [])
}

/** A client of a telling server in one place, with all that is heard of it. */
export async function telling(t, place, options) {
  // The values are known first, the address of the server afterwards.
  const secrets = PLACES[place]('http://a.example')[1]
  const refused = secrets === GIVEN ? GIVEN[0] : undefined
  const told = await tellingServer(t, secrets, { refused, ...options })
  const [integration] = PLACES[place](told.server.url)
  const heard = []
  const { protocol, onInputRequired } = options
  const project = opened(
    t,
    { server: { timeout: 5_000, protocol, ...integration } },
    { ...allowed, onInputRequired, onWarning: (...warning) => heard.push(warning) },
  )
  return { ...told, project, client: project.mcp('server'), heard }
}
