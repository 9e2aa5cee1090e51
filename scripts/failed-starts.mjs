// docs/failed-starts.md: every way in which a start fails, with what it says. Each is made to happen here.
//
//   node scripts/failed-starts.mjs            compares the page with what happens
//   node scripts/failed-starts.mjs --update   writes it
//
// Linux only: the numbers of errors and the words of the system differ elsewhere.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connectMcpServer } from '../index.mjs'

const page = fileURLToPath(new URL('../docs/failed-starts.md', import.meta.url))
const SERVER = fileURLToPath(new URL('../tests/fixtures/server.mjs', import.meta.url))
const NODE = process.execPath
/** Long enough for what they do before they wait, on a loaded machine too. */
const SHORT = { connectTimeout: 2_000 }
const LONGER = { connectTimeout: 10_000 }

/** The page, as it is and as it should be. */
export async function compared() {
  return { written: readFileSync(page, 'utf8'), happened: await made() }
}

async function made() {
  const folder = mkdtempSync(join(tmpdir(), 'workflow-mcp-failed-starts-'))
  try {
    const parts = [HEAD]
    for (const [heading, failures] of Object.entries(sections(folder))) {
      parts.push(`## ${heading}\n`, await table(failures, folder))
    }
    return `${parts.join('\n')}${TAIL}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function table(failures, folder) {
  const row = async ([what, [definition, options]]) => {
    const error = await failure(definition, options)
    const shown = text => normalized(text, folder)
    const { code } = error
    // First of all: the name of a temporary folder may hold any digit and word by chance.
    const message = shown(error.message)
    const telling = Object.entries(error.details)
      .filter(([name, value]) => name !== 'ms' && isTelling(name, value))
      .map(([name, value]) => [name, JSON.parse(shown(JSON.stringify(value)))])
      .filter(([, value]) => !isSaid(message, value))
      .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    return [what, `\`${code}\``, cell(message), cell(telling.join('; '))]
  }
  const rows = await Promise.all(Object.entries(failures).map(row))
  return laidOut([['what is wrong', 'code', 'message', 'in `details`'], ...rows])
}

/** With columns of one width, as the formatter wants them. */
function laidOut([heading, ...rows]) {
  const widths = heading.map((_, column) => Math.max(...[heading, ...rows].map(row => row[column].length)))
  const line = (row, filler = ' ') =>
    `| ${row.map((text, column) => text.padEnd(widths[column], filler)).join(' | ')} |`
  const ruler = line(
    heading.map(() => ''),
    '-',
  )
  return [line(heading), ruler, ...rows.map(row => line(row)), ''].join('\n')
}

/** Fields that say nothing where they are empty. */
const NOT_TELLING = {
  exitCode: 0,
  signal: 0,
  stderr: 0,
  stdoutNoise: 0,
  missingEnv: 0,
  searchPath: 0,
  phase: 0,
}

const isTelling = (name, value) => !(name in NOT_TELLING) || (value !== null && value.length > 0)

/** Whether a message says a value, a number as a word of its own: there is no 2 in `/tmp/a2b` and in `1024`. */
function isSaid(message, value) {
  const text = String(value)
  return typeof value === 'number'
    ? message.split(/[^\w.-]+/).some(word => word.replace(/[.]$/, '') === text)
    : message.includes(text)
}

