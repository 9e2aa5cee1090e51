/// <reference lib="esnext.disposable" />

// Nothing here needs @types/node. Loading the package loads no native binary, starts no thread and touches no network:
// the first call that needs the binary loads it.

declare global {
  // lib es2022 alone has no AbortSignal. This merges with the one of lib dom or of @types/node where there is one.
  interface AbortSignal {
    readonly aborted: boolean
  }
}

// ───────────────────────────── definitions ─────────────────────────────

/**
 * What to start, and what it may see. Plain data that names secrets and does not hold them, so it can be stored, logged
 * and sent to a renderer. Secrets of a known form are refused; one that looks like any other word is not recognised.
 * A property that is `undefined` counts as absent; an unknown property is refused (ERR_MCP_INVALID_DEFINITION names the
 * nearest known one).
 *
 * @example
 * { id: 'notes', command: ['/usr/local/bin/node', '/opt/notes/server.js'], inheritEnvironment: ['NOTES_TOKEN'] }
 */
export interface McpServerDefinition {
  /**
   * The server's name: `^[a-z][a-z0-9-]{0,63}$`, unique among the definitions of one call. Every agent tool's name
   * begins with it, and every error of the server carries it as `serverId`.
   */
  id: string
  /**
   * The program and its arguments, handed over as they are; no shell ever sees them. The first element is an absolute
   * path (on Windows with a drive, or UNC) and is not looked up anywhere. Arguments are readable by other users of the
   * machine, so one in the form of a known secret is refused: ERR_MCP_CAPABILITY_IN_DEFINITION.
   */
  command: readonly string[]
  /**
   * Fixed variables for the server. Names match `^[A-Za-z_][A-Za-z0-9_]*$`. A name or value that grants access to
   * something (tokens, passwords, keys) is refused with ERR_MCP_CAPABILITY_IN_DEFINITION: name it in
   * `inheritEnvironment` instead.
   */
  environment?: Readonly<Record<string, string>>
  /**
   * Names of variables that the server gets with the value they have in `options.env`. Each must also be in
   * `allowedInheritedEnvKeys`, else ERR_MCP_ENV_NOT_ALLOWED. A name that is not set there is left out, and the server
   * starts without it; `onWarning` gets WARN_MCP_MISSING_ENV.
   */
  inheritEnvironment?: readonly string[]
  /** How long the handshake, and each call, may take, in ms: an integer from 1_000 to 300_000. Default 60_000. */
  timeout?: number
  /** The server's working directory, an absolute path. Default: that of this process when the call is made. */
  cwd?: string
  /**
   * Which of the server's tools to expose: those in `include` (default: all) that are not in `exclude`. The limit of 256
   * tools counts what is left. A name that the server does not publish is reported to `onWarning`.
   */
  tools?: { include?: readonly string[]; exclude?: readonly string[] }
}

/** What this host lets its servers inherit. Belongs to the host's code, never to a stored definition. */
export interface McpServerOptions {
  /** The names that definitions may inherit. Default: none. Such a name may not be given a fixed value. */
  allowedInheritedEnvKeys?: readonly string[]
  /**
   * Where inherited values, and the few harmless variables that every server gets (PATH, HOME, LANG and the like), are
   * read from. Default `process.env`. It stands in for all of it: without `...process.env` a server has no PATH and no
   * HOME, and with it a name that you leave out may come with an old value from there.
   */
  env?: Readonly<Record<string, string | undefined>>
}

/**
 * A definition with every default filled in. Frozen, plain JSON, without inherited values; it is a valid definition
 * itself, and normalising it again gives the same.
 */
export interface NormalizedMcpServer extends McpServerDefinition {
  readonly id: string
  readonly command: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly inheritEnvironment: readonly string[]
  readonly timeout: number
}

/**
 * Checks 0 to 8 definitions and fills in defaults; starts nothing and changes nothing of yours. The options of a connect
 * are accepted, and checked, here too.
 *
 * Rejects on the first fault in document order. `details.path` says where (`servers[1].command[0]`). Codes:
 * ERR_MCP_INVALID_DEFINITION, ERR_MCP_CAPABILITY_IN_DEFINITION, ERR_MCP_ENV_NOT_ALLOWED, ERR_MCP_TOO_MANY_SERVERS, and
 * ERR_MCP_INVALID_ARGUMENT for a bad option.
 */
export function normalizeMcpServers(
  servers: readonly McpServerDefinition[],
  options?: McpConnectOptions,
): Promise<NormalizedMcpServer[]>

// ───────────────────────────── connections ─────────────────────────────

/**
 * How to connect. Callbacks run on the thread that made the connection, never before `connectMcpServer` has returned its
 * promise; the last argument is the server's id, so that one options object serves several servers. What a callback
 * throws is an uncaught exception of the host.
 */
