// Children of Node itself, beside the servers: Node has to see each of their exits, and with the right code.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { inTime, pause } from './patience.mjs'

/** Runs `work` while Node starts child after child; gives how many there were. */
export async function amongNeighbours(work) {
  let working = true
  const lives = (async () => {
    let count = 0
    for (; working; count++) {
      await inTime(count % 3 ? leaves(count % 256) : killed(), 'the exit of a child of Node')
      await pause(20)
    }
    return count
  })()
  try {
    await Promise.race([work(), lives])
  } finally {
    working = false
  }
  return lives
}

async function leaves(code) {
  expect(await once(spawn('/bin/sh', ['-c', `exit ${code}`], { stdio: 'ignore' }), 'exit'), [code, null])
}

async function killed() {
  const child = spawn('/bin/sh', ['-c', 'read line'], { stdio: ['pipe', 'ignore', 'ignore'] })
  const exit = once(child, 'exit')
  await once(child, 'spawn')
  child.kill('SIGKILL')
  expect(await exit, [null, 'SIGKILL'])
}

function expect(exit, wanted) {
  if (exit.join() !== wanted.join()) throw new Error(`a child of Node ended with ${exit}, not with ${wanted}`)
}
