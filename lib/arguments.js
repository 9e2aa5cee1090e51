'use strict'

// A check of arguments that errs on one side only: what it calls wrong is wrong in every draft of JSON Schema from 4 to
// 2020-12; what it does not understand, it accepts. It reads: type, enum, const, required, properties,
// additionalProperties (where there are no patternProperties), min/maxProperties, items, prefixItems, min/maxItems,
// min/maxLength, minimum, maximum, exclusiveMinimum, exclusiveMaximum, allOf, anyOf, oneOf, and $ref into the same schema.
// It leaves out what would need a clock or a judge: pattern (a server's regular expression can run for ever), format, not
// and if (where "not understood" would turn into "wrong"), unevaluated*, $dynamicRef.

const { isObject, resolvePointer } = require('./schema.js')

/** Schemas looked at for one call. A hostile schema can ask for any number; past this, the arguments are accepted. */
const MAX_STEPS = 100_000

const IS_TYPE = {
  array: Array.isArray,
  boolean: value => typeof value === 'boolean',
  integer: Number.isInteger,
  null: value => value === null,
  number: value => typeof value === 'number',
  object: isObject,
  string: value => typeof value === 'string',
}

/**
 * The first fault of arguments that are about to be sent, or undefined.
 *
 * @returns {{ path: (string | number)[], reason: string } | undefined} `reason` follows the path in a sentence
 */
