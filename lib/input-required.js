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
 * @param {{ onInputRequired: Function, serverName: string, params: string, request: (params: string) => Promise<string>, signal?: AbortSignal }} call
 */
async function afterInput(first, { onInputRequired, serverName, params, request, signal }) {
  let result = first
  for (let round = 0; round < ROUNDS; round++) {
    let responses
    if (hasQuestions(result)) {
      const asked = Promise.resolve({ inputRequests: result.inputRequests })
      const answers = asked.then(questions => onInputRequired(questions, serverName))
      responses = jsonObject('onInputRequired()', await answered(answers, serverName, signal))
    } else {
      await unlessAborted(pause(pauseBefore(round)), signal)
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

async function answered(answers, serverName, signal) {
  try {
    return await unlessAborted(answers, signal)
  } catch (reason) {
    if (signal?.aborted) throw signal.reason
    const message = `The tool of the server ${serverName} asked for input, and onInputRequired failed`
    throw notGiven(serverName, message, { cause: reason })
  }
}

/** What a promise gives, unless the signal aborts first. */
function unlessAborted(promise, signal) {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason)
      return
    }
    const unlisten = onAbort(signal, () => {
      unlisten()
      promise.cancel?.()
      reject(signal.reason)
    })
    promise.then(resolve, reject).finally(unlisten)
  })
}

/** A promise that a time passes; `cancel` lets the timer go. */
function pause(ms) {
  let timer
  const promise = new Promise(resolve => {
    timer = setTimeout(resolve, ms)
  })
  return Object.assign(promise, { cancel: () => clearTimeout(timer) })
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
