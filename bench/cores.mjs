// Which cores a process may use, and one that is held to some of them. On Linux.

import { readFileSync } from 'node:fs'

/** The numbers of the cores that this process may use: a container need not have core 0. */
export function allowedCores() {
  const [, list] = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))
  return list.split(',').flatMap(range => {
    const [first, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

/** `command` where it has one core alone. */
export function onCore(core, command) {
  return ['taskset', '--cpu-list', String(core), ...command]
}
