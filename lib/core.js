'use strict'

// The Rust core as JavaScript has it, once per environment (the main thread, each Worker): its binary, loaded on first use, and the
// descriptions of values that go down to it, of errors that come up. All that a process needs before anything starts is in this one file,
// for each adds 0.15 ms.

const { existsSync } = require('node:fs')

let core

/** The environment's core; throws ERR_MCP_NATIVE_LOAD where there is no binary. */
function theCore() {
  core ??= new Core(loadBinding())
  return core
}

class Core {
  #binding
  #dispatcher

  constructor(binding) {
    this.#binding = binding
  }

  /** What is under way, from the first on: many a process judges definitions and starts none. */
  get dispatcher() {
    this.#dispatcher ??= new (require('./dispatcher.js').Dispatcher)(this.#binding)
    return this.#dispatcher
  }

  /** Judges definitions and options; throws the first fault. `shape`: `one`, `group` or `normalize`. */
  plan(definitions, options, shape) {
    const { env } = process
    const plans = this.#binding.plan(describe(definitions), describe(options), describeVariables(env), shape)
    if (plans.error) throw errorOf(plans.error)
    return plans
  }

  /** The definitions with every default filled in. */
  async normalize(definitions, options) {
    const { normalized } = this.plan(definitions, options, 'normalize')
    return JSON.parse(normalized, (_key, value) => Object.freeze(value))
  }

  /** Reads a project's configuration, or throws what is wrong with it. Its events come under `token`. */
  openProject(options, token) {
    const variables = describeVariables(process.env)
    const project = this.#binding.openProject(this.dispatcher.native, describe(options), variables, token)
    if (project.error) throw errorOf(project.error)
    return project
  }

  nearest(name, known) {
    return this.#binding.nearestName(name, known)
  }

  pathOf(outer, name) {
    return this.#binding.propertyPath(outer, name)
  }
}

/** The errors, loaded when something is wrong: no start and no good call needs them, and each file adds 0.15 ms. */
function errors() {
  return require('./errors.js')
}

/** What `read` gives; where a getter or a proxy throws meanwhile, the argument at `path` is at fault. */
function readable(path, read) {
  try {
    return read()
  } catch (cause) {
    if (errors().McpError.is(cause)) throw cause
    throw errors().invalidArgument(path, 'cannot be read: a getter, a proxy or a method of it throws', {
      cause,
    })
  }
}

/** The error of a description of the native side. */
function errorOf(text) {
  return errors().fromDescription(JSON.parse(text))
}

function loadBinding() {
  try {
    const binding = bindingAtOnce() ?? require('../binding.js')
    // Whoever has put something in place of `process.dlopen` or of a module may give anything.
    if (typeof binding.plan !== 'function') throw new Error('What was loaded is no binary of workflow-mcp.')
    return binding
  } catch (cause) {
    throw require('./no-binary.js').noBinary(cause)
  }
}

/**
 * The binary of where it usually is, if it is there: reading the generated loader, which knows all other places and
 * collects what failed, takes 0.8 ms.
 */
function bindingAtOnce() {
  try {
    const { platform, arch, env } = process
    const abi = { linux: '-gnu', win32: '-msvc' }[platform] ?? ''
    if (isLoaderTold(env) || (platform === 'linux' && hasMusl(arch))) return undefined
    const name = `${platform}-${arch}${abi}`
    // Every system takes such a path; the first `join` of a process takes 0.03 ms.
    const local = `${__dirname}/../workflow-mcp.${name}.node`
    const path = existsSync(local) ? local : require.resolve(`workflow-mcp-${name}`)
    // Windows wants a path of its own kind, which `require` makes. Elsewhere it only looks once more for what was found: 0.1 ms.
    if (platform === 'win32') return require(path)
    const loaded = { exports: {} }
    process.dlopen(loaded, path)
    return loaded.exports
  } catch {
    // Nothing there, or a bundler's idea of a module, without `__dirname`: the generated loader has the last word.
    return undefined
  }
}

/** Whether the generated loader was told something. */
function isLoaderTold(env) {
  return env.NAPI_RS_NATIVE_LIBRARY_PATH || env.NAPI_RS_FORCE_WASI || env.NAPI_RS_ENFORCE_VERSION_CHECK
}

/** Where programs for musl can run, its own loader is in this place; on a system with both the generated loader finds out which one this is. */
function hasMusl(arch) {
  const machine = { x64: 'x86_64', arm64: 'aarch64' }[arch] ?? arch
  return existsSync(`/lib/ld-musl-${machine}.so.1`)
}

// ───────────────────────────── descriptions ─────────────────────────────

// What a value is, as JSON text for src/node/values.rs, which judges it: everything JSON can say stands for itself, the rest is tagged.
// Done here and not over N-API because only here a getter or a proxy that throws can be asked safely.

/** Definitions and options are four levels deep at most (see TooDeep in src/policy/input.rs). A cycle ends here too. */
const MAX_DEPTH = 6

