// Right uses compile; wrong uses are marked, and the mark itself fails when they compile.

import * as workflow from '../../index.js'

const definition = {
  id: 'project-tools',
  command: ['/usr/local/bin/node', '/opt/project-tools/mcp-server.js'],
  inheritEnvironment: ['PROJECT_MCP_BRIDGE_TOKEN'],
} as const

export async function theMainJob(): Promise<workflow.McpAgentTool[]> {
  const connection = await workflow.connectMcpServer(definition, {
    allowedInheritedEnvKeys: ['PROJECT_MCP_BRIDGE_TOKEN'],
  })
  try {
    return await workflow.createMcpTools({ connection })
  } finally {
    await connection.close()
  }
}

export async function definitions(): Promise<void> {
  const normalized: workflow.NormalizedMcpServer[] = await workflow.normalizeMcpServers([definition])
  const again = await workflow.normalizeMcpServers(normalized, { env: { PATH: '/usr/bin', HOME: undefined } })
  const timeout: number = again[0]!.timeout
  await workflow.normalizeMcpServers([
    { id: 'a', command: ['/bin/cat'], environment: { LOG: 'debug' }, timeout },
  ])

  // @ts-expect-error a command is a list, never a shell string
  await workflow.normalizeMcpServers([{ id: 'a', command: '/bin/cat -u' }])
  // @ts-expect-error an id is required
  await workflow.normalizeMcpServers([{ command: ['/bin/cat'] }])
  // @ts-expect-error values are strings
  await workflow.normalizeMcpServers([{ id: 'a', command: ['/bin/cat'], environment: { PORT: 80 } }])
  // @ts-expect-error unknown properties are errors
  await workflow.normalizeMcpServers([{ id: 'a', command: ['/bin/cat'], args: [] }])
  // @ts-expect-error one definition is not a list
  await workflow.normalizeMcpServers(definition)
  // @ts-expect-error what was normalised is frozen
  normalized[0]!.timeout = 1
}

export async function connections(signal: AbortSignal): Promise<void> {
  await using connection = await workflow.connectMcpServer(definition, {
    signal,
    connectTimeout: 5_000,
    protocol: '2025-11-25',
    shutdown: { endOfInput: 500 },
    onStderr: (line, id) => void `${id}: ${line}`,
    onClose: ({ exitCode, survivors }) => void [exitCode, survivors.length],
  })
  const result: workflow.McpToolResult = await connection.callTool('read', { path: '/x' }, signal)
  await connection.callTool(
    'read',
    { path: '/x' },
    { timeout: 1_000, onProgress: ({ progress }) => void progress },
  )
  await connection.callTool({ name: 'read', arguments: { path: '/x' } }, undefined, { signal })
  await connection.callTool('list')
  const { tools } = await connection.listTools()
  const schema: workflow.JsonSchema = tools[0]!.inputSchema
  const extra: unknown = tools[0]!.annotations
  const raw: unknown = await connection.request('resources/read', { uri: 'file:///x' })
  const same: workflow.McpServerConnection = connection.ref().unref()
  const traced: workflow.McpServerConnection & { traceId: string } = Object.assign(same, { traceId: '1' })
  const traceId: string = traced.ref().unref().traceId
  const info: workflow.McpCloseInfo = await same.closed
  const first: string | undefined = result.content[0]?.type
  void [schema, extra, raw, traceId, info.ended, first]

  await using group = await workflow.connectMcpServers([definition], { partial: true })
  const found: workflow.McpServerConnection | undefined = group.get('project-tools')
  const code: workflow.McpErrorCode | undefined = group.failures[0]?.error.code
  void [found, code]

  // @ts-expect-error a name that is no revision of the protocol
  await workflow.connectMcpServer(definition, { protocol: '2025-01-01' })
  // @ts-expect-error arguments are an object
  await connection.callTool('read', ['/x'])
  // @ts-expect-error arguments are an object, not JSON text
  await connection.callTool('read', '{"path":"/x"}')
  // @ts-expect-error one server has nothing partial
  await workflow.connectMcpServer(definition, { partial: true })
  // @ts-expect-error the list is replaced, never changed
  connection.tools.push(tools[0]!)
  // @ts-expect-error a connection is got from connectMcpServer
  new workflow.McpServerConnection()
}

export async function agentTools(
  connection: workflow.McpServerConnection,
  group: workflow.McpServerGroup,
  abortSignal: AbortSignal,
): Promise<void> {
  const tools = await workflow.createMcpTools({
    connections: group,
    include: (tool, { id }) => id !== 'x' && tool.name !== 'drop',
    needsApproval: (tool, args) => tool.annotations !== undefined && args !== undefined,
  })
  await workflow.createMcpTools({ connections: new Set([connection]), needsApproval: true })
  const record: Record<string, workflow.McpAgentTool> = workflow.toolFormats.record(tools)
  const wrapped: workflow.McpAgentTool = { ...tools[0]!, execute: args => tools[0]!.execute(args) }
  const result = await wrapped.execute({ a: 1 }, { abortSignal })
  const text: string = workflow.resultFormats.text(result)
  const strict: false = workflow.toolFormats.openaiChat(tools)[0]!.function.strict
  const kind: 'object' = workflow.toolFormats.anthropic(tools)[0]!.input_schema.type
  workflow.toolFormats.gemini(tools, { inlineRefs: true })
  void [record, text, strict, kind]

  // @ts-expect-error tools are made from a connection, not from its tools
  await workflow.createMcpTools({ connection: connection.tools })
  // @ts-expect-error a tool is frozen
  tools[0]!.name = 'other'
  // @ts-expect-error arguments are required, if only {}
  await tools[0]!.execute()
}

export function errors(error: unknown): string {
  if (workflow.McpError.is(error)) {
    const id: string | undefined = error.serverId
    const json: { code: workflow.McpErrorCode; message: string } = error.toJSON()
    if (error.code === 'ERR_MCP_TIMEOUT') return `${id} ${json.message} ${String(error.details.phase)}`
    // @ts-expect-error no such code
    if (error.code === 'ERR_MCP_TIME_OUT') return ''
    // @ts-expect-error details are frozen
    error.details.phase = 'call'
  }
  if (error instanceof workflow.McpError) return error.code
  throw error
}

export async function scripts(signal: AbortSignal): Promise<string[]> {
  workflow.configureMcp({ config: { mcpServers: { exa: { url: 'https://mcp.exa.ai/mcp', anything: [1] } } } })
  const result = await workflow.mcp('exa').call('web_search_exa', { query: 'MCP 2026' }, 30_000)
  const tools = workflow.mcp('exa').listToolsSync({ timeout: 500 })
  workflow.mcpCallSync('exa', 'web_search_exa')
  await workflow.mcpCall('exa', 'web_search_exa', {}, { signal })
  await using project = workflow.openMcpProject({
    from: '/home/me/project',
    allowedOrigins: ['https://mcp.exa.ai'],
    onInputRequired: async (_request, serverName) => ({ [serverName]: { action: 'decline' } }),
  })
  const names: readonly string[] = project.serverNames

  // @ts-expect-error nothing can abort a synchronous call
  workflow.mcp('exa').callSync('web_search_exa', {}, { signal })
  // @ts-expect-error headers are strings, or a function that gives them
  const headers: workflow.McpIntegration['headers'] = { 'X-A': 1 }
  workflow.openMcpProject({ config: { servers: { exa: { url: 'https://a.example', headers } } } })
  // @ts-expect-error unknown options are errors
  workflow.openMcpProject({ allowStdIo: true })
  return [...names, ...tools.map(({ name }) => name), ...result.content.map(({ type }) => type)]
}