export interface McpConnectOptions extends McpServerOptions {
  /** Aborts the connect: the server is stopped and the promise rejects with `signal.reason`. Later aborts do nothing. */
  signal?: AbortSignal
  /** One deadline over start, handshake and tool listing, in ms: an integer from 1 to 2^31 - 1. Default: the definition's `timeout`. */
  connectTimeout?: number
  /**
   * Which revision of the protocol to speak. `'auto'` (default) begins with `initialize` and turns to the 2026-07-28
   * revision when the server says that it speaks nothing older. `'legacy'` and `'modern'` keep to one side of that line:
   * `'modern'` rejects an older server with ERR_MCP_PROTOCOL_VERSION, or with the ERR_MCP_HTTP of one that refuses over HTTP and
   * does not say why.
   */
  protocol?:
    | 'auto'
    | 'legacy'
    | 'modern'
    | '2024-11-05'
    | '2025-03-26'
    | '2025-06-18'
    | '2025-11-25'
    | '2026-07-28'
  /**
   * The longest message accepted from the server, in bytes: 1 KiB to 512 MiB, default 64 MiB. A longer answer rejects
   * its own call with ERR_MCP_MESSAGE_TOO_LARGE; the connection lives on. A line that answers no call, or runs on beyond
   * 4 times the limit, closes the connection, with the reason `'protocol-error'`.
   */
  maxMessageBytes?: number
  /**
   * How patient `close()` is: ms to wait after the server's input has ended (default 2_000), then ms to wait after
   * SIGTERM (default 2_000); integers from 0 to 300_000. What is left then is killed.
   */
  shutdown?: { endOfInput?: number; terminate?: number }
  /** Linux and macOS: a small helper process that stops the servers when this process dies hard. Default true. */
  guardian?: boolean
  /**
   * Each line that the server writes to stderr, without secrets, cut at 8 KiB. While this thread is busy, at most 4,096 lines, log
   * messages and warnings of each server, and 16 MiB of them, wait for it; `diagnostics().droppedNotifications` counts the others.
   */
  onStderr?(line: string, serverId: string): void
  /** Each log message that the server sends through the protocol. */
  onLog?(message: { level: string; logger?: string; data: unknown }, serverId: string): void
  /** The server's tools changed; `connection.tools` already holds the new list. At most ten times a second. */
  onToolsChanged?(tools: readonly McpTool[], serverId: string): void
  /**
   * Things worth knowing that are no failure: an inherited variable that is not set (WARN_MCP_MISSING_ENV), text on stdout
   * that is no message (WARN_MCP_STDOUT_NOISE), tools that were skipped (WARN_MCP_TOOL_SKIPPED, WARN_MCP_DUPLICATE_TOOL,
   * WARN_MCP_REPEATED_PAGE), a name in `tools.include` that the server does not publish (WARN_MCP_UNKNOWN_TOOL), a change
   * of the tools that could not be read (WARN_MCP_TOOLS_NOT_REFRESHED), a guardian that could not start (WARN_MCP_GUARDIAN).
   */
  onWarning?(
    warning: { code: string; message: string; details: Readonly<Record<string, unknown>> },
    serverId: string,
  ): void
  /** The connection ended, for whatever reason. Called once. */
  onClose?(info: McpCloseInfo, serverId: string): void
}

/**
 * Starts one server and resolves once its tools are known. When this rejects, its processes are gone; only after
 * ERR_MCP_TIMEOUT and an abort nobody is kept waiting for a server that takes longer than 150 ms to leave, and the
 * stopping goes on behind the rejected promise.
 *
 * Rejects with the codes of {@link normalizeMcpServers}, with ERR_MCP_SPAWN, ERR_MCP_HANDSHAKE,
 * ERR_MCP_PROTOCOL_VERSION, ERR_MCP_TIMEOUT, ERR_MCP_TOO_MANY_TOOLS (more than 256), ERR_MCP_TOO_MANY_PAGES (more than
 * 64), ERR_MCP_NATIVE_LOAD, or with `signal.reason`. A first list of tools that the server refuses or that cannot be read is
 * ERR_MCP_RPC, ERR_MCP_INVALID_MESSAGE or ERR_MCP_MESSAGE_TOO_LARGE.
 */
export function connectMcpServer(
  definition: McpServerDefinition,
  options?: McpConnectOptions,
): Promise<McpServerConnection>

/**
 * Starts 1 to 8 servers side by side. By default it is all or nothing: the first failure closes the others and rejects.
 * With `partial: true` it resolves with what connected and what failed. All definitions are checked before the first
 * server starts, and one that breaks a rule rejects, with `partial: true` too: check each with
 * {@link normalizeMcpServers} to keep the others.
 */
export function connectMcpServers(
  definitions: readonly McpServerDefinition[],
  options?: McpConnectOptions & { partial?: boolean },
): Promise<McpServerGroup>

