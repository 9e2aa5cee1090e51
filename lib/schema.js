'use strict'

// JSON Schemas of servers: any dialect, any keyword, frozen, hostile on purpose or by accident. Nothing here changes one.

const ONE = ['items', 'additionalProperties', 'additionalItems', 'unevaluatedItems', 'unevaluatedProperties']
ONE.push('contains', 'propertyNames', 'not', 'if', 'then', 'else', 'contentSchema')
const LIST = ['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items']
const NAMED = ['properties', 'patternProperties', 'dependentSchemas', 'dependencies', '$defs', 'definitions']

/** Schemas that references may add when they are written out: `allOf` of two, each of two, … would add any number. */
const MAX_ADDED = 10_000

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * A copy with `map` applied to each schema directly inside. Only where the standard puts schemas: a property that is
 * *called* `$ref`, or an `enum` that holds an object, is left alone.
 */
function mapSubschemas(schema, map) {
  const copy = { ...schema }
  for (const keyword of ONE) if (isObject(copy[keyword])) copy[keyword] = map(copy[keyword])
  for (const keyword of LIST) if (Array.isArray(copy[keyword])) copy[keyword] = copy[keyword].map(each)
  for (const keyword of NAMED) {
    if (!isObject(copy[keyword])) continue
    copy[keyword] = Object.fromEntries(
      Object.entries(copy[keyword]).map(([name, value]) => [name, each(value)]),
    )
  }
  return copy

  function each(value) {
    return isObject(value) ? map(value) : value
  }
}

/** The schema of a tool's arguments as providers want it: an object schema that lists its properties. */
function objectSchema(schema) {
  const published = isObject(schema) ? schema : {}
  const properties = isObject(published.properties) ? published.properties : {}
  return { ...published, type: 'object', properties }
}

/**
 * The schema, and a Standard Schema (standardschema.dev) that accepts what `validate` accepts. `~standard` is not
 * enumerable: it survives a spread of the tool, and stays out of JSON.
 */
function standardSchema(schema, validate) {
  const convert = () => openSchema(schema)
  const jsonSchema = Object.freeze({ input: convert, output: convert })
  const standard = Object.freeze({ version: 1, vendor: 'workflow-mcp', validate, jsonSchema })
  return Object.freeze(
    Object.defineProperty({ ...schema }, '~standard', { __proto__: null, value: standard }),
  )
}

/**
 * The same schema, but an object that allows further properties says so with `{}`, which means what `true` and leaving
 * it out mean. The AI SDK writes `additionalProperties: false` over both, in place, which would turn free-form objects
 * into empty ones; a schema there it keeps.
 */
function openSchema(schema) {
  const copy = mapSubschemas(schema, openSchema)
  const isOpen = copy.additionalProperties === undefined || copy.additionalProperties === true
  if (isOpen && [copy.type].flat().includes('object')) copy.additionalProperties = {}
  return copy
}

/**
 * The schema without references into itself, for models that do not follow them. What contains itself cannot be written
 * out: there, and where it would grow without measure, stands `{}` with the description. References elsewhere stay.
 */
function inlineRefs(root) {
  const { $defs, definitions, ...body } = root
  let added = 0
  let isComplete = true
  const inlined = inline(body, [root])
  // A reference that stays may still need them.
  if (isComplete) return inlined
  return { ...inlined, ...($defs && { $defs }), ...(definitions && { definitions }) }

  function inline(schema, within) {
    if (within.length > 1) added += 1
    const { $ref, ...siblings } = schema
    const inner = each => inline(each, within)
    if (typeof $ref !== 'string') return mapSubschemas(schema, inner)
    const target = resolvePointer(root, $ref)
    if (target === undefined) {
      isComplete = false
      return schema
    }
    if (within.includes(target) || added > MAX_ADDED) return describe(target, siblings)
    const written = isObject(target) ? inline(target, [...within, target]) : target
    return combine(written, mapSubschemas(siblings, inner))
  }
}

function describe(target, siblings) {
  const description = siblings.description ?? target.description
  return description === undefined ? {} : { description }
}

const ANNOTATIONS = new Set([
  '$comment',
  '$id',
  '$schema',
  'default',
  'deprecated',
  'description',
  'examples',
  'title',
])

/** Annotations beside a reference say more about this use of it; rules beside it hold as well as its own. */
function combine(target, siblings) {
  const rules = Object.keys(siblings).filter(
    key => !ANNOTATIONS.has(key) && !addsNothing(key, siblings[key], target),
  )
  if (isObject(target) && rules.length === 0) return { ...siblings, ...target, ...annotationsOf(siblings) }
  return { ...siblings, allOf: [...(siblings.allOf ?? []), target] }
}

/** What {@link objectSchema} puts beside a reference at the top: providers refuse an `allOf` there. */
function addsNothing(key, rule, target) {
  if (key === 'type') return rule === target.type
  return key === 'properties' && Object.keys(rule).length === 0
}

function annotationsOf(schema) {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => ANNOTATIONS.has(key)))
}

/** What a reference into the same document (`#`, `#/$defs/Row`) points at; undefined for any other and for a dangling one. */
function resolvePointer(root, reference) {
  if (reference === '#') return root
  if (!reference.startsWith('#/')) return undefined
  let target = root
  for (const token of reference.slice(2).split('/')) {
    const key = pointerKey(token)
    if (typeof target !== 'object' || target === null || !Object.hasOwn(target, key)) {
      return undefined
    }
    // A schema with an id of its own is a document of its own, whose references start there.
    if (target !== root && typeof target.$id === 'string') return undefined
    target = target[key]
  }
  return isObject(target) || typeof target === 'boolean' ? target : undefined
}

function pointerKey(token) {
  let key = token
  try {
    key = decodeURIComponent(token)
  } catch {
    // A stray percent sign stands for itself.
  }
  return key.replace(/~1/g, '/').replace(/~0/g, '~')
}

module.exports = { inlineRefs, isObject, objectSchema, resolvePointer, standardSchema }
