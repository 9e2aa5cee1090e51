// Electron's V8 refuses memory that is not its own: what we hand over are strings and numbers, never buffers of ours.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

test('no function of the binary takes or gives a buffer, a typed array or an external, but for the one that is V8’s', () => {
  const types = readFileSync(join(root, 'binding.d.ts'), 'utf8')
  assert.match(types, /class Connection/)
  // Three numbers that lib/dispatcher.js makes and src/node/holds.rs writes, too.
  const others = types.replace('holds: Int32Array', '')
  assert.notEqual(others, types)
  assert.doesNotMatch(others, /Buffer|Array\b(?!<)|DataView|External/)
})

test('no code makes a buffer over memory of ours', () => {
  const folder = join(root, 'src/node')
  const files = readdirSync(folder).filter(file => file.endsWith('.rs'))
  assert.ok(files.includes('connection.rs'))
  for (const file of files) {
    const code = readFileSync(join(folder, file), 'utf8').replace(/^\s*\/\/.*$/gm, '')
    assert.doesNotMatch(
      code,
      /BufferSlice|Buffer::|ArrayBuffer::|create_external_(array)?buffer|from_external|Uint8Array/,
      file,
    )
  }
})
