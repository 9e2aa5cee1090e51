import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'

const { argumentFault, pathText } = createRequire(import.meta.url)('../lib/arguments.js')

function message(schema, args) {
  const fault = argumentFault(schema, args)
  return fault && `${pathText(fault.path)} ${fault.reason}`
}

/** The message for one property `v`. */
const of = (schema, v) => message({ type: 'object', properties: { v: schema } }, { v })

test('a fault names the place and what is allowed there', () => {
  const row = {
    type: 'object',
    properties: { 'first name': { type: 'string' } },
    additionalProperties: false,
  }
  const schema = { properties: { rows: { type: 'array', items: row } }, required: ['rows'] }
  assert.equal(message(schema, {}), 'arguments must have the property "rows"')
  assert.equal(
    message(schema, { rows: [{}, { 'first name': 1 }] }),
    'arguments.rows[1]["first name"] must be of type string',
  )
  assert.equal(
    message(schema, { rows: [{ name: 'x' }] }),
    'arguments.rows[0].name is unknown; known are "first name"',
  )
  assert.equal(message(schema, { rows: [{ 'first name': 'x' }], other: 1 }), undefined)
})

test('each rule that is read refuses what breaks it and takes what keeps it', () => {
  const rules = [
    [{ type: 'integer' }, 1.5, 2],
    [{ type: ['string', 'null'] }, 1, null],
    [{ type: 'object' }, [], {}],
    [{ enum: ['a', { b: [1] }] }, { b: [2] }, { b: [1] }],
    [{ const: null }, 0, null],
    [{ minimum: 2 }, 1, 2],
    [{ maximum: 2 }, 3, 2],
    [{ exclusiveMinimum: 2 }, 2, 3],
    [{ exclusiveMaximum: 2 }, 2, 1],
    [{ minLength: 2 }, '💥', 'ab'],
    [{ maxLength: 1 }, 'ab', '💥'],
    [{ minItems: 1 }, [], [1]],
    [{ maxItems: 1 }, [1, 2], [1]],
    [{ minProperties: 1 }, {}, { a: 1 }],
    [{ maxProperties: 0 }, { a: 1 }, {}],
    [{ prefixItems: [{ type: 'string' }], items: false }, ['a', 1], ['a']],
    [{ items: [{ type: 'string' }] }, [1], ['a', 1]],
    [{ additionalProperties: { type: 'string' } }, { a: 1 }, { a: 'x' }],
    [{ allOf: [{ type: 'string' }, { minLength: 1 }] }, '', 'a'],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 1, null],
    [{ oneOf: [{ type: 'string' }, { type: 'null' }] }, 1, 'a'],
    [false, 1, undefined],
  ]
  for (const [schema, bad, good] of rules) {
    assert.notEqual(of(schema, bad), undefined, `${JSON.stringify(schema)} takes ${JSON.stringify(bad)}`)
    assert.equal(of(schema, good), undefined)
  }
})

test('what is not understood is accepted', () => {
  const schemas = [
    { pattern: '^b' },
    { format: 'email' },
    { not: { type: 'string' } },
    { if: true, then: false },
    { oneOf: [{ type: 'string' }, { pattern: '^b' }] },
    { patternProperties: { '^v': true }, additionalProperties: false },
    { type: 'text' },
    { type: 'integer', nullable: true },
    { $ref: 'https://example.com/other.json' },
    { $ref: '#/$defs/missing' },
    { $id: 'https://example.com/own', type: 'integer' },
    { minimum: 4, exclusiveMinimum: true },
    { required: true },
    null,
    'string',
  ]
  const values = ['a', 'a', 'a', 'a', 'a', { v: 1 }, 'a', null, 'a', 'a', 'a', 4, {}, 1, 1]
  for (const [index, schema] of schemas.entries()) assert.equal(of(schema, values[index]), undefined)
  assert.equal(message({ $schema: 'https://example.com/mine', required: ['a'] }, {}), undefined)
  assert.notEqual(
    message({ $schema: 'http://json-schema.org/draft-07/schema#', required: ['a'] }, {}),
    undefined,
  )
})

test('references are followed, also round and round', () => {
  const tree = {
    $ref: '#/$defs/Node',
    $defs: {
      Node: { type: 'object', properties: { kids: { type: 'array', items: { $ref: '#/$defs/Node' } } } },
    },
  }
  assert.equal(message(tree, { kids: [{ kids: [] }] }), undefined)
  assert.equal(
    message(tree, { kids: [{ kids: [{ kids: 1 }] }] }),
    'arguments.kids[0].kids[0].kids must be of type array',
  )
  assert.equal(message({ $ref: '#' }, { a: 1 }), undefined)
  assert.equal(
    message({ allOf: [{ $ref: '#/$defs/a' }], $defs: { a: { anyOf: [{ $ref: '#' }] } } }, {}),
    undefined,
  )
})

test('a schema with an id of its own is a document of its own, the one at the top is ours', () => {
  const top = { $id: 'https://example.com/top', required: ['v'] }
  assert.notEqual(message(top, {}), undefined)
  const Inner = { $id: 'https://example.com/inner', $defs: { Text: { type: 'string' } } }
  const properties = { v: { $ref: '#/$defs/Inner/$defs/Text' } }
  assert.equal(message({ ...top, properties, $defs: { Inner } }, { v: 1 }), undefined)
})

test('the check is of what is sent: undefined is left out, toJSON is asked', () => {
  const schema = { properties: { when: { type: 'string' }, name: { type: 'string' } }, required: ['when'] }
  assert.equal(message(schema, { when: new Date(0), name: undefined }), undefined)
  assert.notEqual(message(schema, { when: undefined }), undefined)
  assert.equal(message(schema, { when: 1n }), undefined)
})

test('names that every object inherits are names like any other', () => {
  const schema = { properties: { toString: { type: 'string' } }, required: ['constructor'] }
  assert.equal(message(schema, {}), 'arguments must have the property "constructor"')
  const odd = JSON.parse('{"constructor":1,"__proto__":2}')
  assert.equal(message(schema, odd), undefined)
  assert.equal(message({ properties: {}, additionalProperties: false }, odd) !== undefined, true)
})

test('a schema that doubles at each step is given up on', () => {
  const $defs = { d60: { type: 'string' } }
  for (let i = 0; i < 60; i++)
    $defs[`d${i}`] = { anyOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] }
  assert.equal(message({ properties: { v: { $ref: '#/$defs/d0' } }, $defs }, { v: 1 }), undefined)
})

test('a long list of choices is cut', () => {
  const choices = Array.from({ length: 1_000 }, (_, index) => `choice ${index}`)
  assert.ok(of({ enum: choices }, 'x').length < 600)
})

test('a schema that is nested deeper than the stack goes is not understood, or understood in few words', () => {
  const nested = (open, close) => JSON.parse(`${open.repeat(100_000)}${close.repeat(100_000)}`)
  // Node 26 writes JSON of any depth.
  assert.ok((of({ const: nested('[', ']') }, 1) ?? '').length < 600)
  assert.equal(of(JSON.parse(`${'{"anyOf":['.repeat(50_000)}{}${']}'.repeat(50_000)}`), 1), undefined)
})
