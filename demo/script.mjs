// npm run demo:script: what a workflow script looks like. The two servers are stand-ins on this machine, so that it runs anywhere; with the
// URLs of the real ones in the project's .mcp.json the script below stays as it is.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { configureMcp, mcp, mcpCall, mcpCallSync } from '../index.mjs'

const text = { type: 'string' }
const standIns = {
  exa: [
    {
      name: 'web_search_exa',
      description: 'Search the web',
      inputSchema: { type: 'object', properties: { query: text }, required: ['query'] },
      answer: 'One page about “{query}”',
    },
  ],
  context7: [
    {
      name: 'resolve-library-id',
      description: 'Find the id of a library by its name',
      inputSchema: { type: 'object', properties: { libraryName: text }, required: ['libraryName'] },
      answer: '/npm/{libraryName}',
    },
    {
      name: 'query-docs',
      description: 'Ask the documentation of a library',
      inputSchema: { type: 'object', properties: { libraryId: text, query: text } },
      answer: 'What {libraryId} says about “{query}”',
    },
  ],
}

const servers = await Promise.all(Object.entries(standIns).map(start))
const mcpServers = Object.fromEntries(servers.map(({ name, url }) => [name, { url }]))
configureMcp({ config: { mcpServers } })

try {
  await script()
  scriptThatCannotAwait()
} finally {
  // A script's project is open for as long as the program runs. Another one takes its place, which closes it.
  configureMcp({ config: {} })
  for (const { name, thread } of servers) await showEnd(name, thread)
}

/** In a thread of its own: a synchronous call blocks this one. */
async function start([name, tools]) {
  const thread = new Worker(new URL('http-server.mjs', import.meta.url), { workerData: { name, tools } })
  const [url] = await once(thread, 'message')
  return { name, thread, url }
}

async function script() {
  console.log('A call')
  const exa = mcp('exa')
  const result = await exa.call('web_search_exa', { query: 'MCP 2026' })
  for (const item of result.content) if (item.type === 'text') console.log(item.text)

  console.log('\nThe tools of a server')
  for (const tool of await mcp('context7').listTools()) console.log(tool.name, '-', tool.description)

  console.log('\nTwo servers side by side')
  const [r1, r2] = await Promise.all([
    mcp('exa').call('web_search_exa', { query: 'streamable HTTP' }),
    mcp('context7').call('query-docs', { libraryId: '/npm/workflow-mcp', query: 'timeouts' }),
  ])
  show(r1)
  show(r2)

  console.log('\nIn one line, with a timeout of 10 s')
  show(await mcpCall('context7', 'resolve-library-id', { libraryName: 'workflow-mcp' }, 10_000))
}

function scriptThatCannotAwait() {
  console.log('\nWithout await')
  show(mcpCallSync('exa', 'web_search_exa', { query: 'no await' }))
  const context7 = mcp('context7')
  show(context7.callSync('resolve-library-id', { libraryName: 'left-pad' }))
  console.log(
    context7
      .listToolsSync()
      .map(tool => tool.name)
      .join(', '),
  )
}

function show({ content }) {
  for (const item of content) console.log(item.type === 'text' ? item.text : `[${item.type}]`)
}

async function showEnd(name, thread) {
  // The end of a session is told to the server, which takes a moment.
  for (let waited = 0; waited < 100; waited++) {
    thread.postMessage('sessions')
    const [{ begun, ended }] = await once(thread, 'message')
    if (ended === begun) {
      console.log(`\nClosed ${name}: sessions begun ${begun}, ended ${ended}`)
      break
    }
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  await thread.terminate()
}