/** Several connections that are closed together. `await using` closes them too. */
export interface McpServerGroup extends AsyncDisposable {
  /** What connected, in the order of the definitions. */
  readonly connections: readonly McpServerConnection[]
  /** What did not; always empty without `partial: true`. */
  readonly failures: readonly { id: string; error: McpError }[]
  /** The connection of that server, or undefined where there is none. */
  get(id: string): McpServerConnection | undefined
  /** Closes every connection. Idempotent; never rejects because one of them ended badly. */
  close(): Promise<void>
}

/** A tool as the server published it: frozen, every field kept, known to us or not. */
export interface McpTool {
  /** The server's own name for it: what `callTool` takes. */
  readonly name: string
  readonly description?: string
  /** As published, untouched: any dialect of JSON Schema, or a boolean. */
  readonly inputSchema: JsonSchema
  /** `title`, `outputSchema`, `annotations`, `icons`, `_meta` and whatever else came along. */
  readonly [field: string]: unknown
}

/** What a tool answered, untouched except for two defaults. */
export interface McpToolResult {
  /** What to show the model; `[]` where the server sent none. Kinds we do not know pass through. */
  content: McpContent[]
  /** The *tool* failed and `content` says how; `false` where the server said nothing. A failed call rejects instead. */
  isError: boolean
  /** The answer as data. Not checked against `outputSchema`. */
  structuredContent?: unknown
  [field: string]: unknown
}

/** How to make one call. */
export interface McpCallOptions {
  /** Cancels: the server is told, and the call rejects with `signal.reason` at once. */
  signal?: AbortSignal
  /** How long this call may take, in ms, from 1 to 2^31 - 1, so also beyond 300_000. Default: the definition's `timeout`. */
  timeout?: number
  /** Each progress report restarts `timeout`. Default false. */
  resetTimeoutOnProgress?: boolean
  /** A bound that progress does not move, in ms, from 1 to 2^31 - 1. Default: none. */
  maxTotalTimeout?: number
  /** Progress in the order it came, the last report always, none after the result. Reports in between may be skipped. */
  onProgress?(progress: McpProgress): void
  /** The same, as the official client spells it. */
  onprogress?(progress: McpProgress): void
  /** Sent along as `_meta` (trace context and the like). */
  meta?: Readonly<Record<string, unknown>>
}

/** How far a call has come. */
export interface McpProgress {
  progress: number
  total?: number
  message?: string
}

/**
 * A running server. An idle connection does not keep Node alive; a pending call does. When nothing holds the connection
 * any more (no variable, no agent tool made from it, no pending call) it is collected and its server is stopped;
 * `await using` and `close()` do so at a time of your choosing.
 */
export interface McpServerConnection extends AsyncDisposable {
  /** The definition's `id`. */
  readonly id: string
  /** The server's tools after `tools.include` and `tools.exclude`; frozen. Replaced as a whole when they change. */
  readonly tools: readonly McpTool[]
  /**
   * Calls a tool and resolves with its result, also when the tool itself failed (`isError: true`).
   *
   * Rejects with `signal.reason`, or ERR_MCP_TOOL_NOT_FOUND (`details.nearest`; nothing was sent),
   * ERR_MCP_INVALID_ARGUMENT (`args` is not a JSON object), ERR_MCP_TIMEOUT, ERR_MCP_RPC (the server refused:
   * `details.rpcCode`, `details.data`), ERR_MCP_INVALID_MESSAGE, ERR_MCP_MESSAGE_TOO_LARGE, ERR_MCP_INPUT_REQUIRED.
   * What is pending when the connection ends rejects with ERR_MCP_EXITED, ERR_MCP_CLOSED or ERR_MCP_MESSAGE_TOO_LARGE; every
   * later call with ERR_MCP_CLOSED, and nothing was sent (its `cause` is the ERR_MCP_EXITED of a server that left by itself).
   */
  callTool(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    signalOrOptions?: AbortSignal | McpCallOptions,
  ): Promise<McpToolResult>
  /**
   * The official client's call shape, so that a connection drops into code that was written for it. Version 2 of that
   * client has no `resultSchema`: options may also stand in its place.
   */
  callTool(
    params: { name: string; arguments?: Readonly<Record<string, unknown>> },
    resultSchema?: unknown,
    options?: McpCallOptions,
  ): Promise<McpToolResult>
  /**
   * Asks the server for its tools again, all pages, puts the answer into `tools`, and resolves with it. `params` is
   * ignored; of the options `signal`, `timeout`, `maxTotalTimeout` and `meta` count.
   */
  listTools(params?: unknown, options?: McpCallOptions): Promise<{ tools: McpTool[] }>
  /** Any other request of the protocol (`resources/read`, `prompts/get` …): its raw result. */
  request(
    method: string,
    params?: Readonly<Record<string, unknown>>,
    options?: McpCallOptions,
  ): Promise<unknown>
  /**
   * Ends the server's input, then SIGTERM, then SIGKILL, each after the wait that `shutdown` sets; pending calls reject
   * with ERR_MCP_CLOSED at once. Resolves when the server's whole process group is gone, or with what could not be ended.
   * Descendants that left the group (`setsid`) are ended on Linux as far as they can be found; else they are not reached.
   * Idempotent.
   */
  close(): Promise<McpCloseInfo>
  /** Keeps Node alive while the connection is open. */
  ref(): this
  /** Undoes `ref()`. */
  unref(): this

