import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PATIENCE } from './support/fixture.mjs'
import { host } from './support/hosts.mjs'
import { gone, seen } from './support/processes.mjs'

const IMPORTS = `
  import { failure, fixture, received, soon } from ${JSON.stringify(new URL('support/fixture.mjs', import.meta.url))}
  const { connectMcpServer, connectMcpServers } = workflow
  // As many as it takes for answers to be read on this thread, where they can be.
  const calledAlone = async connection => {
    for (let call = 0; call < 32; call++) await connection.callTool('echo')
  }
`

/** Runs a host until it has ended by itself; one that does not is killed, and `signal` says so. */
async function run(code, options) {
  const { child, ended } = host(IMPORTS + code, options)
  const timer = setTimeout(() => child.kill('SIGKILL'), 3 * PATIENCE)
  return ended.finally(() => clearTimeout(timer))
}

/** What a host has said that ended by itself with code 0. */
async function saidBy(source, options) {
  const { code, signal, said, stderr } = await run(source, options)
  assert.equal(stderr, '')
  assert.deepEqual([code, signal], [0, null])
  return said
}

async function goneSoon(pid) {
  const server = seen(pid)
  if (server) await gone(server)
}

test('an idle connection does not keep its host alive, and its server ends with it', async () => {
  const [pid] = await saidBy(`
    const connection = await connectMcpServer(fixture().definition)
    await connection.callTool('echo')
    say(connection.pid)
  `)
  await goneSoon(pid)
})

test('whatever is pending keeps the host alive until it has settled', async () => {
  const settled = await saidBy(`
    const { definition } = fixture(['--list-slow', '300'])
    connectMcpServer(definition, { shutdown: { endOfInput: 10_000 } }).then(connection => {
      say('connected')
      connection.callTool('sleep', { ms: 300 }).then(() => {
        say('called')
        connection.listTools().then(() => {
          say('listed')
          connection.close().then(({ ended }) => say(ended))
        })
      })
    })
  `)
  assert.deepEqual(settled, ['connected', 'called', 'listed', 'end-of-input'])
})

test('a call that timed out or was aborted no longer keeps the host alive', async () => {
  const settled = await saidBy(`
    const connection = await connectMcpServer(fixture().definition)
    const controller = new AbortController()
    connection.callTool('silent', {}, controller.signal).catch(say)
    connection.callTool('silent', {}, { timeout: 200 }).catch(error => {
      say(error.code)
      controller.abort('aborted')
    })
  `)
  assert.deepEqual(settled, ['ERR_MCP_TIMEOUT', 'aborted'])
})

// What follows from the answer of a call that was alone, when nothing else holds the host: it stays for what is begun, and not longer.
for (const [what, code, expected] of [
  ['nothing', '', []],
  ['a call', "await connection.callTool('sleep', { ms: 200 }); say('slept')", ['slept']],
  [
    'a call begun in the next tick',
    "process.nextTick(() => connection.callTool('sleep', { ms: 200 }).then(() => say('slept')))",
    ['slept'],
  ],
  [
    'a call begun by an immediate',
    "setImmediate(() => connection.callTool('sleep', { ms: 200 }).then(() => say('slept')))",
    ['slept'],
  ],
  [
    'a call begun by a timer',
    "setTimeout(() => connection.callTool('sleep', { ms: 200 }).then(() => say('slept')), 50)",
    ['slept'],
  ],
  [
    'calls one after the other, then one alone',
    "for (let n = 0; n < 20; n++) await connection.callTool('echo', { n }); say((await connection.callTool('echo', { n: 7 })).structuredContent)",
    [{ n: 7 }],
  ],
  [
    'a call that is aborted at once',
    "const controller = new AbortController(); const call = failure(connection.callTool('silent', {}, controller.signal)); controller.abort('enough'); say(await call)",
    ['enough'],
  ],
  [
    'a call that is aborted by a timer',
    "const controller = new AbortController(); setTimeout(() => controller.abort('enough'), 50); say(await failure(connection.callTool('silent', {}, controller.signal)))",
    ['enough'],
  ],
  [
    'a call that times out',
    "say((await failure(connection.callTool('silent', {}, { timeout: 200 }))).code)",
    ['ERR_MCP_TIMEOUT'],
  ],
  [
    'a call that cannot be begun',
    "say((await failure(connection.callTool('unheard_of'))).code)",
    ['ERR_MCP_TOOL_NOT_FOUND'],
  ],
  [
    'a ref that a timer takes back',
    "connection.ref(); setTimeout(() => { say('unref'); connection.unref() }, 50).unref()",
    ['unref'],
  ],
  ['a close', 'say((await connection.close()).reason)', ['closed']],
]) {
  test(`${what} after a lone call holds the host for as long as it takes`, async () => {
    const said = await saidBy(`
      const connection = await connectMcpServer(fixture().definition)
      await calledAlone(connection)
      connection.callTool('echo').then(async () => { ${code} })
    `)
    assert.deepEqual(said, expected)
  })
}

