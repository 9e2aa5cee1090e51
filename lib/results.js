'use strict'

const { errors } = require('./core.js')

/**
 * The result of a tool from its JSON text, or from `[json, index, text, …]`: JSON with `""` in the place of each long
 * text of `content`, and these texts (src/node/texts.rs). The checks are few and cheap; every field is kept, and a
 * failure of the tool stays a result. `content` is [] and `isError` false where the server left them out (design of the
 * protocol before 2025-06-18).
 */
function toolResult(text, serverId) {
  return finished(resultObject(text, serverId), serverId)
}

/** The same of a result that was parsed. */
function finished(result, serverId) {
  if (result.resultType !== undefined && result.resultType !== 'complete') throw unfinished(result, serverId)
  if (result.content === undefined) result.content = []
  if (!Array.isArray(result.content)) throw invalid('its content is no array', serverId)
  if (result.isError === undefined || result.isError === null) result.isError = false
  if (typeof result.isError !== 'boolean') throw invalid('its isError is no boolean', serverId)
  return result
}

/** The object that a result is, whatever is in it. */
function resultObject(text, serverId) {
  if (typeof text === 'string') return parsed(text, serverId)
  const [json, ...texts] = text
  const result = parsed(json, serverId)
  for (let place = 0; place < texts.length; place += 2) result.content[texts[place]].text = texts[place + 1]
  return result
}

function parsed(text, serverId) {
  let result
  try {
    result = JSON.parse(text)
  } catch {
    // Without V8's error as the cause: it quotes the server's text.
    throw invalid('it is no JSON', serverId)
  }
  if (typeof result !== 'object' || result === null || Array.isArray(result))
    throw invalid('it is no object', serverId)
  return result
}

/** 2026-07-28: `input_required` asks the client for something in mid-call; other values are invalid. */
function unfinished(result, serverId) {
  if (result.resultType !== 'input_required') return invalid('its resultType is unknown', serverId)
  const { McpError } = errors()
  return new McpError(
    'The tool asks for input before it can go on, and this connection has nobody to give it',
    {
      code: 'ERR_MCP_INPUT_REQUIRED',
      serverId,
    },
  )
}

function invalid(why, serverId) {
  const { McpError } = errors()
  return new McpError(`The server's result cannot be used: ${why}`, {
    code: 'ERR_MCP_INVALID_MESSAGE',
    serverId,
  })
}

/** What the host hears of a progress notification. */
function progress(params) {
  const { progressToken: _, ...progress } = JSON.parse(params)
  return progress
}

/**
 * Freezes JSON values. Iterative: a server may nest its schemas deeper than the stack goes. And without the keys of arrays: a list of
 * ten million numbers would become as many strings.
 */
function deepFreeze(root) {
  if (!isReference(root)) return root
  const waiting = [root]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++)
        if (isReference(value[index])) waiting.push(value[index])
    } else {
      // Their values as an array, and an iterator over it, took half as long again: a list of tools has 100,000 of these.
      const keys = Object.keys(value)
      for (let at = 0; at < keys.length; at++) if (isReference(value[keys[at]])) waiting.push(value[keys[at]])
    }
    Object.freeze(value)
  }
  return root
}

function isReference(value) {
  return typeof value === 'object' && value !== null
}

module.exports = { deepFreeze, finished, progress, resultObject, toolResult }