  /** The process id of the server. */
  readonly pid: number
  /** The revision both sides speak, such as `2025-11-25`. */
  readonly protocolVersion: string
  readonly serverInfo?: { name: string; version?: string; [field: string]: unknown }
  readonly serverCapabilities: Readonly<Record<string, unknown>>
  /** What the server wants a model to know about using it. */
  readonly instructions?: string
  /**
   * Resolves when the connection has ended, for whatever reason; never rejects. Waiting for it does not keep Node alive:
   * call `ref()` for that.
   */
  readonly closed: Promise<McpCloseInfo>
  /** The last lines of the server's stderr without secrets, at most 64 KiB. */
  stderr(): string
  /**
   * Counters and small samples for bug reports: skipped stdout lines, bytes, ms of the handshake, `requests` and
   * `pendingRequests` (those of this package included), `missingEnv`.
   */
  diagnostics(): Readonly<Record<string, unknown>>
}

/** How a connection ended. */
export interface McpCloseInfo {
  /**
   * Why: `close()`; the server left by itself; nothing held the connection any more (`'aborted'`); the server broke the
   * protocol.
   */
  reason: 'closed' | 'exited' | 'aborted' | 'protocol-error'
  /** The exit code of the server's own process; null where a signal ended it. */
  exitCode: number | null
  /** The signal that ended the server's own process, such as `SIGKILL`; else null. */
  signal: string | null
  /**
   * What it took to end the server, everything in its process group, and the descendants outside of it that were found. A server over
   * HTTP is never ended, only its session: `'by-itself'`.
   */
  ended: 'by-itself' | 'end-of-input' | 'terminate' | 'kill'
  /** Process ids of those that even SIGKILL did not end within 2 s; normally empty. */
  survivors: readonly number[]
}

// ───────────────────────────── agent tools ─────────────────────────────

/**
 * One plain, frozen object that the AI SDK, OpenAI Agents and Mastra accept as it is. It holds its connection, which is
 * therefore not collected while the tool is reachable. On a closed connection the definitions stay readable and
 * `execute` rejects with ERR_MCP_CLOSED.
 */
export interface McpAgentTool {
  readonly type: 'function'
  /**
   * `${serverId}__${toolName}`, unique in the array. It matches `^[A-Za-z0-9_-]{1,64}$`: other characters become `_`, and
   * a name that had to be changed or cut ends in `_` and 8 hex digits of a hash of the original, whatever else is listed.
   * The originals are in `metadata`.
   */
  readonly name: string
  readonly title?: string
  /** As the server gave it, or `''`. Untrusted text that a model will read. */
  readonly description: string
  /** Plain JSON Schema of the arguments; `type: 'object'` and `properties` are always there, the rest is as published. */
  readonly parameters: JsonSchemaObject
  /**
   * The same, and a Standard Schema: `~standard` is not enumerable, so it stays out of JSON. It accepts every value
   * unless the tools were made with `validate: true`.
   */
  readonly inputSchema: JsonSchemaObject
  /** JSON Schema of `structuredContent`, where the server published one. */
  readonly outputSchema?: JsonSchemaObject
  /** Servers' schemas do not keep to the subset that providers call strict. */
  readonly strict: false
  /** The server's hints (`readOnlyHint`, `destructiveHint` …), untrusted. */
  readonly annotations?: Readonly<Record<string, unknown>>
  readonly metadata: { readonly serverId: string; readonly toolName: string }
  /**
   * Calls the tool. A failed tool resolves with `isError: true`; a failed call rejects as
   * {@link McpServerConnection.callTool} does. For progress or another timeout than the definition's call that, with
   * `metadata.toolName`. Of the context it heeds the signal and ignores the rest: loops pass contexts of their own.
   */
  execute(
    args: Readonly<Record<string, unknown>>,
    context?: { abortSignal?: AbortSignal; signal?: AbortSignal },
  ): Promise<McpToolResult>
  /**
   * What OpenAI Agents calls: arguments as JSON text (empty text is `{}`), and a string or a list of text, image and
   * file items back; text only where the tool has an `outputSchema`. Text that is not a JSON object rejects with ERR_MCP_INVALID_ARGUMENT.
   */
  invoke(
    runContext: unknown,
    inputJson: string,
    details?: { signal?: AbortSignal },
  ): Promise<string | unknown[]>
  /** What the AI SDK calls: the result as it goes to the model; images as files, a failed tool as an error. */
  toModelOutput(options: { output: McpToolResult }): unknown
  /** The answer of `needsApproval` of the source; false without one. */
  needsApproval(...context: unknown[]): Promise<boolean>
  /** Always true. */
  isEnabled(...context: unknown[]): Promise<boolean>
}

