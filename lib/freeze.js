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

module.exports = { deepFreeze }
