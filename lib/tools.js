'use strict'

const { argumentFault, pathText } = require('./arguments.js')
const { invalidArgument } = require('./errors.js')
const { agentsOutput, aiSdkOutput, resultFormats } = require('./formats.js')
const { readable, theCore } = require('./core.js')
const { isObject, objectSchema, standardSchema } = require('./schema.js')

const SOURCE_PROPERTIES = ['connection', 'connections', 'include', 'needsApproval', 'validate']
const MAX_NAME = 64

async function createMcpTools(source) {
  const { connections, include, needsApproval, validate } = readable('source', () => readSource(source))
  const picked = connections.flatMap(connection => {
    // A tool is its name: a second one of that name would call the same.
    const byName = new Map()
    for (const tool of connection.tools) if (!byName.has(tool.name)) byName.set(tool.name, tool)
    return [...byName.values()].filter(tool => include(tool, connection)).map(tool => ({ connection, tool }))
  })
  const names = agentNames(picked.map(({ connection, tool }) => `${connection.id}__${tool.name}`))
  return picked.map(({ connection, tool }, index) =>
    agentTool(names[index], connection, tool, { needsApproval, validate }),
  )
}

// ───────────────────────────── the source ─────────────────────────────

function readSource(source) {
  if (!isObject(source)) {
    throw invalidArgument('source', 'must be an object such as { connection }')
  }
  for (const key of Object.keys(source)) {
    if (SOURCE_PROPERTIES.includes(key)) continue
    throw invalidArgument(
      theCore().pathOf('', key),
      `is not a property of createMcpTools's source; it has ${SOURCE_PROPERTIES.join(', ')}`,
    )
  }
  const { include = () => true, needsApproval = false, validate = false } = source
  if (typeof include !== 'function') throw invalidArgument('include', 'must be a function')
  if (typeof needsApproval !== 'boolean' && typeof needsApproval !== 'function') {
    throw invalidArgument('needsApproval', 'must be a boolean or a function')
  }
  if (typeof validate !== 'boolean') throw invalidArgument('validate', 'must be a boolean')
  return { connections: readConnections(source), include, needsApproval, validate }
}

function readConnections({ connection, connections }) {
  const found = []
  if (connection !== undefined) found.push(['connection', connection])
  if (connections !== undefined) {
    const several = isIterable(connections) ? connections : connections?.connections
    if (!isIterable(several)) {
      throw invalidArgument(
        'connections',
        'must be an iterable of connections or what connectMcpServers gave',
      )
    }
    found.push(...Array.from(several, (each, index) => [`connections[${index}]`, each]))
  }
  if (found.length === 0) {
    throw invalidArgument('source', 'must have at least one connection, in connection or connections')
  }
  const paths = new Map()
  for (const [path, each] of found) {
    if (!isConnection(each)) {
      throw invalidArgument(path, 'must be a connection, as connectMcpServer resolves with')
    }
    if (paths.has(each.id)) {
      throw invalidArgument(path, `has the id "${each.id}" of ${paths.get(each.id)}: tool names would clash`)
    }
    paths.set(each.id, path)
  }
  return found.map(([, each]) => each)
}

function isIterable(value) {
  return typeof value === 'object' && value !== null && typeof value[Symbol.iterator] === 'function'
}

function isConnection(value) {
  return (
    isObject(value) &&
    typeof value.id === 'string' &&
    typeof value.callTool === 'function' &&
    Array.isArray(value.tools)
  )
}

// ───────────────────────────── names ─────────────────────────────

/**
 * A name that needs no change has the first claim on itself, wherever it stands in the list; so the others never depend
 * on order, but for hashes that were made to collide.
 */
function agentNames(originals) {
  const taken = new Set(originals.filter(isAgentName))
  return originals.map(original => {
    if (isAgentName(original)) return original
    let name
    let attempt = original
    do {
      name = changedName(original, attempt)
      attempt += '\0'
    } while (taken.has(name))
    taken.add(name)
    return name
  })
}

