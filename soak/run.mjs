// A long life in one process: is anything left of servers that came and went?
//
//   npm run soak                5,000 cycles, then 10 minutes of kills; about 13 minutes
//   npm run soak -- --quick     600 cycles, then 36 s; about 2 minutes
//
// Each part has a warm-up and three thirds. Whatever the process has after one of them is printed, and must not be more than
// after the warm-up. Linux: it looks at /proc.

import { census, growth } from './census.mjs'
import { cycles } from './cycles.mjs'
import { kills } from './kills.mjs'
import { amongNeighbours } from './neighbours.mjs'

const quick = process.argv.includes('--quick')
const plan = quick
  ? { cycles: [120, 200], kills: [20_000, 12_000], limit: 10 }
  : { cycles: [1_000, 5_000 / 3], kills: [60_000, 200_000], limit: 60 }

if (process.platform !== 'linux' || !globalThis.gc) {
  console.error('The soak wants Linux and `node --expose-gc`: npm run soak.')
  process.exit(2)
}
setTimeout(() => {
  console.error(`Not flat: it has not come to its end within ${plan.limit} minutes.`)
  process.exit(1)
}, plan.limit * 60_000).unref()

const faults = [
  ...(await part('connect, call, close; half of it fails', cycles, plan.cycles)),
  ...(await part('eight servers, killed at random moments', kills, plan.kills)),
]
console.log(faults.length ? `\nNot flat: ${faults.join('; ')}.` : '\nAll flat.')
process.exitCode = faults.length ? 1 : 0

/** A warm-up and three thirds of `work`; gives what has grown. */
async function part(name, work, [warmUp, third]) {
  console.log(`\n${name}`)
  const censuses = []
  for (const [when, amount] of [
    ['warm-up', warmUp],
    ...[1, 2, 3].map(number => [`third ${number}`, Math.ceil(third)]),
  ]) {
    const began = Date.now()
    let counts
    const neighbours = await amongNeighbours(async () => {
      counts = await work(amount)
    })
    const seconds = Math.round((Date.now() - began) / 1000)
    censuses.push(await census())
    const numbers = Object.entries({ seconds, ...censuses.at(-1) }).map(
      ([what, number]) => `${what} ${Number.isInteger(number) ? number : number.toFixed(1)}`,
    )
    console.log(`  ${when}: ${numbers.join(' · ')}`)
    const done = Object.entries({ ...(counts ?? { cycles: amount }), "children of Node's own": neighbours })
    console.log(`    ${done.map(([what, number]) => `${what} ${Math.ceil(number)}`).join(', ')}`)
  }
  return growth(censuses).map(fault => `${fault} (${name})`)
}
