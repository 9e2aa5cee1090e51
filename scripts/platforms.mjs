// Type-checks what cannot run here: the Rust sources for Windows and macOS, the core alone and with the Node-API surface.
//
//   npm run check:platforms
//
// A toolchain brings the standard library of its own system. Debian has one that comes with the library's sources (it is there
// to build browsers), so that the library can be checked for any system along with ours. It is fetched with apt-get and unpacked
// under target/platforms; nothing is installed. The first run takes 150 MB of traffic, 1 GB of disk and some minutes.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))

const folder = join(process.cwd(), 'target', 'platforms')
const toolchain = join(folder, 'toolchain')
const packages = ['rustc-web', 'cargo-web', 'rust-web-clippy', 'rust-web-src']

/** Of the tests, those that the system can have: the others look at /proc. */
const targets = {
  'x86_64-pc-windows-msvc': ['--lib', '--test', 'process_windows'],
  'aarch64-apple-darwin': ['--lib'],
}
/** Without TLS: ring has C and assembly in it, and there is no compiler of theirs for these systems here. */
const features = {
  'the core alone': ['--no-default-features'],
  'with the Node-API surface': ['--no-default-features', '--features', 'node'],
}

try {
  fetchToolchain()
  for (const [target, parts] of Object.entries(targets)) {
    for (const [what, flags] of Object.entries(features)) check(target, parts, what, flags)
  }
} catch (error) {
  console.error(`\n${error.message}`)
  process.exitCode = 1
}

function check(target, parts, what, flags) {
  console.log(`\n━━ ${target}, ${what}`)
  run(join(toolchain, 'usr', 'bin', 'cargo'), [
    ...['clippy', '--locked', '-Zbuild-std=std,panic_abort,test', '--target', target],
    ...['--target-dir', join(folder, 'build'), ...parts, ...flags, '--', '-D', 'warnings'],
  ])
  console.log(`━━ ${target}, ${what}: passed`)
}

/** Unpacks the packages, unless that was done with the same versions of them. */
function fetchToolchain() {
  const wanted = wantedPackages()
  const record = join(folder, 'packages.txt')
  if (existsSync(record) && readFileSync(record, 'utf8') === wanted.join('\n')) return
  rmSync(folder, { recursive: true, force: true })
  const archives = join(folder, 'archives')
  mkdirSync(archives, { recursive: true })
  run('apt-get', ['download', ...wanted], archives)
  for (const archive of readdirSync(archives)) run('dpkg-deb', ['-x', join(archives, archive), toolchain])
  rmSync(archives, { recursive: true })
  writeFileSync(record, wanted.join('\n'))
}

/** The packages and what they need that is not on this system, as `name=version`. */
function wantedPackages() {
  const { error, status, stdout, stderr } = spawnSync(
    'apt-get',
    ['install', '--simulate', '--reinstall', '--no-install-recommends', ...packages],
    { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } },
  )
  if (error) {
    throw new Error(
      'apt-get was not found. This check takes its toolchain from the packages of Debian 12 or newer; elsewhere, a toolchain that ' +
        `has the targets does the same: cargo check --target ${Object.keys(targets).join(' --target ')}`,
    )
  }
  const wanted = [...stdout.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+) /gm)]
  const rustc = wanted.find(([, name]) => name === 'rustc-web')?.[2]
  if (status !== 0 || !rustc) {
    throw new Error(
      `apt-get has no ${packages.join(', ')}. \`apt-get update\` may help; it takes Debian 12 or newer.\n${stderr}`,
    )
  }
  const needed = /^rust-version = "(.+)"$/m.exec(readFileSync('Cargo.toml', 'utf8'))[1]
  if (rustc.localeCompare(needed, 'en', { numeric: true }) < 0) {
    throw new Error(
      `apt-get has rustc ${rustc}, but Cargo.toml asks for ${needed}. \`apt-get update\` may help.`,
    )
  }
  return wanted.map(([, name, version]) => `${name}=${version}`)
}

function run(program, args, cwd) {
  const { status, signal, error } = spawnSync(program, args, { cwd, stdio: 'inherit', env: environment() })
  if (error) throw new Error(`${program} could not be started (${error.code}).`)
  if (status !== 0) throw new Error(`${program} ended with ${signal ?? `exit code ${status}`}.`)
}

/** The unpacked programs find each other and their libraries. */
function environment() {
  const bin = join(toolchain, 'usr', 'bin')
  const libraries = join(toolchain, 'usr', 'lib')
  const folders = existsSync(libraries) ? readdirSync(libraries).filter(name => name.includes('-linux-')) : []
  return {
    ...process.env,
    PATH: [bin, process.env.PATH].join(delimiter),
    LD_LIBRARY_PATH: folders.map(name => join(libraries, name)).join(delimiter),
    RUSTC: join(bin, 'rustc'),
    // -Zbuild-std is for nightly toolchains otherwise.
    RUSTC_BOOTSTRAP: '1',
  }
}
