import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

test('the package holds the facade, the loader, their types and what people read, and nothing else', () => {
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
  })
  const [{ files }] = JSON.parse(packed)
  const facade = readdirSync(`${root}/lib`).map(file => `lib/${file}`)
  assert.ok(
    facade.every(file => file.endsWith('.js')),
    'lib holds JavaScript only',
  )
  const expected = [
    ...['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'],
    ...['binding.d.ts', 'binding.js', 'index.d.mts', 'index.d.ts', 'index.js', 'index.mjs'],
    ...facade,
  ]
  assert.deepEqual(files.map(({ path }) => path).sort(), expected.sort())
})