/** More elements than any command line takes (2 MiB on Linux, 8 bytes and more each). A `length` costs nothing, its elements do. */
const MAX_LENGTH = 262_144

/** JSON text that says what `value` is. Each property is read once; nothing is changed and nothing throws. */
function describe(value) {
  return JSON.stringify(description(value, 0))
}

/**
 * The same of variables, as `process.env` has them: texts alone, which the engine reads and writes by itself. That is less code to get ready,
 * which is a third of what a process's first start spends on them.
 */
function describeVariables(variables) {
  // `process.env` can be given any value.
  if (tagOf(variables) !== 'Object') return describe(variables)
  const texts = { __proto__: null }
  let areTexts = true
  try {
    // A spread asks Node.js three times for each variable, this twice: 24 and 14 µs for 39 of them.
    for (const name of Object.keys(variables)) {
      const text = variables[name]
      areTexts = areTexts && typeof text === 'string'
      texts[name] = text
    }
  } catch {
    return describe(variables)
  }
  if (!areTexts) return describe(texts)
  const text = JSON.stringify({ o: texts })
  // How half a surrogate pair is written.
  return text.includes('\\ud') ? describe(texts) : text
}

function description(value, depth) {
  switch (typeof value) {
    case 'string':
      return isWellFormed(value) ? value : { t: 'a string that is not well-formed Unicode' }
    case 'number':
      return Number.isFinite(value) ? value : { t: String(value) }
    case 'boolean':
      return value
    case 'object':
      return value === null ? null : objectDescription(value, depth)
    case 'undefined':
    case 'function':
      return { t: typeof value }
    default:
      return { t: `a ${typeof value}` }
  }
}

function objectDescription(value, depth) {
  if (depth >= MAX_DEPTH) return { t: 'deep' }
  try {
    if (Array.isArray(value)) return listDescription(value, depth)
    const builtIn = builtInKind(value)
    if (builtIn !== undefined) return { t: builtIn }
    // Own enumerable string keys, `__proto__` included: without a prototype no key means anything here.
    const members = { __proto__: null }
    for (const key of Object.keys(value)) members[wellFormed(key)] = memberDescription(value, key, depth)
    return { o: members }
  } catch {
    return { t: 'thrown' }
  }
}

function listDescription(list, depth) {
  // A proxy may say anything.
  const length = Number(list.length)
  if (length > MAX_LENGTH) return { t: `an array of more than ${MAX_LENGTH} elements` }
  const elements = []
  for (let index = 0; index < length; index++)
    elements.push(index in list ? memberDescription(list, index, depth) : { t: 'hole' })
  return elements
}

function memberDescription(object, key, depth) {
  let value
  try {
    value = object[key]
  } catch {
    return { t: 'thrown' }
  }
  return description(value, depth + 1)
}

/** Objects that hold what they hold elsewhere than in properties: read as plain ones they would be empty. */
function builtInKind(value) {
  if (ArrayBuffer.isView(value)) return 'a typed array'
  const tag = tagOf(value)
  return tag === 'Object' ? undefined : kindOf(tag)
}

function kindOf(tag) {
  // In here, for a start in which all is plain needs none of these names.
  const kinds = {
    Date: 'a Date',
    RegExp: 'a RegExp',
    Map: 'a Map',
    Set: 'a Set',
    WeakMap: 'a WeakMap',
    WeakSet: 'a WeakSet',
    Promise: 'a Promise',
    ArrayBuffer: 'an ArrayBuffer',
    SharedArrayBuffer: 'an ArrayBuffer',
    String: 'a boxed primitive',
    Number: 'a boxed primitive',
    Boolean: 'a boxed primitive',
    Symbol: 'a boxed primitive',
    BigInt: 'a boxed primitive',
    Error: 'an Error',
    Generator: 'an iterator',
    AsyncGenerator: 'an iterator',
    'Array Iterator': 'an iterator',
    'Map Iterator': 'an iterator',
    'Set Iterator': 'an iterator',
    WeakRef: 'a WeakRef',
    URL: 'a URL',
    URLSearchParams: 'a URLSearchParams',
    Headers: 'a Headers',
    FormData: 'a FormData',
  }
  return Object.hasOwn(kinds, tag) ? kinds[tag] : undefined
}

/** Also of another realm: a vm context, Electron's renderer. */
function tagOf(value) {
  return Object.prototype.toString.call(value).slice(8, -1)
}

/** The engine itself knows since Node 20; the first use of a pattern takes 0.1 ms. */
function isWellFormed(text) {
  return typeof text.isWellFormed === 'function' ? text.isWellFormed() : !loneSurrogates().test(text)
}

/** A key with half a surrogate pair is no name of anything; U+FFFD in its place says so, of two such keys perhaps once. */
function wellFormed(key) {
  return isWellFormed(key) ? key : key.replace(loneSurrogates(), '\ufffd')
}

/** Made where it is needed: no start of a newer Node is to wait for it. */
function loneSurrogates() {
  return /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
}

module.exports = { describe, errorOf, errors, readable, theCore }
