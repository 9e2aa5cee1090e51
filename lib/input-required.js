'use strict'

// What servers ask the user in mid-call. From 2026-07-28 on a call is answered with questions and sent again with the answers ("MRTR");
// before that the server sends a request of its own. The host answers both with one function.

// Taken now: a test of the host may put false timers in place of the global ones.
const { clearTimeout, setTimeout } = require('node:timers')
const { onAbort } = require('./aborts.js')
const { jsonObject } = require('./call-options.js')
const { McpError } = require('./errors.js')
const { finished, resultObject } = require('./results.js')

/** A server that has asked so often will ask for ever (rmcp's limit, too). */
const ROUNDS = 10

/** Servers that only say "later" are asked again after so many ms, twice as many each time. */
const FIRST_PAUSE = 100
const LONGEST_PAUSE = 5_000

/**
 * Answers a server's questions until its call is finished.
 *
 * @param {object} first the result that asks
 * @param {{ onInputRequired: Function, serverName: string, params: string, request: (params: string) => Promise<string>, signal?: AbortSignal, closing: AbortSignal }} call
 */
async function afterInput(first, call) {
  const { onInputRequired, serverName, params, request } = call
  let result = first
  for (let round = 0; round < ROUNDS; round++) {
    let responses
    if (hasQuestions(result)) {
      const asked = Promise.resolve({ inputRequests: result.inputRequests })
      const answers = asked.then(questions => onInputRequired(questions, serverName))
      responses = jsonObject('onInputRequired()', await answered(answers, call))
    } else {
      await paused(pauseBefore(round), call)
    }
    result = resultObject(await request(again(params, responses, result.requestState)), serverName)
    if (result.resultType !== 'input_required') return finished(result, serverName)
  }
  throw endless(serverName)
}

/** The same for a call that blocks, as far as a server only wants time: questions are refused, for the thread is blocked that would answer. */
function afterPauses(first, { serverName, params, request }) {
  let result = first
  for (let round = 0; round < ROUNDS; round++) {
    if (hasQuestions(result)) throw wouldBlock(serverName)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseBefore(round))
    result = resultObject(request(again(params, undefined, result.requestState)), serverName)
    if (result.resultType !== 'input_required') return finished(result, serverName)
  }
  throw endless(serverName)
}

function hasQuestions(result) {
  return Object.keys(result.inputRequests ?? {}).length > 0
}

function pauseBefore(round) {
  return Math.min(FIRST_PAUSE * 2 ** round, LONGEST_PAUSE)
}

/** The text of the answer to a question that is a request of its own. */
async function answersToServer(onInputRequired, serverName, request) {
  const answers = await onInputRequired({ inputRequests: { request } }, serverName)
  return jsonObject('onInputRequired().request', answers?.request)
}

/** The same call with the answers, and with the server's state as it came: the string is the server's own, and opaque. */
function again(params, responses, requestState) {
  const answers = responses === undefined ? '' : `,"inputResponses":${responses}`
  const state = requestState === undefined ? '' : `,"requestState":${JSON.stringify(requestState)}`
  return `${params.slice(0, -1)}${answers}${state}}`
}

async function answered(answers, call) {
  const { serverName, signal, closing } = call
  try {
    return await unlessEnded(answers, call)
  } catch (reason) {
    if (signal?.aborted || closing.aborted) throw reason
    const message = `The tool of the server ${serverName} asked for input, and onInputRequired failed`
    throw notGiven(serverName, message, { cause: reason })
  }
}

async function paused(ms, call) {
  let timer
  const pause = new Promise(resolve => {
    timer = setTimeout(resolve, ms)
  })
  try {
    await unlessEnded(pause, call)
  } finally {
    clearTimeout(timer)
  }
}

/** What a promise gives, unless the caller gives up or the project is closed first: nothing else ends the wait for a host's function. */
function unlessEnded(promise, { signal, closing, serverName }) {
  const unlessClosed = unlessAborted(promise, closing, () => closed(serverName))
  return signal === undefined ? unlessClosed : unlessAborted(unlessClosed, signal, () => signal.reason)
}

function unlessAborted(promise, signal, reasonOf) {
  return new Promise((resolve, reject) => {
    let unlisten = () => {}
    if (signal.aborted) {
      reject(reasonOf())
    } else {
      unlisten = onAbort(signal, () => {
        unlisten()
        reject(reasonOf())
      })
    }
    promise.then(resolve, reject).finally(unlisten)
  })
}

function closed(serverName) {
  const message = `The project of the server ${serverName} is closed.`
  return new McpError(message, { code: 'ERR_MCP_CLOSED', serverId: serverName })
}

function endless(serverName) {
  return notGiven(
    serverName,
    `The tool of the server ${serverName} still asked for input after ${ROUNDS} rounds`,
  )
}

function wouldBlock(serverName) {
  const message = `The tool of the server ${serverName} asks for input, and onInputRequired runs on the thread that a synchronous call blocks; use call`
  return new McpError(message, { code: 'ERR_MCP_WOULD_BLOCK', serverId: serverName })
}

function notGiven(serverId, message, more = {}) {
  return new McpError(message, { code: 'ERR_MCP_INPUT_REQUIRED', serverId, ...more })
}

module.exports = { afterInput, afterPauses, answersToServer }