const cell = text => (text === '' ? '' : `\`${text.replaceAll('|', '\\|').replaceAll('`', '´')}\``)

/** Without what differs from machine to machine. */
function normalized(text, folder) {
  return text
    .replaceAll(NODE, '/usr/bin/node')
    .replaceAll(SERVER, '/srv/server.mjs')
    .replaceAll(folder, '/srv')
    .replace(/within \d+ ms/, 'within 10000 ms')
    .replace(/\((ARM64|x86-64),/, '(ARM64,')
}

async function failure({ id = 'notes', timeout = 30_000, ...definition }, options) {
  let connection
  try {
    connection = await connectMcpServer({ id, timeout, ...definition }, options)
  } catch (error) {
    return error
  }
  await connection.close()
  throw new Error(`${JSON.stringify(definition)} started`)
}

function sections(folder) {
  const file = (name, content, mode = 0o755) => {
    const path = join(folder, name)
    writeFileSync(path, content)
    chmodSync(path, mode)
    return path
  }
  const sh = (name, script) => ({ command: [file(name, `#!/bin/sh\n${script}\n`)] })
  const server = (...switches) => ({ command: [NODE, SERVER, ...switches] })
  mkdirSync(join(folder, 'folder'))

  return {
    'The program could not be started': {
      'there is no such file': [{ command: [join(folder, 'server')] }],
      'it may not be executed': [{ command: [file('not-executable', '#!/bin/sh\n', 0o644)] }],
      'it is a directory': [{ command: [join(folder, 'folder')] }],
      'it was built for another processor': [{ command: [file('other-processor', foreignProgram())] }],
      'it was built for another system': [{ command: [file('server.exe', 'MZ\u0090\0')] }],
      'it was built for another C library': [{ command: [file('other-libc', programWithoutLoader())] }],
      'it is a text without `#!`': [{ command: [file('text', 'exec node server.js\n')] }],
      'it is empty': [{ command: [file('empty', '')] }],
      'the interpreter of a script is not there': [
        { command: [file('no-python', '#!/opt/python/bin/python3 -u\n')] },
      ],
      'the script has line ends of Windows': [
        { command: [file('crlf', '#!/bin/sh\r\nexec node server.js\r\n')] },
      ],
      'the working directory is not there': [{ ...server(), cwd: join(folder, 'nowhere') }],
      'the working directory is a file': [{ ...server(), cwd: join(folder, 'text') }],
      'arguments are too long': [{ command: [NODE, 'x'.repeat(3 << 20)] }],
    },
    'It left before it was a server': {
      'it failed and said why': [sh('no-table', 'echo "Error: no such table: notes" >&2; exit 3')],
      'it failed and said nothing': [sh('silent-exit', 'exit 1')],
      'it did its work and left': [sh('done', 'exit 0')],
      'a signal ended it': [sh('signal', 'kill -KILL $$')],
      'what it starts is not in its PATH': [
        sh('not-found', 'echo "env: \'node\': No such file or directory" >&2; exit 127'),
        { env: { PATH: '/usr/bin:/bin' } },
      ],
      'it has no PATH at all': [sh('no-path', 'echo "npx: not found" >&2; exit 127'), { env: {} }],
      'variables that it inherits are not set': [
        {
          ...sh('no-token', 'echo "NOTES_TOKEN is required" >&2; exit 1'),
          inheritEnvironment: ['NOTES_TOKEN'],
        },
        { env: {}, allowedInheritedEnvKeys: ['NOTES_TOKEN'] },
      ],
      'it is no MCP server': [sh('no-server', 'echo "Usage: notes [options] FILE"; exit 2')],
      'it left while it listed its tools': [server('--exit-at', 'tools/list:4')],
    },
    'It answered, and not as a server that this package can use': {
      'it refused': [server('--refuse', '{"code":-32000,"message":"no licence"}')],
      'its answer cannot be read': [server('--initialize-result', '[]')],
      'it speaks an unknown revision': [server('--protocol', '1999-01-01')],
      'it speaks another revision than `protocol` asks for': [
        server('--protocol', '2025-03-26'),
        { protocol: '2025-06-18' },
      ],
      "it does not know what `protocol: 'modern'` asks for": [server(), { protocol: 'modern' }],
      'it refused to list its tools': [server('--list-error=-32000')],
      'its list cannot be read': [server('--list-result', '7')],
      'it has too many tools': [server('--tools', '257')],
      'its list has no end': [server('--endless')],
      'a message is too long': [server('--tools', '200'), { maxMessageBytes: 10_000 }],
    },
    'It did not answer in time': {
      'it said nothing': [sh('silent', 'exec sleep 60'), SHORT],
      'its stderr says why': [sh('stderr', 'echo "listening on port 3000" >&2; exec sleep 60'), SHORT],
      'it prints something else on stdout': [
        sh('noise', 'echo "Server running on stdio"; exec sleep 60'),
        SHORT,
      ],
      'its list did not come': [server('--list-silent'), LONGER],
    },
  }
}

/** The head of an ELF file for the processor that this one is not. */
function foreignProgram() {
  const file = elfHeader()
  file.writeUInt16LE(process.arch === 'arm64' ? 62 : 183, 18)
  return file
}

/** A program whose loader is not there, as one for musl on a system with glibc. */
function programWithoutLoader() {
  const loader = Buffer.from('/lib/ld-of-another-system.so.1\0')
  const file = Buffer.concat([elfHeader(), Buffer.alloc(2 * 56), loader])
  file.writeUInt16LE(2, 56)
  // PT_INTERP, then a PT_LOAD of the whole file: without one the kernel would not get as far.
  for (const [at, type, offset, length] of [
    [64, 3, 64 + 2 * 56, loader.length],
    [64 + 56, 1, 0, file.length],
  ]) {
    file.writeUInt32LE(type, at)
    file.writeUInt32LE(5, at + 4)
    file.writeBigUInt64LE(BigInt(offset), at + 8)
    file.writeBigUInt64LE(BigInt(0x400000 + offset), at + 16)
    file.writeBigUInt64LE(BigInt(0x400000 + offset), at + 24)
    file.writeBigUInt64LE(BigInt(length), at + 32)
    file.writeBigUInt64LE(BigInt(length), at + 40)
    file.writeBigUInt64LE(BigInt(0x1000), at + 48)
  }
  return file
}

/** Of a 64-bit program of this processor without segments. */
function elfHeader() {
  const head = Buffer.alloc(64)
  head.write('\x7fELF\x02\x01\x01', 'latin1')
  head.writeUInt16LE(2, 16)
  head.writeUInt16LE(process.arch === 'arm64' ? 183 : 62, 18)
  head.writeUInt32LE(1, 20)
  head.writeBigUInt64LE(0x400000n, 24)
  head.writeBigUInt64LE(64n, 32)
  head.writeUInt16LE(64, 52)
  head.writeUInt16LE(56, 54)
  return head
}

const HEAD = `# Why a server does not start

Every way in which a start fails, and what the error then says: \`message\` is one sentence for people, \`details\` has the rest for
programs. The page is written by \`node scripts/failed-starts.mjs --update\` from starts that fail, on Linux, and a test compares it with
what happens; the paths are made up, and fields that say no more than the message are left out.

What is wrong with a definition or an option is said before anything is started (\`ERR_MCP_INVALID_DEFINITION\`,
\`ERR_MCP_CAPABILITY_IN_DEFINITION\`, \`ERR_MCP_ENV_NOT_ALLOWED\`, \`ERR_MCP_TOO_MANY_SERVERS\`, \`ERR_MCP_INVALID_ARGUMENT\`) with the place in
\`details.path\`. A start that is aborted rejects with the reason of its signal.
`

const TAIL = `
## What \`details\` has besides

- \`ERR_MCP_SPAWN\`: \`errno\`, the system's number; \`path\`; \`what\` is \`command\`, \`cwd\` or \`interpreter\`.
- \`ERR_MCP_HANDSHAKE\`: \`exitCode\` and \`signal\` of a server that left, \`rpcCode\` of one that refused; \`phase\` and \`ms\`: how far it had got
  (\`connect\`, \`list\`) and after how long.
- \`ERR_MCP_TIMEOUT\`: \`phase\`, \`ms\`.
- These, \`ERR_MCP_PROTOCOL_VERSION\`, and \`ERR_MCP_RPC\` and \`ERR_MCP_INVALID_MESSAGE\` of a start: the end of \`stderr\` (4 KiB), \`stdoutNoise\` (the
  first lines on stdout that were no messages), \`missingEnv\` (the inherited variables that are not set); and where stderr says that something was not
  found, \`searchPath\`: the \`PATH\` as the server saw it, \`null\` if it has none.

The values of inherited variables that are secret stand in none of them.
`

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { written, happened } = process.argv.includes('--update')
    ? { written: '', happened: await made() }
    : await compared()
  if (process.argv.includes('--update')) writeFileSync(page, happened)
  else if (written !== happened) {
    console.error('docs/failed-starts.md does not say what happens: node scripts/failed-starts.mjs --update')
    process.exitCode = 1
  }
}
