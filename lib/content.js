'use strict'

// What an MCP result says, before it is put into any provider's words: a list of parts, each text or media.
//
//   { text }                                     what a model reads
//   { kind, mediaType, data, filename }          'image', 'audio' or 'file'; data is base64

/** The parts of a result, in order. The result's data stands in where it has no content. */
function partsOf(result) {
  const content = Array.isArray(result?.content) ? result.content : []
  if (content.length > 0) return content.map(partOf)
  return result?.structuredContent === undefined ? [] : [{ text: JSON.stringify(result.structuredContent) }]
}

function partOf(block) {
  switch (block?.type) {
    case 'text':
      if (typeof block.text === 'string') return { text: block.text }
      break
    case 'image':
    case 'audio':
      if (isMedia(block.data, block.mimeType)) {
        return { kind: block.type, mediaType: block.mimeType, data: block.data, filename: block.type }
      }
      break
    case 'resource':
      return resourcePart(block) ?? unknownPart(block)
    case 'resource_link':
      if (typeof block.uri === 'string') return { text: linkText(block) }
      break
  }
  return unknownPart(block)
}

/** Kinds that came after us, and known kinds without what makes them one: the model gets what the server sent. */
function unknownPart(block) {
  return { text: JSON.stringify(block) ?? '' }
}

function resourcePart({ resource }) {
  if (typeof resource?.text === 'string') return { text: resource.text }
  const mediaType = resource?.mimeType ?? 'application/octet-stream'
  if (!isMedia(resource?.blob, mediaType)) return undefined
  const kind = /^(image|audio)\//.exec(mediaType)?.[1] ?? 'file'
  return { kind, mediaType, data: resource.blob, filename: lastSegment(resource.uri) }
}

function linkText({ uri, name, title, description, mimeType }) {
  const label = title ?? name
  const head = label === undefined ? uri : `${label}: ${uri}`
  const type = mimeType === undefined ? '' : ` (${mimeType})`
  return `${head}${type}${description === undefined ? '' : `\n${description}`}`
}

function isMedia(data, mediaType) {
  return typeof data === 'string' && typeof mediaType === 'string'
}

function lastSegment(uri) {
  return (typeof uri === 'string' && /([^/\\]+)[/\\]*$/.exec(uri)?.[1]) || 'file'
}

/** What stands in a part's place where media cannot go, so that the model knows that something was there. */
function textOfPart(part) {
  if (part.text !== undefined) return part.text
  const padding = part.data.endsWith('==') ? 2 : part.data.endsWith('=') ? 1 : 0
  const bytes = Math.floor((part.data.length * 3) / 4) - padding
  return `[${part.kind} left out: ${part.mediaType}, ${bytes} bytes]`
}

/** Everything as one text. */
function textOf(result) {
  return partsOf(result).map(textOfPart).join('\n')
}

module.exports = { partsOf, textOf, textOfPart }