test('what is begun before the host would end is done, and it ends after', async () => {
  const said = await saidBy(`
    const connection = await connectMcpServer(fixture().definition)
    await calledAlone(connection)
    let left = 3
    process.on('beforeExit', () => {
      if (left-- > 0) connection.callTool('sleep', { ms: 20 }).then(() => say(left))
    })
  `)
  assert.deepEqual(said, [2, 1, 0])
})

test('a close of a server that leaves only when killed is waited for', async () => {
  const [info] = await saidBy(`
    const { definition } = fixture(['--ignore-end', '--ignore-term'])
    const connection = await connectMcpServer(definition, { shutdown: { endOfInput: 100, terminate: 100 } })
    connection.close().then(say)
  `)
  assert.equal(info.ended, 'kill')
})

test('ref keeps the host alive until unref, however often it was called', async () => {
  const settled = await saidBy(`
    const connection = await connectMcpServer(fixture().definition)
    connection.ref().ref().unref().ref()
    // A timer that keeps nothing alive fires only if something else does.
    setTimeout(() => {
      say('still here')
      connection.unref()
      setTimeout(() => say('too long'), 60_000).unref()
    }, 300).unref()
  `)
  assert.deepEqual(settled, ['still here'])
})

test('a referenced connection keeps its host alive until it ends', async () => {
  const settled = await saidBy(`
    const connection = await connectMcpServer(fixture().definition)
    connection.ref()
    connection.closed.then(({ signal }) => say(signal))
    process.kill(connection.pid, 'SIGKILL')
  `)
  assert.deepEqual(settled, ['SIGKILL'])
})

test('the server of a connection that nobody holds any more is ended', async () => {
  const settled = await saidBy(
    `
    const { definition } = fixture()
    let info
    const onClose = given => {
      info = given
    }
    await connectMcpServer(definition, { onClose }).then(connection => connection.callTool('echo'))
    await soon(() => {
      gc()
      return info
    })
    say(info.reason)
  `,
    { flags: ['--expose-gc'] },
  )
  assert.deepEqual(settled, ['aborted'])
})

test('a pending call keeps a connection from being collected', async () => {
  const settled = await saidBy(
    `
    const call = (await connectMcpServer(fixture().definition)).callTool('sleep', { ms: 500 })
    const collecting = setInterval(gc, 20)
    say((await call).content[0].text)
    clearInterval(collecting)
  `,
    { flags: ['--expose-gc'] },
  )
  assert.deepEqual(settled, ['slept 500'])
})

test('a host that exits in mid-call leaves no server, not even one that ignores the end of its input and SIGTERM', async () => {
  const { code, said } = await run(`
    const { definition } = fixture(['--ignore-end', '--ignore-term'])
    const connection = await connectMcpServer(definition)
    connection.callTool('silent')
    say(connection.pid)
    process.exit(3)
  `)
  assert.equal(code, 3)
  await goneSoon(said[0])
})

test('what a callback throws is the host’s uncaught exception, and everything else settles', async () => {
  const settled = await saidBy(`
    const uncaught = []
    process.on('uncaughtException', error => uncaught.push(error))
    process.on('unhandledRejection', error => uncaught.push(error))
    const throwing = name => () => {
      throw name
    }
    const names = ['onStderr', 'onLog', 'onToolsChanged', 'onWarning', 'onClose']
    const options = Object.fromEntries(names.map(name => [name, throwing(name)]))
    const { definition } = fixture(['--stderr', 'a line', '--noise', 'a banner'])
    const connection = await connectMcpServer(definition, options)
    const calls = [
      connection.callTool('sleep', { ms: 100, progress: 1 }, { onProgress: throwing('onProgress') }),
      connection.callTool('say', { log: [{ level: 'info', data: 1 }] }),
      connection.callTool('change', { add: ['extra'] }),
      connection.callTool('echo'),
    ]
    say((await Promise.all(calls)).map(({ isError }) => isError))
    await soon(() => connection.tools.some(({ name }) => name === 'extra'))
    await soon(() => uncaught.includes('onToolsChanged'))
    say((await connection.close()).reason)
    await soon(() => uncaught.includes('onClose'))
    say([...new Set(uncaught)].sort())
  `)
  assert.deepEqual(settled, [
    [false, false, false, false],
    'closed',
    ['onClose', 'onLog', 'onProgress', 'onStderr', 'onToolsChanged', 'onWarning'],
  ])
})

