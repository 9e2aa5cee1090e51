// What was measured, as text.

import { readFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { CLIENTS, OURS, versions } from './clients.mjs'
import { median } from './meters.mjs'

const PEERS = Object.keys(CLIENTS).filter(name => name !== OURS)

/** Where the numbers come from, at one moment. */
export function machine() {
  return { load: loadavg().map(load => load.toFixed(2)), time: new Date() }
}

/** Each measure of each row, judged. */
function judged(outcomes) {
  return outcomes.flatMap(({ row, samples, failures }) =>
    Object.entries(row.measures).map(([key, measure]) => {
      const of = name => summary(samples[name]?.map(sample => sample[key]) ?? [])
      const values = Object.fromEntries(Object.keys(samples).map(name => [name, of(name)]))
      const peers = PEERS.map(name => values[name]?.median).filter(Number.isFinite)
      const better = measure.more ? Math.max(...peers) : Math.min(...peers)
      const ours = values[OURS]?.median
      const ratio = peers.length > 0 ? ours / better : undefined
      const floor = row.floor && values[row.floor]?.median
      return { row, measure, values, failures, ours, ratio, floor }
    }),
  )
}

function summary(values) {
  const numbers = values.filter(Number.isFinite)
  if (numbers.length === 0) return undefined
  return { median: median(numbers), min: Math.min(...numbers), max: Math.max(...numbers) }
}

/** The report of some rows. `run` is what stands above the tables. */
export function report(outcomes, run) {
  const all = judged(outcomes)
  const against = all.filter(({ row, measure }) => !row.ours && measure.limit === undefined)
  const floors = all.filter(({ ours, floor }) => ours && floor)
  const limits = all.filter(({ measure }) => measure.limit !== undefined)
  const failed = outcomes.flatMap(({ row, failures }) =>
    Object.entries(failures).map(([name, why]) => `${row.name}, ${name}: ${why}`),
  )
  const missed = [
    ...against.filter(isMissed).map(({ measure, ratio }) => `${measure.title} ${number(ratio)}`),
    ...floors
      .filter(isOverFloor)
      .map(({ measure, ours, floor }) => `${measure.title} ${number(ours / floor)} times its floor`),
    ...limits.filter(isOverLimit).map(({ measure, ours }) => `${measure.title} ${number(ours)}`),
  ]
  const tables = [
    table(
      ['', 'unit', ...Object.keys(CLIENTS), 'ratio to the better peer', 'bar'],
      against.map(one => [
        one.measure.title,
        one.measure.unit,
        ...Object.keys(CLIENTS).map(name => shown(one, name)),
        one.ratio === undefined || !Number.isFinite(one.ratio) ? '–' : `**${number(one.ratio)}**`,
        one.measure.bar === undefined
          ? '–'
          : `${one.measure.more ? '≥' : '≤'} ${one.measure.bar}${isMissed(one) ? ' ✗' : ''}`,
      ]),
    ),
    table(
      ['against a floor', 'unit', OURS, 'floor', 'ratio', 'bar'],
      floors.map(one => [
        one.measure.title,
        one.measure.unit,
        shown(one, OURS),
        `${FLOORS[one.row.floor]}: ${shown(one, one.row.floor)}`,
        `**${number(one.ours / one.floor)}**`,
        one.measure.floorBar === undefined ? '–' : `≤ ${one.measure.floorBar}${isOverFloor(one) ? ' ✗' : ''}`,
      ]),
    ),
    table(
      ['by itself', 'unit', OURS, ...PEERS, 'limit'],
      limits.map(one => [
        one.measure.title,
        one.measure.unit,
        ...[OURS, ...PEERS].map(name => shown(one, name)),
        `≤ ${one.measure.limit}${isOverLimit(one) ? ' ✗' : ''}`,
      ]),
    ),
  ].filter(Boolean)
  return {
    terminal: tables.map(text => `${text.replaceAll('**', '')}\n`).join('\n'),
    markdown:
      run &&
      [heading(run), ...tables, failed.map(line => `- failed: ${line}\n`).join('')]
        .filter(Boolean)
        .join('\n'),
    failed,
    missed,
  }
}

const FLOORS = {
  pingPong: 'a line over bare pipes and back',
  json: '`JSON.parse` and `JSON.stringify`',
  emptyProcess: 'an empty process',
  bareStart: 'such lines to the same program, over bare pipes',
}

function isMissed({ measure, ratio }) {
  if (measure.bar === undefined) return false
  return !(measure.more ? ratio >= measure.bar : ratio <= measure.bar)
}

function isOverFloor({ measure, ours, floor }) {
  return measure.floorBar !== undefined && !(ours / floor <= measure.floorBar)
}

function isOverLimit({ measure, ours }) {
  return !(ours <= measure.limit)
}

function shown({ row, values, failures }, name) {
  if (failures[name]) return 'failed'
  const value = values[name]
  if (value === undefined) return row.ours ? '' : '–'
  return `${number(value.median)} [${number(value.min)}–${number(value.max)}]`
}

/** Three digits that mean something. */
function number(value) {
  if (!Number.isFinite(value)) return '–'
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(value < 0.1 ? 2 : 3)))
}

function table(head, rows) {
  if (rows.length === 0) return ''
  const lines = [head, head.map(() => '-'), ...rows]
  const widths = head.map((_, column) => Math.max(...lines.map(line => line[column].length)))
  const padded = lines.map((line, index) =>
    line.map((cell, column) => (index === 1 ? '-'.repeat(widths[column]) : cell.padEnd(widths[column]))),
  )
  return padded.map(line => `| ${line.join(' | ')} |\n`).join('')
}

function heading({ before, after, rounds }) {
  const ours = Object.entries(versions()).map(([name, version]) => `${name} ${version}`)
  const minutes = Math.round((after.time - before.time) / 60_000)
  return `# Results of \`npm run bench\`

${before.time.toISOString().slice(0, 10)}, ${minutes} minutes. ${cpus().length} × ${cpus()[0].model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${distribution()},
Linux ${release()}; load ${before.load.join(' ')} before, ${after.load.join(' ')} after. Node.js ${process.version}; ${ours.join(', ')}.

Median [least–most] of ${rounds} rounds, in which the clients took turns, each time in a process of its own, against the same server. Times on a
machine drift; the ratios within a row are what counts. ✗ is a bar that was missed. The rows are defined in [rows.mjs](rows.mjs) and [workloads.mjs](workloads.mjs).

In the rows \`on one core\` client and server share one. What a lone call can cost at least, on one core or two, is in the second table.
`
}

function distribution() {
  try {
    return readFileSync('/etc/os-release', 'utf8').match(/PRETTY_NAME="(.*)"/)[1]
  } catch {
    return process.platform
  }
}
