// What the README's code takes for granted: of Node.js what its programs use (so that no @types/node is needed), and
// the names that its fragments leave to the reader.

declare module 'node:url' {
  export function fileURLToPath(url: string): string
}

interface ImportMeta {
  resolve(specifier: string): string
}

declare const process: {
  readonly execPath: string
  readonly env: Readonly<Record<string, string | undefined>>
  cwd(): string
}

declare const definition: import('workflow-mcp').McpServerDefinition
declare const connection: import('workflow-mcp').McpServerConnection
declare const group: import('workflow-mcp').McpServerGroup
declare const tool: import('workflow-mcp').McpAgentTool
declare const input: Record<string, unknown>
declare const signal: AbortSignal

/** The AI SDK and OpenAI Agents, as far as they are named. */
declare const model: unknown
declare function generateText(options: { model: unknown; prompt: unknown; tools: object }): Promise<unknown>
declare class Agent {
  constructor(options: { name: string; tools: readonly object[] })
}
