// What a host's callback enters in an AsyncLocalStorage is that callback's: tenants and traces must not reach other calls.

import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from 'node:test'
import { connected } from './support/fixture.mjs'

const symbols = () => Object.getOwnPropertySymbols(globalThis)

test('a store that a callback enters reaches no other call, and not the global object', async t => {
  const { connection } = await connected(t)
  const storage = new AsyncLocalStorage()
  const before = symbols()
  const seen = []
  const call = store =>
    storage.run(store, () =>
      connection.callTool(
        'sleep',
        { ms: 40, progress: 1 },
        {
          onProgress() {
            seen.push(storage.getStore())
            storage.enterWith(`entered by ${store}`)
          },
        },
      ),
    )
  await call('first')
  await call('second')
  assert.equal(seen.length, 2)
  assert.ok(!seen.includes('entered by first'), `${seen}`)
  assert.deepEqual(symbols(), before)
})

test('the store of whoever called is there when the promise has settled', async t => {
  const { connection } = await connected(t)
  const storage = new AsyncLocalStorage()
  const stores = ['a', 'b'].map(store =>
    storage.run(store, async () => {
      await connection.callTool('echo')
      return storage.getStore()
    }),
  )
  assert.deepEqual(await Promise.all(stores), ['a', 'b'])
})