/** What to make agent tools from: `connection`, `connections` or both; at least one connection, no two of one id. */
export interface McpToolSource {
  connection?: McpServerConnection
  connections?: Iterable<McpServerConnection> | McpServerGroup
  /** Which tools to take. Default: all. */
  include?(tool: McpTool, connection: McpServerConnection): boolean
  /** Whether a person has to agree to a call first; asked by the agent's loop, not by `execute`. Default false. */
  needsApproval?: boolean | ((tool: McpTool, args: unknown) => boolean | Promise<boolean>)
  /**
   * Check arguments against `inputSchema` before sending: `execute` then rejects with ERR_MCP_INVALID_ARGUMENT and
   * nothing is sent. What the check calls wrong is wrong in every draft of JSON Schema; rules that it does not read
   * (`pattern`, `format`, `not`, `if`, references to elsewhere) are left to the server. Default false.
   */
  validate?: boolean
}

/**
 * The tools of one or more connections as an agent's loop takes them, in the order of the connections and of their tools.
 * A picture of the moment: call it again after `onToolsChanged`. Rejects with ERR_MCP_INVALID_ARGUMENT.
 *
 * @example
 * const tools = await createMcpTools({ connection })
 * await generateText({ model, tools: toolFormats.record(tools), prompt })   // AI SDK
 * new Agent({ name: 'assistant', tools })                                   // OpenAI Agents
 */
export function createMcpTools(source: McpToolSource): Promise<McpAgentTool[]>

/** Tools as the request of each provider wants them, for people who write their own loop. Pure functions. */
export const toolFormats: {
  /** `{ [name]: tool }`, as `generateText({ tools })` and Mastra take them. */
  record(tools: readonly McpAgentTool[]): Record<string, McpAgentTool>
  /** `tools` of OpenAI's Responses API. */
  openaiResponses(tools: readonly McpAgentTool[]): {
    type: 'function'
    name: string
    description: string
    parameters: Record<string, unknown>
    strict: false
  }[]
  /** `tools` of OpenAI's Chat Completions API, and of the many servers that speak it. */
  openaiChat(tools: readonly McpAgentTool[]): {
    type: 'function'
    function: { name: string; description: string; parameters: Record<string, unknown>; strict: false }
  }[]
  /** `tools` of Anthropic's Messages API. */
  anthropic(
    tools: readonly McpAgentTool[],
  ): { name: string; description: string; input_schema: { type: 'object'; [field: string]: unknown } }[]
  /**
   * `config.tools` of Google's GenAI SDK. `inlineRefs` (default false) replaces each `$ref` into the same schema by what
   * it points at; where a schema contains itself, the inner one becomes `{}` with its description.
   */
  gemini(
    tools: readonly McpAgentTool[],
    options?: { inlineRefs?: boolean },
  ): { functionDeclarations: { name: string; description: string; parametersJsonSchema: unknown }[] }[]
}

/**
 * A result as each provider's next message wants it: everything but the id (and name) of the call, which you add.
 * Media that an API does not take there becomes a short note in its place. Pure functions. What has no array `content`, an
 * error say, throws ERR_MCP_INVALID_ARGUMENT; what tells a model of a failed call is the format of
 * `{ content: [{ type: 'text', text: error.message }], isError: true }`.
 *
 * @example
 * input.push(Object.assign({ call_id: call.call_id }, resultFormats.openaiResponses(result)))
 * messages.push(Object.assign({ tool_call_id: call.id }, resultFormats.openaiChat(result)))
 * content.push(Object.assign({ tool_use_id: block.id }, resultFormats.anthropic(result)))
 * parts.push({ functionResponse: Object.assign({ id: call.id, name: call.name }, resultFormats.gemini(result)) })
 */
export const resultFormats: {
  /** `{ type: 'function_call_output', output }`. */
  openaiResponses(result: McpToolResult): unknown
  /** `{ role: 'tool', content }`; text only. */
  openaiChat(result: McpToolResult): unknown
  /** `{ type: 'tool_result', content, is_error? }`. */
  anthropic(result: McpToolResult): unknown
  /** `{ response: { output } | { error }, parts? }`. */
  gemini(result: McpToolResult): unknown
  /** Everything as one text. */
  text(result: McpToolResult): string
}

// ───────────────────────── workflow scripts ─────────────────────────

/**
 * A project's servers by their names, in the shapes that project files have: `mcpServers` (Claude, Cursor) or `servers`
 * (VS Code); a name stands in one of them. Other properties are ignored: they belong to other programs.
 */
export interface McpProjectConfig {
  mcpServers?: Record<string, McpIntegration>
  servers?: Record<string, McpIntegration>
  [field: string]: unknown
}

