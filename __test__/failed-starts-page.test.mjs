import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compared } from '../scripts/failed-starts.mjs'

const linux = { skip: process.platform !== 'linux' && 'the page has the numbers and words of Linux' }

test(
  'docs/failed-starts.md says of each failed start what happens (else: node scripts/failed-starts.mjs --update)',
  linux,
  async () => {
    const { written, happened } = await compared()
    assert.deepEqual(written.split('\n'), happened.split('\n'))
  },
)
