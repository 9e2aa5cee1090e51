'use strict'

const { partsOf, textOf, textOfPart } = require('./content.js')
const { invalidArgument } = require('./errors.js')
const { inlineRefs } = require('./schema.js')

/** For messages that have no field for "this failed": a model that is not told takes the text for the answer. */
const FAILED = 'The tool reported an error:'

// One unsupported picture makes a provider refuse the whole request, so only what its documentation lists is sent.
const OPENAI_MEDIA = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'application/pdf'])
const ANTHROPIC_MEDIA = OPENAI_MEDIA
const GEMINI_MEDIA = new Set(['image/png', 'image/jpeg', 'image/webp', 'application/pdf', 'text/plain'])

const toolFormats = Object.freeze({
  record(tools) {
    return Object.fromEntries(tools.map(tool => [tool.name, tool]))
  },

  openaiResponses(tools) {
    return tools.map(tool => ({ type: 'function', ...openaiFunction(tool) }))
  },

  openaiChat(tools) {
    return tools.map(tool => ({ type: 'function', function: openaiFunction(tool) }))
  },

  anthropic(tools) {
    return tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }))
  },

  gemini(tools, options) {
    // An entry without declarations is refused by the API.
    if (tools.length === 0) return []
    const functionDeclarations = tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parametersJsonSchema: options?.inlineRefs ? inlineRefs(parameters) : parameters,
    }))
    return [{ functionDeclarations }]
  },
})

function openaiFunction({ name, description, parameters }) {
  return { name, description, parameters, strict: false }
}

const resultFormats = Object.freeze({
  openaiResponses(result) {
    requireResult(result)
    const output = textOrItems(result, part => {
      if (part.text !== undefined) return { type: 'input_text', text: part.text }
      const url = dataUrl(part)
      if (part.kind === 'image') return { type: 'input_image', image_url: url, detail: 'auto' }
      return { type: 'input_file', filename: part.filename, file_data: url }
    })
    return { type: 'function_call_output', output }
  },

  openaiChat(result) {
    requireResult(result)
    return { role: 'tool', content: flaggedText(result) }
  },

  anthropic(result) {
    requireResult(result)
    const failed = result.isError === true
    // The API refuses empty text blocks, and anything but text beside is_error.
    const content = sendable(partsOf(result), failed ? new Set() : ANTHROPIC_MEDIA)
      .filter(part => part.text !== '')
      .map(anthropicBlock)
    return { type: 'tool_result', content, ...(failed ? { is_error: true } : undefined) }
  },

  gemini(result) {
    requireResult(result)
    if (result.isError === true) return { response: { error: textOf(result) } }
    const parts = sendable(partsOf(result), GEMINI_MEDIA)
    const media = parts.filter(part => part.text === undefined)
    return {
      response: { output: geminiOutput(result, parts) },
      ...(media.length === 0
        ? undefined
        : { parts: media.map(({ mediaType, data }) => ({ inlineData: { mimeType: mediaType, data } })) }),
    }
  },

  text(result) {
    requireResult(result)
    return flaggedText(result)
  },
})

/** An error in a result's place, say, has no content, and would reach the model as a success that says nothing. */
function requireResult(result) {
  if (Array.isArray(result?.content)) return
  throw invalidArgument(
    'result',
    'must be the result of a tool, with an array `content`; ' +
      "what stands for a failed call is { content: [{ type: 'text', text: error.message }], isError: true }",
  )
}

function anthropicBlock(part) {
  if (part.text !== undefined) return { type: 'text', text: part.text }
  const source = { type: 'base64', media_type: part.mediaType, data: part.data }
  return { type: part.kind === 'image' ? 'image' : 'document', source }
}

/** `output` may be any JSON there, so data without content need not become text. */
function geminiOutput(result, parts) {
  if (hasOnlyData(result)) return result.structuredContent
  return parts
    .filter(part => part.text !== undefined)
    .map(part => part.text)
    .join('\n')
}

/** What OpenAI Agents takes back from `invoke`. An item that it does not know would turn the whole list into JSON text. */
function agentsOutput(result) {
  return textOrItems(result, part => {
    if (part.text !== undefined) return { type: 'text', text: part.text }
    if (part.kind === 'image') return { type: 'image', image: dataUrl(part) }
    const { data, mediaType, filename } = part
    return { type: 'file', file: { data, mediaType, filename } }
  })
}

/** What the AI SDK takes from `toModelOutput`. */
function aiSdkOutput(output) {
  // A wrapped `execute` may answer anything; then there is nothing of MCP to map.
  if (!Array.isArray(output?.content)) {
    return typeof output === 'string'
      ? { type: 'text', value: output }
      : { type: 'json', value: output ?? null }
  }
  if (output.isError === true) {
    if (hasOnlyData(output)) return { type: 'error-json', value: output.structuredContent }
    return { type: 'error-text', value: textOf(output) || FAILED.slice(0, -1) }
  }
  if (hasOnlyData(output)) return { type: 'json', value: output.structuredContent }
  const parts = sendable(partsOf(output), OPENAI_MEDIA)
  if (parts.length === 0) return { type: 'text', value: '' }
  if (parts.length === 1 && parts[0].text !== undefined) return { type: 'text', value: parts[0].text }
  const value = parts.map(part =>
    part.text !== undefined
      ? { type: 'text', text: part.text }
      : { type: 'file', mediaType: part.mediaType, data: { type: 'data', data: part.data } },
  )
  return { type: 'content', value }
}

function hasOnlyData(result) {
  return !result?.content?.length && result?.structuredContent !== undefined
}

/** Replaces what `mediaTypes` does not list by a note. */
function sendable(parts, mediaTypes) {
  return parts.map(part =>
    part.text !== undefined || mediaTypes.has(part.mediaType) ? part : { text: textOfPart(part) },
  )
}

/** A string where everything is text, else one item a part. For OpenAI, whose outputs have no field for a failure. */
function textOrItems(result, itemOf) {
  const parts = sendable(partsOf(result), OPENAI_MEDIA)
  if (parts.every(part => part.text !== undefined)) return flaggedText(result)
  if (result.isError === true) parts.unshift({ text: FAILED })
  return parts.map(itemOf)
}

function flaggedText(result) {
  const text = textOf(result)
  return result?.isError === true ? `${FAILED}\n${text}` : text
}

function dataUrl({ mediaType, data }) {
  return `data:${mediaType};base64,${data}`
}

module.exports = { agentsOutput, aiSdkOutput, resultFormats, toolFormats }