test('a callback that throws in a host without a handler ends it as any uncaught exception does', async () => {
  const { code, stderr } = await run(`
    const onStderr = () => {
      throw new Error('from the callback')
    }
    const connection = await connectMcpServer(fixture(['--stderr', 'a line']).definition, { onStderr })
    await connection.callTool('sleep', { ms: 60_000 })
  `)
  assert.equal(code, 1)
  assert.match(stderr, /Error: from the callback/)
})

test('nothing that fails leaves an unhandled rejection or an uncaught exception behind', async () => {
  const [counts, codes] = await saidBy(`
    const counts = { unhandledRejection: 0, uncaughtException: 0, warning: 0 }
    for (const name of Object.keys(counts)) process.on(name, () => counts[name]++)
    const errors = []
    const failed = async promise => errors.push(await failure(promise).then(error => error?.code ?? error))
    await failed(connectMcpServer({ id: 'gone', command: ['/nonexistent'] }))
    await failed(connectMcpServer(fixture(['--exit-at', 'start:1']).definition))
    await failed(connectMcpServer(fixture(['--silent']).definition, { connectTimeout: 200 }))
    const connecting = new AbortController()
    setTimeout(() => connecting.abort('while connecting'), 100)
    await failed(connectMcpServer(fixture(['--silent']).definition, { signal: connecting.signal }))
    const group = ['--silent', '--modern', '--exit-at=start:1'].map((flag, index) => fixture([flag], { id: 's' + index }).definition)
    await failed(connectMcpServers(group))
    await (await connectMcpServers(group, { partial: true, connectTimeout: 2_000 })).close()
    const connection = await connectMcpServer(fixture().definition)
    const calling = new AbortController()
    const calls = [
      failed(connection.callTool('silent', {}, { timeout: 50 })),
      failed(connection.callTool('silent', {}, calling.signal)),
      failed(connection.callTool('rpc_error', { error: '{"code":1}' })),
      failed(connection.callTool('no such tool')),
      failed(connection.callTool('echo', null)),
    ]
    calling.abort('while calling')
    await Promise.all(calls)
    const last = failed(connection.callTool('silent'))
    await connection.close()
    await last
    await new Promise(resolve => setTimeout(resolve, 50))
    say(counts)
    say(errors.sort())
  `)
  assert.deepEqual(counts, { unhandledRejection: 0, uncaughtException: 0, warning: 0 })
  assert.deepEqual(codes, [
    'ERR_MCP_CLOSED',
    'ERR_MCP_HANDSHAKE',
    'ERR_MCP_HANDSHAKE',
    'ERR_MCP_INVALID_ARGUMENT',
    'ERR_MCP_RPC',
    'ERR_MCP_SPAWN',
    'ERR_MCP_TIMEOUT',
    'ERR_MCP_TIMEOUT',
    'ERR_MCP_TOOL_NOT_FOUND',
    'while calling',
    'while connecting',
  ])
})

test('callers that work on each result leave the event loop its turns', async () => {
  const [late] = await saidBy(`
    const connection = await connectMcpServer(fixture().definition)
    let working = true
    const caller = async () => {
      while (working) {
        await connection.callTool('echo')
        const until = performance.now() + 1
        while (performance.now() < until);
      }
    }
    const callers = Array.from({ length: 16 }, caller)
    const due = performance.now() + 100
    setTimeout(() => {
      working = false
      say(performance.now() - due)
    }, 100)
    await Promise.all(callers)
    await connection.close()
  `)
  assert.ok(late < 3_000, `a timer came ${late} ms late`)
})

test('twenty large calls to a server that leaves all reject, and the host lives on', async () => {
  const [codes, counts] = await saidBy(`
    const counts = { unhandledRejection: 0, uncaughtException: 0 }
    for (const name of Object.keys(counts)) process.on(name, () => counts[name]++)
    const connection = await connectMcpServer(fixture(['--exit-at', 'tools/call:0']).definition)
    const text = 'x'.repeat(256 * 1024)
    const errors = await Promise.all(Array.from({ length: 20 }, () => failure(connection.callTool('echo', { text }))))
    await new Promise(resolve => setTimeout(resolve, 50))
    say(errors.map(({ code }) => code))
    say(counts)
  `)
  assert.equal(codes.length, 20)
  for (const code of codes) assert.ok(['ERR_MCP_EXITED', 'ERR_MCP_CLOSED'].includes(code), code)
  assert.deepEqual(counts, { unhandledRejection: 0, uncaughtException: 0 })
})
