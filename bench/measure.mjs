// One process of the bench: `node measure.mjs ROW CLIENT SPEED` prints what one client gives on one row, as JSON.
// A floor's workload stands in a client's place.

import { CLIENTS } from './clients.mjs'

const [name, clientName, speed] = process.argv.slice(2)
const load = CLIENTS[clientName]

if (name === 'load') {
  const begun = performance.now()
  load()
  console.log(JSON.stringify({ ms: performance.now() - begun }))
} else if (name === 'cold') {
  // Timed from outside, from the start of the process to its end; nothing else is loaded here.
  if (load !== undefined) {
    const connection = await load().connect({ command: [process.argv[5]] })
    await connection.list()
    await connection.call('echo', { text: 'hello' })
    await connection.close()
  }
} else {
  const { ROWS } = await import('./rows.mjs')
  const workloads = await import('./workloads.mjs')
  const row = ROWS.find(row => row.name === name)
  const settings = { ...row, times: row.times?.[speed === 'quick' ? 1 : 0] }
  const measured =
    load === undefined
      ? await workloads[clientName](undefined, settings)
      : await workloads[row.workload](load(), settings)
  console.log(JSON.stringify(measured))
}
