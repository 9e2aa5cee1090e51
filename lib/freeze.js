'use strict'

/**
 * Freezes JSON values. Iterative: a server may nest its schemas deeper than the stack goes. And without the keys of arrays: a list of
 * ten million numbers would become as many strings.
 */
function deepFreeze(root) {
  if (!isReference(root)) return root
  const waiting = [root]
  while (waiting.length > 0) {
    const value = waiting.pop()
    Object.freeze(value)
    const members = Array.isArray(value) ? value : Object.values(value)
    for (const member of members) if (isReference(member)) waiting.push(member)
  }
  return root
}

function isReference(value) {
  return typeof value === 'object' && value !== null
}

module.exports = { deepFreeze }