/**
 * One server of a project. It is judged when it is used first, so a broken one breaks no other: then ERR_MCP_CONFIG names
 * the file, the line and what is wrong.
 *
 * In `url`, `headers`, `env` and `args` the placeholders `${NAME}`, `${env:NAME}` and `${NAME:-default}` stand for
 * variables of `options.env`. Each name must be in `allowedInheritedEnvKeys`, else ERR_MCP_ENV_NOT_ALLOWED; one that is
 * not set and has no default is ERR_MCP_CONFIG. A secret may also be written down; it is kept out of errors and logs like
 * a variable's value, and `onWarning` gets WARN_MCP_LITERAL_CAPABILITY once.
 */
export interface McpIntegration {
  /**
   * Default: `'http'` (streamable HTTP) where there is a `url`, else `'stdio'`. `'sse'`, the transport of 2024-11-05, is
   * refused with what to use in its place.
   */
  type?: 'http' | 'streamable-http' | 'stdio' | 'sse'
  /** `https:`, or `http:`; without user name, password or fragment. */
  url?: string
  /**
   * Sent with every request, to this server's origin only; what may be a secret only over `https:` or to this machine. In
   * code also a function: it is asked before the first request and once more when the server answers 401, one time for all
   * calls that wait. When it rejects, these calls reject with ERR_MCP_AUTH_REQUIRED and its reason as the `cause`, and the
   * next call asks again.
   */
  headers?: Record<string, string> | (() => Promise<Record<string, string>>)
  /** The name of the variable that holds the bearer token: `Authorization: Bearer …`. */
  bearerTokenEnv?: string
  /**
   * A program to start, in place of a `url`; for projects opened with `allowStdio`. A name is looked up in PATH of
   * `options.env`, a relative path in `cwd`.
   */
  command?: string
  args?: readonly string[]
  /** Fixed variables of the program, beside the few that every server gets. */
  env?: Record<string, string>
  /** The program's working directory; a relative one starts at the file's folder. Default: that of this process. */
  cwd?: string
  /** How long the opening, and each call, may take, in ms: an integer from 1_000 to 300_000. Default 60_000. */
  timeout?: number
  protocol?: McpConnectOptions['protocol']
  /** `true`: the name is not there (ERR_MCP_SERVER_NOT_FOUND). */
  disabled?: boolean
  [field: string]: unknown
}

/** Which project a script gets, and what its servers may be sent. An unknown property is ERR_MCP_INVALID_ARGUMENT. */
export interface McpProjectOptions extends McpServerOptions {
  /** Also start servers that are commands. Default false: `mcp(name)` of one throws ERR_MCP_SERVER_HAS_NO_URL. */
  allowStdio?: boolean
  /**
   * The folder in which the search for a project file begins. It goes upwards as far as a repository root or the home
   * folder and takes the first of `.mcp.json`, `.cursor/mcp.json`, `.vscode/mcp.json` that is there. Default: the current
   * folder.
   */
  from?: string
  /** The configuration itself, or the path of a file that the host trusts; then nothing is searched for. */
  config?: string | McpProjectConfig
  /**
   * Where a file that was found by searching may send variables, such as `https://mcp.example.com`; else its placeholders
   * are ERR_MCP_ENV_NOT_ALLOWED: anybody may have put the file there. Default: nowhere. A `config` is exempt.
   */
  allowedOrigins?: readonly string[]
  /**
   * Answers what servers ask in mid-call. It gets `{ inputRequests }`, the requests by keys of the server's choosing, and
   * gives the results by the same keys. A server older than 2026-07-28 asks one thing at a time, under the key `request`.
   * After 10 rounds, or when this rejects (the `cause`), the call rejects with ERR_MCP_INPUT_REQUIRED; without this function
   * it does so at once. Each round has the call's whole timeout; the time this function takes does not count.
   */
  onInputRequired?(request: unknown, serverName: string): Promise<unknown>
  /**
   * Things worth knowing that are no failure: WARN_MCP_LITERAL_CAPABILITY, WARN_MCP_TOOLS_NOT_LISTED (headers of calls may need the
   * schemas of tools), WARN_MCP_EXTRA_CERTIFICATES (NODE_EXTRA_CA_CERTS cannot be used), and those of
   * {@link McpConnectOptions.onWarning}.
   */
  onWarning?(
    warning: { code: string; message: string; details: Readonly<Record<string, unknown>> },
    serverName: string,
  ): void
}

/**
 * A project's servers, open until `close()`, or until nothing holds the project any more: no variable, no client of it, no
 * pending call. Projects share nothing. An idle one does not keep Node alive; a pending call does.
 */
