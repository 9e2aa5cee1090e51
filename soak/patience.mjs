// Waiting, with an end to it.

/** What no part of a soak takes, on however slow a machine: whatever takes longer will never come. In ms. */
const PATIENCE = 60_000

export const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

/** What the promise gives; throws when it does not settle. */
export async function inTime(promise, what) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`did not settle within ${PATIENCE} ms: ${what}`)), PATIENCE)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
