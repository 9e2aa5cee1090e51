'use strict'

const { readable } = require('./core.js')

/**
 * What is to happen when a signal aborts. One listener for each signal, however many calls share it: from the eleventh listener on Node
 * warns of a leak, and a workflow hands one signal to all its calls.
 *
 * @type {WeakMap<AbortSignal, { reactions: Set<() => void>, listener: () => void }>}
 */
const followed = new WeakMap()

/**
 * Calls `react` when `signal` aborts, unless the function that it gives back was called before.
 *
 * @param {AbortSignal} signal not aborted yet
 * @param {() => void} react must not throw
 */
function onAbort(signal, react) {
  let entry = followed.get(signal)
  if (entry === undefined) {
    const reactions = new Set()
    const listener = () => {
      followed.delete(signal)
      for (const reaction of reactions) reaction()
    }
    entry = { reactions, listener }
    readable('options.signal', () => signal.addEventListener('abort', listener, { once: true }))
    followed.set(signal, entry)
  }
  const { reactions, listener } = entry
  // A function of its own each time, so that two calls with one `react` do not share an entry.
  const reaction = () => react()
  reactions.add(reaction)
  return () => {
    reactions.delete(reaction)
    if (reactions.size === 0 && followed.get(signal) === entry) {
      followed.delete(signal)
      try {
        signal.removeEventListener('abort', listener)
      } catch {
        // A false signal. What followed it has come to its end, which this must not replace; and the listener finds nothing to do.
      }
    }
  }
}

module.exports = { onAbort }