export interface McpProject extends AsyncDisposable {
  /** The names that `mcp` takes, without those that are disabled. */
  readonly serverNames: readonly string[]
  /** The file that the configuration came from; undefined where there is none. */
  readonly file?: string
  /**
   * The server of that name; nothing is opened yet. Throws ERR_MCP_SERVER_NOT_FOUND (`details.known`, `details.nearest`,
   * `details.looked`) or ERR_MCP_SERVER_HAS_NO_URL.
   */
  mcp(serverName: string): McpClient
  /** Ends every session; pending and later calls reject with ERR_MCP_CLOSED. Resolves when nothing is left. Idempotent. */
  close(): Promise<void>
}

/**
 * Reads a project's configuration and starts nothing. Throws ERR_MCP_CONFIG for a file that is malformed, unreadable or,
 * found by searching, not this user's alone to write (`details.file`, `line`, `reason`), and ERR_MCP_INVALID_ARGUMENT for
 * a bad option. Where no file is found the project has no servers.
 */
export function openMcpProject(options?: McpProjectOptions): McpProject

/**
 * Sets the project that `mcp`, `mcpCall` and `mcpCallSync` use in this thread, and closes the one before. Throws as
 * {@link openMcpProject}, and then changes nothing. Without it the first use opens the project of the current folder.
 */
export function configureMcp(options: McpProjectOptions): void

/**
 * One server, by its name in the project. Its session is opened by the first call, once however many callers race, shared
 * by all of them and opened again after it was lost. After an opening that failed, calls reject with the same error until
 * the next attempt, 100 ms later, then 200, up to 5 s.
 *
 * Options: a number is the timeout in ms, at least 1_000 (a smaller one is refused: seconds are a common slip); an object's
 * `timeout` may say less. The timeout covers the wait for the session too. Default: that of the server, else 60_000.
 *
 * The synchronous forms block this thread and nothing else, with the same timeouts and errors, also while asynchronous
 * calls are under way. What would need the blocked thread itself, a `headers` function that has to be asked or
 * `onInputRequired`, is ERR_MCP_WOULD_BLOCK at once. In an Electron main process they freeze every window until the answer is
 * there; use them in a Worker.
 */
export interface McpClient {
  readonly name: string
  /**
   * Calls a tool and resolves with its result, also when the tool itself failed (`isError: true`). The name is sent as it
   * is: the server judges it.
   *
   * Rejects as {@link McpServerConnection.callTool} does, except that there is no list to look the name up in; and with
   * ERR_MCP_CONFIG, ERR_MCP_ENV_NOT_ALLOWED, ERR_MCP_CONNECT, ERR_MCP_HTTP, ERR_MCP_AUTH_REQUIRED, or what a start rejects with.
   */
  call(
    tool: string,
    args?: Readonly<Record<string, unknown>>,
    options?: number | McpCallOptions,
  ): Promise<McpToolResult>
  /** The same for scripts that cannot await. Throws what `call` rejects with. */
  callSync(
    tool: string,
    args?: Readonly<Record<string, unknown>>,
    options?: number | { timeout?: number; meta?: Readonly<Record<string, unknown>> },
  ): McpToolResult
  /** Asks the server for its tools, all pages; at most 256. */
  listTools(options?: number | McpCallOptions): Promise<McpTool[]>
  listToolsSync(options?: number | { timeout?: number }): McpTool[]
}

/**
 * A server of the current project, by its name. Throws as {@link McpProject.mcp}; without {@link configureMcp} also as
 * {@link openMcpProject}.
 *
 * @example
 * const result = await mcp('exa').call('web_search_exa', { query: 'MCP 2026' })
 * for (const item of result.content) if (item.type === 'text') console.log(item.text)
 */
export function mcp(serverName: string): McpClient
/** `mcp(serverName).call(tool, args, options)`; it never throws, but rejects. */
export function mcpCall(
  serverName: string,
  tool: string,
  args?: Readonly<Record<string, unknown>>,
  options?: number | McpCallOptions,
): Promise<McpToolResult>
/** `mcp(serverName).callSync(tool, args, options)`. */
export function mcpCallSync(
  serverName: string,
  tool: string,
  args?: Readonly<Record<string, unknown>>,
  options?: number | { timeout?: number },
): McpToolResult

// ───────────────────────────── errors ─────────────────────────────

/**
 * What every failure rejects with, except cancelling, which rejects with `signal.reason`. No message, stack, cause,
 * inspection or JSON of it holds a secret.
 */
export class McpError extends Error {
  readonly name: 'McpError'
  /** What went wrong, by what can be done about it. */
  readonly code: McpErrorCode
  /** The `id` of the definition it is about, where it is about one. */
  readonly serverId?: string
  /** Frozen; which fields there are depends on the code. */
  readonly details: Readonly<Record<string, unknown>>
  /** Plain data without stack and cause, for logs and for Electron's IPC. */
  toJSON(): {
    name: 'McpError'
    code: McpErrorCode
    message: string
    serverId?: string
    details: Record<string, unknown>
  }
  /** Whether it is an McpError, also one of another copy of this package or of another context. */
  static is(value: unknown): value is McpError
}

