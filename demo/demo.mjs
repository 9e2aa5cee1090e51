// npm run demo                                          the bundled server
// npm run demo -- /abs/path/to/program [arguments…]     any server that speaks MCP over stdio
import { fileURLToPath } from 'node:url'
import { connectMcpServer, McpError } from '../index.mjs'

const given = process.argv.slice(2)
const bundled = [process.execPath, fileURLToPath(new URL('server.mjs', import.meta.url))]
const command = given.length > 0 ? given : bundled

try {
  await show(command)
} catch (error) {
  if (!McpError.is(error)) throw error
  explain(error)
  process.exitCode = 1
}

async function show(command) {
  console.log(`Starting  ${command.join(' ')}`)
  const connection = await connectMcpServer({ id: 'demo', command })
  const { pid } = connection
  try {
    const { name = 'a server without a name', version = '' } = connection.serverInfo ?? {}
    console.log(`Running   ${name} ${version}`.trimEnd())
    console.log(`          process ${pid}, protocol ${connection.protocolVersion}`)
    showTools(connection.tools)
    await callOne(connection)
  } finally {
    showEnd(pid, await connection.close())
  }
}

function showTools(tools) {
  console.log(`\nTools     ${tools.length}`)
  for (const { name, description = '', inputSchema } of tools) {
    const [summary] = description.trim().split('\n')
    console.log(`          ${name}(${parameters(inputSchema)})`)
    if (summary) console.log(`            ${summary.length > 90 ? `${summary.slice(0, 89)}…` : summary}`)
  }
}

function parameters(schema) {
  const required = requiredOf(schema)
  return Object.keys(schema.properties ?? {})
    .map(name => (required.includes(name) ? name : `${name}?`))
    .join(', ')
}

function requiredOf(schema) {
  return Array.isArray(schema.required) ? schema.required : []
}

async function callOne(connection) {
  const tool = connection.tools.find(({ inputSchema }) => requiredOf(inputSchema).length === 0)
  if (!tool) {
    console.log('\nCall      none: each tool needs arguments. In a program of yours:')
    const [{ name } = { name: 'tool' }] = connection.tools
    console.log(`          await connection.callTool('${name}', { … })`)
    return
  }
  console.log(`\nCall      ${tool.name}({})`)
  const { content, isError } = await connection.callTool(tool.name, {})
  console.log(isError ? 'Result    the tool says that it failed:' : 'Result')
  for (const item of content) console.log(indented(item.type === 'text' ? item.text : `[${item.type}]`))
}

function indented(text) {
  const lines = text.split('\n')
  const shown = lines.length > 12 ? [...lines.slice(0, 12), `… and ${lines.length - 12} lines more`] : lines
  return shown.map(line => `          ${line}`).join('\n')
}

function showEnd(pid, { ended, exitCode, signal, survivors }) {
  const how = {
    'by-itself': 'it had left before it was asked to',
    'end-of-input': 'it left when its input ended',
    terminate: 'it left on SIGTERM',
    kill: 'it had to be killed',
  }
  console.log(`\nClosed    ${how[ended]} (${signal ?? `exit code ${exitCode}`})`)
  const left = [...(isRunning(pid) ? [pid] : []), ...survivors]
  if (left.length > 0) throw new Error(`Still running after the close: ${left.join(', ')}`)
  console.log(`          process ${pid} is gone, and nothing that it started is left running`)
}

/** Signal 0 reaches nobody; it only asks whether there is somebody. */
function isRunning(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code !== 'ESRCH'
  }
}

function explain(error) {
  console.error(`\nThe server did not work: ${error.message}`)
  console.error(`          code ${error.code}`)
  for (const [name, value] of Object.entries(error.details)) {
    // What the server itself wrote is the likeliest to say why, so it goes last and whole.
    if (name !== 'stderr' && isWorthTelling(value))
      console.error(`          ${name} ${JSON.stringify(value)}`)
  }
  if (error.details.stderr) console.error(`\nIts stderr:\n${indented(error.details.stderr.trimEnd())}`)
}

function isWorthTelling(value) {
  return (
    value !== null && value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)
  )
}