function isAgentName(name) {
  return name.length <= MAX_NAME && /^[A-Za-z0-9_-]+$/.test(name)
}

function changedName(original, hashed) {
  const { createHash } = require('node:crypto')
  const suffix = `_${createHash('sha256').update(hashed).digest('hex').slice(0, 8)}`
  return original.replace(/[^A-Za-z0-9_-]/gu, '_').slice(0, MAX_NAME - suffix.length) + suffix
}

// ───────────────────────────── the tool ─────────────────────────────

function agentTool(name, connection, tool, { needsApproval, validate }) {
  const parameters = Object.freeze(objectSchema(tool.inputSchema))
  const title = tool.title ?? tool.annotations?.title
  const metadata = Object.freeze({ serverId: connection.id, toolName: tool.name })

  // Closures, not methods: agents' loops take them off the object, and people spread it to wrap one of them.
  async function execute(args = {}, context) {
    const fault = faultIn(args)
    if (fault) {
      throw invalidArgument(pathText(fault.path), fault.reason, {
        serverId: connection.id,
        details: { tool: tool.name },
      })
    }
    return connection.callTool(tool.name, args, { signal: context?.abortSignal ?? context?.signal })
  }

  function faultIn(args) {
    return validate ? argumentFault(parameters, args) : undefined
  }

  // Where a loop checks a model's arguments before it calls, the model gets to hear of the fault and can mend it.
  function accept(value) {
    const fault = faultIn(value)
    return fault
      ? { issues: [{ message: `${pathText(fault.path)} ${fault.reason}`, path: fault.path }] }
      : { value }
  }

  return Object.freeze({
    type: 'function',
    name,
    ...(typeof title === 'string' ? { title } : undefined),
    description: typeof tool.description === 'string' ? tool.description : '',
    // OpenAI Agents refuses a Standard Schema that is not strict: `parameters` is the plain schema.
    parameters,
    inputSchema: standardSchema(parameters, accept),
    // Loops that find a schema here hand it the result as a whole, which is more than structuredContent.
    ...(isObject(tool.outputSchema)
      ? { outputSchema: standardSchema(tool.outputSchema, value => ({ value })) }
      : undefined),
    strict: false,
    ...(isObject(tool.annotations) ? { annotations: Object.freeze({ ...tool.annotations }) } : undefined),
    metadata,
    execute,
    async invoke(_runContext, inputJson, details) {
      const result = await execute(parseArguments(name, inputJson), details)
      // OpenAI Agents writes whatever a tool with an output schema answers as JSON text: a picture would become megabytes
      // of base64 for the model to read.
      return isObject(tool.outputSchema) ? resultFormats.text(result) : agentsOutput(result)
    },
    toModelOutput({ output }) {
      return aiSdkOutput(output)
    },
    async needsApproval(...context) {
      return typeof needsApproval === 'function'
        ? Boolean(await needsApproval(tool, argumentsIn(context)))
        : needsApproval
    },
    async isEnabled() {
      return true
    },
  })
}

function parseArguments(name, inputJson) {
  // Models leave the text empty where a tool has no arguments.
  if (typeof inputJson === 'string' && inputJson.trim() === '') return {}
  let args
  try {
    args = JSON.parse(inputJson)
  } catch {
    throw invalidArgument('inputJson', `must be JSON text: the arguments for ${name} cannot be parsed`)
  }
  if (!isObject(args))
    throw invalidArgument('inputJson', `must be the text of a JSON object, the arguments for ${name}`)
  return args
}

/** The AI SDK and Mastra ask with (arguments, options), OpenAI Agents with (run context, arguments, call id). */
function argumentsIn(context) {
  const isRunContext = typeof context[0]?.isToolApproved === 'function'
  return context[isRunContext ? 1 : 0]
}

module.exports = { createMcpTools }