/** The `code` of an {@link McpError}, with the fields of `details`. */
export type McpErrorCode =
  /** A definition breaks a rule (`nearest` of an unknown name, or null). `path`, such as servers[1].command[0], `reason`. */
  | 'ERR_MCP_INVALID_DEFINITION'
  /** A definition holds what grants access to something. `path`, `key`, `why` ('allowed-key', 'name' or 'value'). */
  | 'ERR_MCP_CAPABILITY_IN_DEFINITION'
  /** A variable is asked for that `allowedInheritedEnvKeys` does not name (`nearest`), or for an origin outside `allowedOrigins` (`origin`). `path`, `key`. */
  | 'ERR_MCP_ENV_NOT_ALLOWED'
  /** More than 8 definitions in one call. `limit`, `count`. */
  | 'ERR_MCP_TOO_MANY_SERVERS'
  /** More than 256 tools after filtering; the server is stopped. `limit`, `count`. */
  | 'ERR_MCP_TOO_MANY_TOOLS'
  /** The list of tools did not end within 64 pages. `limit`, `count`. */
  | 'ERR_MCP_TOO_MANY_PAGES'
  /** The process could not be started. `errno`, `path`, `what` ('command', 'cwd' or 'interpreter'). */
  | 'ERR_MCP_SPAWN'
  /** It started and did not become a server (`rpcCode` where it refused, `searchPath`, its PATH, where it missed a file). `exitCode`, `signal`, `stderr`, `stdoutNoise`, `missingEnv`, `phase` ('connect' or 'list'), `ms`. */
  | 'ERR_MCP_HANDSHAKE'
  /** No common revision of the protocol. `offered`, `answered`. */
  | 'ERR_MCP_PROTOCOL_VERSION'
  /** A deadline passed; that of a start also has the fields of ERR_MCP_HANDSHAKE. `phase` ('connect', 'list' or 'call'), `ms`. */
  | 'ERR_MCP_TIMEOUT'
  /** The server left while the call was pending. `exitCode`, `signal`, `stderr` (its last 4 KiB). */
  | 'ERR_MCP_EXITED'
  /** The connection was closed while the call was pending; or it had ended before, and nothing was sent. */
  | 'ERR_MCP_CLOSED'
  /** The server has no such tool; nothing was sent. `tool`, `nearest`. */
  | 'ERR_MCP_TOOL_NOT_FOUND'
  /** The server answered with an error. `rpcCode`, `data`. */
  | 'ERR_MCP_RPC'
  /** The server's answer cannot be read. */
  | 'ERR_MCP_INVALID_MESSAGE'
  /** The server's answer is longer than `maxMessageBytes`. `limit`. */
  | 'ERR_MCP_MESSAGE_TOO_LARGE'
  /** The server asked for input in mid-call, and nobody is there to give it. */
  | 'ERR_MCP_INPUT_REQUIRED'
  /** Arguments that are not a JSON object or break a checked schema (`tool`), a bad option (`nearest`), or no result where one is formatted. `path`, `reason`. */
  | 'ERR_MCP_INVALID_ARGUMENT'
  /** A project file is unreadable, untrusted or malformed; or one server of it cannot be used as it is written (`path`). `file`, `line`, `reason`. */
  | 'ERR_MCP_CONFIG'
  /** The project has no server of that name, or it is disabled (`disabled`, true). `known`, `nearest`, `looked` (the folders, where no file was found), `file`. */
  | 'ERR_MCP_SERVER_NOT_FOUND'
  /** The project's server of that name is a command, and commands were not allowed; or it has neither url nor command. `file`. */
  | 'ERR_MCP_SERVER_HAS_NO_URL'
  /** The server refused over HTTP. `status`, `body` (its first 2 KiB); `rpcCode` and `data` of a JSON-RPC error, `location` of a redirect, `retryAfter`. */
  | 'ERR_MCP_HTTP'
  /** The server wants other credentials. `status`, `wwwAuthenticate`. */
  | 'ERR_MCP_AUTH_REQUIRED'
  /** The server could not be reached: name, certificate or connection refused. */
  | 'ERR_MCP_CONNECT'
  /** A synchronous call would need the thread that it blocks. */
  | 'ERR_MCP_WOULD_BLOCK'
  /** The native binary is missing or does not load here. `platform`, `arch`, `libc`, `tried`. */
  | 'ERR_MCP_NATIVE_LOAD'
  /** A fault of this package. */
  | 'ERR_MCP_INTERNAL'

/** A JSON Schema of any dialect. */
export type JsonSchema = JsonSchemaObject | boolean
/** A JSON Schema that is an object. */
export type JsonSchemaObject = { readonly [key: string]: unknown }
/** One piece of content: `text`, `image`, `audio`, `resource`, `resource_link`, or a kind that came after this package. */
export type McpContent = { type: string; [field: string]: unknown }
