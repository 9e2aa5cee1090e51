// Compiles only while index.d.ts says exactly what contract.d.ts says. names.test.mjs proves that no name is left out.

import type * as actual from '../../index.js'
import type * as contract from './contract.js'

/** Assignable both ways is not enough: that lets an optional or readonly property, or an `any`, slip through. */
type Identical<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2
    ? [A, B] extends [B, A]
      ? true
      : false
    : false

type Agreement = {
  McpServerDefinition: Identical<actual.McpServerDefinition, contract.McpServerDefinition>
  McpServerOptions: Identical<actual.McpServerOptions, contract.McpServerOptions>
  NormalizedMcpServer: Identical<actual.NormalizedMcpServer, contract.NormalizedMcpServer>
  McpConnectOptions: Identical<actual.McpConnectOptions, contract.McpConnectOptions>
  McpServerGroup: Identical<actual.McpServerGroup, contract.McpServerGroup>
  McpTool: Identical<actual.McpTool, contract.McpTool>
  McpToolResult: Identical<actual.McpToolResult, contract.McpToolResult>
  McpCallOptions: Identical<actual.McpCallOptions, contract.McpCallOptions>
  McpProgress: Identical<actual.McpProgress, contract.McpProgress>
  McpServerConnection: Identical<actual.McpServerConnection, contract.McpServerConnection>
  McpCloseInfo: Identical<actual.McpCloseInfo, contract.McpCloseInfo>
  McpAgentTool: Identical<actual.McpAgentTool, contract.McpAgentTool>
  McpToolSource: Identical<actual.McpToolSource, contract.McpToolSource>
  McpProjectConfig: Identical<actual.McpProjectConfig, contract.McpProjectConfig>
  McpIntegration: Identical<actual.McpIntegration, contract.McpIntegration>
  McpProjectOptions: Identical<actual.McpProjectOptions, contract.McpProjectOptions>
  McpProject: Identical<actual.McpProject, contract.McpProject>
  McpClient: Identical<actual.McpClient, contract.McpClient>
  McpError: Identical<actual.McpError, contract.McpError>
  McpErrorCode: Identical<actual.McpErrorCode, contract.McpErrorCode>
  JsonSchema: Identical<actual.JsonSchema, contract.JsonSchema>
  JsonSchemaObject: Identical<actual.JsonSchemaObject, contract.JsonSchemaObject>
  McpContent: Identical<actual.McpContent, contract.McpContent>
  normalizeMcpServers: SameValue<'normalizeMcpServers'>
  connectMcpServer: SameValue<'connectMcpServer'>
  connectMcpServers: SameValue<'connectMcpServers'>
  createMcpTools: SameValue<'createMcpTools'>
  toolFormats: SameValue<'toolFormats'>
  openMcpProject: SameValue<'openMcpProject'>
  configureMcp: SameValue<'configureMcp'>
  mcp: SameValue<'mcp'>
  mcpCall: SameValue<'mcpCall'>
  mcpCallSync: SameValue<'mcpCallSync'>
  resultFormats: SameValue<'resultFormats'>
  'McpError (class)': SameValue<'McpError'>
}

type SameValue<Name extends keyof typeof actual & keyof typeof contract> = Identical<
  (typeof actual)[Name],
  (typeof contract)[Name]
>

type Different = { [Name in keyof Agreement]: Agreement[Name] extends true ? never : Name }[keyof Agreement]

/** A name that shows up in the error message here differs from the contract. */
export const nothingDiffers: [Different] extends [never] ? true : Different = true

/** The same for the values: what only the contract exports, and what only index.d.ts does. */
type Forgotten = Exclude<keyof typeof contract, keyof typeof actual>
type Extra = Exclude<keyof typeof actual, keyof typeof contract>
type Stray = Forgotten | Extra
export const nothingIsMissing: [Stray] extends [never] ? true : Stray = true
