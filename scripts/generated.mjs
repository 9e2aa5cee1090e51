// What is generated and committed all the same: the loader and the types of the binary, and the platform packages. They are
// made anew in a folder of their own and compared by content, so the check needs no git, and nobody's edits get lost.
//
//   node scripts/generated.mjs --update      builds, and writes them where they are committed
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const fresh = 'target/generated'

/** Builds the binary in the debug profile, which has no link-time optimisation; loader and types go beside it. */
export const build = [
  ...['napi', 'build', '--platform', '--no-const-enum'],
  ...['--output-dir', fresh, '--js', 'binding.js', '--dts', 'binding.d.ts'],
]

/** The binary that can be made to panic, for its test alone. */
export const buildPanics = buildWith('panics')

/** The binary that does without what a host may lack, for the second run of the tests that reach it. */
export const buildSlowPaths = buildWith('slow-paths')

function buildWith(feature) {
  return [
    ...['napi', 'build', '--platform', '--no-const-enum', '--no-js', '--features', feature],
    ...['--output-dir', `target/${feature}`, '--dts', 'binding.d.ts'],
  ]
}

/** Puts the binary where the committed loader looks for it. */
export function installBinary() {
  for (const file of readdirSync(join(root, fresh)).filter(file => file.endsWith('.node'))) {
    // Renamed, not written over: a running process may have the old one mapped.
    copyFileSync(join(root, fresh, file), join(root, `${file}.new`))
    renameSync(join(root, `${file}.new`), join(root, file))
  }
}

/** Says which committed files differ from what `build` and package.json make now. */
export function checkGenerated() {
  makePlatformPackages()
  const differing = generatedFiles().filter(file => read(file) !== read(join(fresh, file)))
  if (differing.length > 0) {
    return `these differ from what is generated: ${differing.join(', ')}; run \`npm run generate\` and commit what it changes`
  }
}

/** One package for each target of package.json's napi block, in the version of package.json. */
function makePlatformPackages() {
  rmSync(join(root, fresh, 'npm'), { recursive: true, force: true })
  mkdirSync(join(root, fresh, 'npm'), { recursive: true })
  run(['napi', 'create-npm-dirs', '--npm-dir', `${fresh}/npm`])
}

/** Each file that is generated, or is committed as if it were. */
function generatedFiles() {
  const packages = [...filesIn(root, 'npm'), ...filesIn(join(root, fresh), 'npm')]
  return ['binding.js', 'binding.d.ts', ...new Set(packages)].sort()
}

function filesIn(base, folder) {
  if (!existsSync(join(base, folder))) return []
  return readdirSync(join(base, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesIn(base, path)
    // A release puts the binaries there.
    return entry.name.endsWith('.node') ? [] : [path]
  })
}

function read(file) {
  const path = join(root, file)
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

function run([program, ...args]) {
  const path = join(root, 'node_modules', '.bin', program)
  const { status, error } = spawnSync(path, args, { cwd: root, stdio: 'inherit' })
  if (error || status !== 0) throw new Error(`${program} ${args[0]} failed`, { cause: error })
}

function update() {
  run(build)
  installBinary()
  makePlatformPackages()
  for (const file of generatedFiles()) {
    if (existsSync(join(root, fresh, file))) {
      mkdirSync(dirname(join(root, file)), { recursive: true })
      copyFileSync(join(root, fresh, file), join(root, file))
    } else {
      rmSync(join(root, file))
    }
  }
}

if (process.argv[2] === '--update') update()