function argumentFault(schema, args) {
  if (!isKnownDialect(schema.$schema)) return undefined
  let sent
  try {
    // What the server will see: without undefined, with what toJSON gives.
    sent = JSON.parse(JSON.stringify(args))
  } catch {
    return undefined // Not JSON at all; the call itself says so.
  }
  try {
    return new Check(schema).fault(schema, sent, [], [])
  } catch (error) {
    // A schema that is nested deeper than the stack goes is not understood.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function isKnownDialect(dialect) {
  return typeof dialect !== 'string' || /^https?:\/\/json-schema\.org\//.test(dialect)
}

class Check {
  constructor(root) {
    this.root = root
    this.steps = MAX_STEPS
  }

  /** `followed` holds the references that led here for this very value: one that comes again would go round for ever. */
  fault(schema, value, path, followed) {
    if (schema === false) return { path, reason: 'is not allowed' }
    if (!isObject(schema) || this.steps-- <= 0) return undefined
    // A schema with an id of its own is a document of its own: its references do not start at our root.
    if (schema !== this.root && (typeof schema.$id === 'string' || typeof schema.id === 'string'))
      return undefined
    if (typeof schema.$ref === 'string') return this.faultOfReference(schema.$ref, value, path, followed)
    if (schema.nullable === true && value === null) return undefined
    return (
      faultOfType(schema.type, value, path) ??
      faultOfChoice(schema, value, path) ??
      faultOfSize(schema, value, path) ??
      this.faultInside(schema, value, path) ??
      this.faultOfCombination(schema, value, path, followed)
    )
  }

  /** Up to draft 7 what stands beside a reference means nothing, so it is not looked at. */
  faultOfReference(reference, value, path, followed) {
    const target = resolvePointer(this.root, reference)
    if (target === undefined || followed.includes(target)) return undefined
    return this.fault(target, value, path, [...followed, target])
  }

  faultInside(schema, value, path) {
    if (Array.isArray(value)) return this.faultOfItems(schema, value, path)
    return isObject(value) ? this.faultOfProperties(schema, value, path) : undefined
  }

  faultOfProperties(schema, value, path) {
    for (const name of Array.isArray(schema.required) ? schema.required : []) {
      if (typeof name === 'string' && !hasOwn(value, name)) {
        return { path, reason: `must have the property ${JSON.stringify(name)}` }
      }
    }
    const properties = isObject(schema.properties) ? schema.properties : {}
    // Which names patternProperties takes is not looked at, so beside it no name is known to be additional.
    const additional = schema.patternProperties === undefined ? schema.additionalProperties : undefined
    for (const [name, inner] of Object.entries(value)) {
      const isKnown = hasOwn(properties, name)
      if (!isKnown && additional === false)
        return { path: [...path, name], reason: unknownProperty(properties) }
      const fault = this.fault(isKnown ? properties[name] : additional, inner, [...path, name], [])
      if (fault) return fault
    }
    return undefined
  }

  faultOfItems({ items, prefixItems }, value, path) {
    const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : []
    const rest = Array.isArray(items) ? true : items
    for (const [index, inner] of value.entries()) {
      const rule = index < tuple.length ? tuple[index] : rest
      const fault = this.fault(rule, inner, [...path, index], [])
      if (fault) return fault
    }
    return undefined
  }

  faultOfCombination({ allOf, anyOf, oneOf }, value, path, followed) {
    for (const schema of Array.isArray(allOf) ? allOf : []) {
      const fault = this.fault(schema, value, path, followed)
      if (fault) return fault
    }
    // That more than one of `oneOf` fits cannot be known: a keyword that was not understood may tell them apart.
    for (const choices of [anyOf, oneOf]) {
      if (!Array.isArray(choices) || choices.length === 0) continue
      const faults = choices.map(schema => this.fault(schema, value, path, followed))
      if (faults.includes(undefined)) continue
      return faults.length === 1 ? faults[0] : { path, reason: 'fits none of the alternatives of its schema' }
    }
    return undefined
  }
}

function faultOfType(type, value, path) {
  const names = [type].flat()
  if (!names.every(name => hasOwn(IS_TYPE, name))) return undefined
  if (names.some(name => IS_TYPE[name](value))) return undefined
  return { path, reason: `must be of type ${names.join(' or ')}` }
}

function faultOfChoice(schema, value, path) {
  if (hasOwn(schema, 'const') && !equal(schema.const, value)) {
    return { path, reason: `must be ${excerpt([schema.const])}` }
  }
  if (!Array.isArray(schema.enum) || schema.enum.some(choice => equal(choice, value))) return undefined
  return { path, reason: `must be one of ${excerpt(schema.enum)}` }
}

function faultOfSize(schema, value, path) {
  // Draft 4 has booleans in exclusiveMinimum and exclusiveMaximum: those are no numbers, so they bound nothing here.
  if (typeof value === 'number') {
    return (
      bounded(value, schema.minimum, (a, b) => a >= b, path, 'must be at least') ??
      bounded(value, schema.maximum, (a, b) => a <= b, path, 'must be at most') ??
      bounded(value, schema.exclusiveMinimum, (a, b) => a > b, path, 'must be more than') ??
      bounded(value, schema.exclusiveMaximum, (a, b) => a < b, path, 'must be less than')
    )
  }
  const [size, least, most, unit] = sizeOf(schema, value)
  return (
    bounded(size, least, (a, b) => a >= b, path, `must have at least this many ${unit}:`) ??
    bounded(size, most, (a, b) => a <= b, path, `must have at most this many ${unit}:`)
  )
}

function sizeOf(schema, value) {
  if (typeof value === 'string') return [[...value].length, schema.minLength, schema.maxLength, 'characters']
  if (Array.isArray(value)) return [value.length, schema.minItems, schema.maxItems, 'items']
  if (isObject(value))
    return [Object.keys(value).length, schema.minProperties, schema.maxProperties, 'properties']
  return []
}

function bounded(value, bound, holds, path, reason) {
  return typeof bound !== 'number' || holds(value, bound) ? undefined : { path, reason: `${reason} ${bound}` }
}

function unknownProperty(properties) {
  const names = Object.keys(properties)
  return names.length === 0
    ? 'is unknown: there are no properties'
    : `is unknown; known are ${excerpt(names)}`
}

/** Values of a schema, as JSON, for a message that a model will read and mend its arguments by. */
function excerpt(values) {
  const text = values
    .slice(0, 20)
    .map(value => JSON.stringify(value))
    .join(', ')
  return values.length > 20 || text.length > 500 ? `${text.slice(0, 500)} …` : text
}

function equal(a, b) {
  if (a === b) return true
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((inner, index) => equal(inner, b[index]))
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every(key => hasOwn(b, key) && equal(a[key], b[key]))
}

function hasOwn(object, key) {
  return Object.hasOwn(object, key)
}

/** `arguments.rows[2]["first name"]`. */
function pathText(path) {
  return path.reduce((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`
    return /^[A-Za-z_$][\w$]*$/.test(step) ? `${text}.${step}` : `${text}[${JSON.stringify(step)}]`
  }, 'arguments')
}

module.exports = { argumentFault, pathText }
