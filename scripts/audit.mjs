// What can be found out about the packages that this one is made of: known weaknesses, licences, doubles, where they come from.
//
//   npm run audit              a finding is a failure; what could not be checked is said
//   npm run audit -- --strict  what could not be checked is a failure, too
//
// cargo-deny is taken from the PATH, else installed once into target/tools (some minutes). Its policy is deny.toml.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))

const CARGO_DENY = '0.20.2'
const tools = join(process.cwd(), 'target', 'tools')
const strict = process.argv.includes('--strict')

/** Licences of packages that only build and test this one, and of none that it ships with: it has no dependencies. */
const NPM_LICENCES = [
  ...['MIT', 'Apache-2.0', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Zlib', 'BlueOak-1.0.0', 'CC0-1.0'],
  ...['Python-2.0', 'PSF-2.0', 'Unlicense'],
]

/** Whose package.json points to a file that the package does not have; their READMEs say which it is. */
const NPM_EXCEPTIONS = {
  '@modelcontextprotocol/server-everything': 'MIT',
  '@modelcontextprotocol/server-filesystem': 'MIT',
  '@modelcontextprotocol/server-memory': 'MIT',
}

const passed = note => ({ passed: true, note })
const finding = note => ({ note })
/** Says plainly what nobody has looked at. */
const unchecked = note => ({ unchecked: true, note })

const checks = {
  'npm: known weaknesses': npmAdvisories,
  'npm: licences': npmLicences,
  'npm: every package is locked by its hash': npmLock,
  'crates: known weaknesses, yanked versions': () => deny('advisories'),
  'crates: licences': () => deny('licenses'),
  'crates: doubles and bans': () => deny('bans'),
  'crates: where they come from': () => deny('sources'),
}

const results = Object.entries(checks).map(([what, check]) => {
  const result = check()
  const verdict = result.passed ? 'passed' : result.unchecked ? 'NOT CHECKED' : 'FINDING'
  console.log(`━━ ${what}: ${verdict}${result.note ? `\n${indented(result.note)}` : ''}`)
  return { what, ...result }
})

const findings = results.filter(({ passed, unchecked }) => !passed && !unchecked)
const blind = results.filter(({ unchecked }) => unchecked)
console.log(
  `\n━━ ${findings.length} of ${results.length} checks found something, ${blind.length} could not be made`,
)
if (blind.length > 0)
  console.log(`   Nobody has looked at this here: ${blind.map(({ what }) => what).join('; ')}`)
process.exitCode = findings.length > 0 || (strict && blind.length > 0) ? 1 : 0

function npmAdvisories() {
  const { stdout } = run('npm', ['audit', '--json'])
  const report = parsed(stdout)
  const found = report?.metadata?.vulnerabilities?.total
  if (found === 0) return passed()
  if (found > 0) {
    const shown = Object.values(report.vulnerabilities).map(
      ({ name, severity, range }) => `${name} ${range}: ${severity}`,
    )
    return finding(shown.join('\n'))
  }
  return unchecked(
    `The registry answers no such question: ${report?.message ?? report?.error?.summary ?? 'no answer'}`,
  )
}

function npmLicences() {
  const others = lockedPackages().flatMap(([path]) => {
    const file = join(path, 'package.json')
    // Binaries for other systems are locked and not installed.
    if (!existsSync(file)) return []
    const { name, version, license } = JSON.parse(readFileSync(file, 'utf8'))
    return isAllowed(NPM_EXCEPTIONS[name] ?? license)
      ? []
      : [`${name} ${version}: ${JSON.stringify(license)}`]
  })
  return others.length === 0 ? passed() : finding(others.join('\n'))
}

/** `MIT`, `MIT OR Apache-2.0`, `MIT AND ISC`. */
function isAllowed(license) {
  if (typeof license !== 'string') return false
  const all = expression => expression.split(' AND ').every(one => NPM_LICENCES.includes(one))
  return license.replace(/[()]/g, '').split(' OR ').some(all)
}

function npmLock() {
  const loose = lockedPackages().filter(
    ([, { integrity, link }]) => !link && !/^sha512-/.test(integrity ?? ''),
  )
  return loose.length === 0 ? passed() : finding(loose.map(([path]) => path).join('\n'))
}

function lockedPackages() {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  return Object.entries(packages).filter(([path]) => path !== '')
}

function deny(what) {
  const missing = cargoDenyIsMissing()
  if (missing) return unchecked(missing)
  // The others need no network: all they look at is here.
  const offline = what === 'advisories' ? [] : ['--offline']
  const { status, stderr, stdout } = run('cargo', [
    'deny',
    '--color',
    'never',
    '--locked',
    ...offline,
    'check',
    what,
  ])
  const said = `${stderr}${stdout}`.trim()
  if (status === 0) return passed()
  if (/failed to fetch|failed to load advisory|unable to/.test(said) && !/^error\[/m.test(said)) {
    return unchecked(
      `The list of advisories cannot be had here: ${said.split('\n').find(line => /fatal|ERROR/.test(line))}`,
    )
  }
  return finding(said)
}

/** Why there is no cargo-deny, once it was tried. */
function cargoDenyIsMissing() {
  cargoDenyIsMissing.tried ??= (() => {
    if (run('cargo', ['deny', '--version']).status === 0) return ''
    console.log(`Installing cargo-deny ${CARGO_DENY} into target/tools, which takes some minutes.`)
    const place = ['--root', tools, '--target-dir', join(tools, 'build')]
    const { status, stderr } = run('cargo', [
      'install',
      '--locked',
      '--version',
      CARGO_DENY,
      ...place,
      'cargo-deny',
    ])
    return status === 0 ? '' : `cargo-deny could not be installed: ${stderr.trim().split('\n').at(-1)}`
  })()
  return cargoDenyIsMissing.tried
}

function run(program, args) {
  const PATH = [join(tools, 'bin'), process.env.PATH].join(delimiter)
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { ...process.env, PATH },
    maxBuffer: 1 << 26,
  })
  return error ? { status: null, stdout: '', stderr: error.message } : { status, stdout, stderr }
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function indented(text) {
  return text.replace(/^/gm, '   ')
}
