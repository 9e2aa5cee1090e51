// Calls that come one after the other, until their answers are read on the thread of the caller itself.

import { soon } from './fixture.mjs'

/** Whether this thread waits for a server's pipe. Of libuv's handles that it has, the only ones of the kind. */
export function readsHere() {
  process.report.excludeNetwork = true
  const { libuv } = process.report.getReport()
  return libuv.some(({ type, is_active }) => type === 'poll' && is_active)
}

/** Windows has no such handle for pipes, and the binary that does without what makes things fast (scripts/verify.mjs) makes none. */
export const NEVER_HERE =
  process.platform === 'win32' || process.env.NAPI_RS_NATIVE_LIBRARY_PATH?.includes('slow-paths') === true

/** Calls one after the other, of small answers or others, until answers are read here. Where that cannot be, some calls are as good. */
export async function calledAlone(connection, call = index => connection.callTool('echo', { index })) {
  const few = async () => {
    for (let index = 0; index < 8; index++) await call(index)
  }
  if (NEVER_HERE) return few()
  await soon(async () => {
    await few()
    return readsHere()
  }, 'a loan')
  // The look took its time.
  await few()
}
