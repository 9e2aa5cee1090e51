// Runs and compiles the README. A block of `js` is a program, one of `js fragment` or `ts` is not; `text output` after a
// program is what it prints, on stdout and stderr, where … stands for anything within a line.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const blocks = fencedBlocks(readFileSync(join(root, 'README.md'), 'utf8'))
const packageJson = '{ "name": "project-of-a-user" }\n'
const project = projectOfAUser()
after(() => rmSync(project, { recursive: true }))

const programs = blocks.filter(({ info }) => info === 'js')
test('the README has programs', () => assert.ok(programs.length >= 7))

for (const program of programs) {
  test(`the program under "${program.heading}" works as written and leaves no process behind`, async () => {
    const { status, printed, session } = await runProgram(program)
    assert.equal(status, 0, printed)
    const next = blocks[blocks.indexOf(program) + 1]
    if (next?.info === 'text output') assert.match(printed, patternOf(next.text))
    else assert.equal(printed, `${packageJson}\n`, 'a program without an output block prints package.json')
    await untilNobodyIsIn(session)
  })
}

test('each fragment is JavaScript, and each block is of a known kind', () => {
  for (const { info, text } of blocks) {
    assert.ok(['js', 'js fragment', 'ts', 'sh', 'text output'].includes(info), `a block of ${info}`)
    if (info !== 'js fragment') continue
    const checked = spawnSync(process.execPath, ['--check', '--input-type=module', '-'], {
      input: text,
      encoding: 'utf8',
    })
    assert.equal(checked.status, 0, checked.stderr)
  }
})

test('all code of the README compiles as strict TypeScript, without casts', () => {
  const folder = join(project, 'strict')
  mkdirSync(folder)
  const surroundings = 'readme-surroundings.d.ts'
  copyFileSync(join(root, '__test__', 'support', surroundings), join(folder, surroundings))
  const names = `import { connectMcpServer, createMcpTools, toolFormats } from 'workflow-mcp'; `
  const code = blocks.filter(({ info }) => ['js', 'js fragment', 'ts'].includes(info))
  const files = code.map(({ info, heading, text }, index) => {
    const file = `${index}-${heading.replaceAll(' ', '-')}.${info === 'ts' ? 'mts' : 'mjs'}`
    writeFileSync(join(folder, file), info === 'js' ? text : names + text)
    return file
  })
  const compilerOptions = {
    ...{ target: 'es2022', lib: ['es2022', 'dom'], module: 'nodenext', types: [] },
    ...{ strict: true, checkJs: true, noEmit: true },
  }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: [surroundings, ...files] }),
  )
  const tsc = join(root, 'node_modules', '.bin', 'tsc')
  const { status, stdout, error } = spawnSync(tsc, ['-p', folder], { cwd: folder, encoding: 'utf8' })
  assert.equal(error, undefined)
  assert.equal(status, 0, stdout)
})

test('the README knows every warning that the sources name', () => {
  const sources = readdirSync(join(root, 'src'), { recursive: true }).filter(file => file.endsWith('.rs'))
  const named = sources.flatMap(
    file => readFileSync(join(root, 'src', file), 'utf8').match(/(?<=")WARN_MCP_\w+(?=")/g) ?? [],
  )
  const documented = readFileSync(join(root, 'README.md'), 'utf8').match(/(?<=^\| `)WARN_MCP_\w+/gm)
  assert.deepEqual([...documented].sort(), [...new Set(named)].sort())
})

test('the README knows every error code that can occur, and every link within it leads somewhere', () => {
  const text = readFileSync(join(root, 'README.md'), 'utf8')
  const slug = heading =>
    heading
      .toLowerCase()
      .replace(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-')
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slug(heading))
  for (const [, target] of text.matchAll(/\]\(#([^)]*)\)/g))
    assert.ok(headings.includes(target), `#${target}`)
  const documented = new Set(text.match(/(?<=^\| `)ERR_MCP_\w+/gm))
  const listed = [
    ...readFileSync(join(root, 'index.d.ts'), 'utf8').matchAll(/^ {2}\| '(ERR_MCP_\w+)'/gm),
  ].map(([, code]) => code)
  assert.deepEqual([...documented].sort(), listed.sort())
})

function fencedBlocks(markdown) {
  let heading = ''
  return [...markdown.matchAll(/^#+ (.*)$|^```(.*)\n([\s\S]*?)^```$/gm)].flatMap(([, title, info, text]) => {
    if (title === undefined) return [{ heading, info, text }]
    heading = title
    return []
  })
}

/** A folder like one in which `npm install` has put the package and the servers of the README. */
function projectOfAUser() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'workflow-mcp-readme-')))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules', 'workflow-mcp'))
  symlinkSync(
    join(root, 'node_modules', '@modelcontextprotocol'),
    join(folder, 'node_modules', '@modelcontextprotocol'),
  )
  writeFileSync(join(folder, 'package.json'), packageJson)
  return folder
}

/** Runs it in a session of its own, in which everything it starts is too; its stdout and stderr are one file, as in a terminal. */
async function runProgram({ text }) {
  const file = join(project, `program-${programs.findIndex(program => program.text === text)}.mjs`)
  writeFileSync(file, text)
  const output = openSync(`${file}.output`, 'w')
  const options = { cwd: project, detached: true, stdio: ['ignore', output, output], timeout: 60_000 }
  const child = spawn(process.execPath, [file], options)
  closeSync(output)
  const status = await new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve(signal ?? code))
  })
  return { status, printed: readFileSync(`${file}.output`, 'utf8'), session: child.pid }
}

/** The guardian needs a moment to notice that the program has ended. */
async function untilNobodyIsIn(session) {
  const deadline = Date.now() + 10_000
  let members = membersOf(session)
  while (members.length > 0 && Date.now() < deadline) {
    await pause(20)
    members = membersOf(session)
  }
  assert.deepEqual(members, [])
}

/** Living processes of a session. Only Linux says it in files; elsewhere there is nothing to look at. */
function membersOf(session) {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc').filter(name => {
    if (!/^\d+$/.test(name)) return false
    try {
      // After the name in brackets, which may hold anything: state, parent, group, session.
      const [state, , , itsSession] = readFileSync(`/proc/${name}/stat`, 'latin1')
        .split(') ')
        .at(-1)
        .split(' ')
      return Number(itsSession) === session && state !== 'Z'
    } catch {
      return false
    }
  })
}

function patternOf(text) {
  const literal = part => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  return new RegExp(`^${text.split('…').map(literal).join('.*')}$`)
}
