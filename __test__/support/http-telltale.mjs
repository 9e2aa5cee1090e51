// An HTTP server that tells secrets: it knows those of support/secrets.mjs, and writes them wherever a server can write something,
// plain and in the forms in which they end up in answers and logs. The same as tests/fixtures/telltale.mjs, over HTTP.

import { httpServer, inTurn, never, usual } from './http-server.mjs'

/** How a text reads where something else has written it. */
function formsOf(value) {
  const base64 = Buffer.from(value).toString('base64')
  const html = value.replace(/[&<>"']/g, mark => `&#${mark.codePointAt()};`.replace('&#38;', '&amp;'))
  const query = encodeURIComponent(value)
  return [value, `"${value}",`, JSON.stringify(value), query, query.replaceAll('%20', '+'), base64, html]
}

/** What the server says in its answers; `secrets` are the values. */
function speech(secrets) {
  const forms = secrets.flatMap(formsOf)
  const told = forms.join('\n')
  // What can stand in a heading: no line break, and nothing beyond Latin 1.
  const line = secrets.flatMap(value => formsOf(value).slice(3, 6)).join(' ')
  const escaped = told.replace(/./gs, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const error = {
    code: -32000,
    message: `cannot log in with ${told}`,
    data: { told, deep: [{ forms, [forms[0]]: 1 }] },
  }
  return {
    forms,
    told,
    line,
    escaped,
    error,
    host: secrets.find(value => /^[\w-]+$/.test(value)) ?? 'elsewhere',
  }
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** Ways to answer any request, by name. */
export const answers = secrets => {
  const { told, line, escaped, error, host } = speech(secrets)
  const challenge = { 'www-authenticate': `Bearer realm="${line}", error_description="${line}"` }
  const body = (status, text, headers) => exchange => exchange.respond(status, text, headers)
  const redirect = (status, location) => body(status, told, { location })
  const rpc = exchange =>
    exchange.respond(400, JSON.stringify({ jsonrpc: '2.0', id: null, error }), JSON_TYPE)
  return {
    'a text': body(500, told, { 'retry-after': line }),
    'an echo': ({ request, response }) =>
      response
        .writeHead(404)
        .end(`Cannot ${request.method} ${request.path}\n${JSON.stringify(request.headers)}`),
    'a page': body(502, `<!doctype html><title>${told}</title>`, { 'content-type': 'text/html' }),
    'an error of JSON-RPC': rpc,
    'JSON by numbers': body(
      400,
      `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"${escaped}"}}`,
      JSON_TYPE,
    ),
    'JSON that is no message': body(418, `{"detail":"${escaped}"}`, JSON_TYPE),
    'a long text': body(503, 'x'.repeat(2_040) + told),
    'a challenge': body(401, told, challenge),
    'no permission': body(403, told, challenge),
    'a redirect to elsewhere': redirect(
      307,
      `https://${host}.example/${line.replaceAll(' ', '/')}?${line.replaceAll(' ', '')}`,
    ),
    'a redirect that changes the method': redirect(302, `/${line.replaceAll(' ', '/')}`),
    'a redirect to nowhere': redirect(308, `://${line}`),
    'no message': body(200, told, { 'content-type': `text/${host}` }),
    'a result with an error': exchange => exchange.error(200, error.code, error.message, error.data),
    'a result that cannot be read': exchange => exchange.result({ content: told, tools: told }),
    'a flood': exchange => exchange.result({ content: [{ type: 'text', text: told.repeat(1_000) }] }),
    'a stream with an error'(exchange) {
      const stream = exchange.stream()
      stream.send({
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { level: 'error', logger: told, data: told },
      })
      stream.send({ jsonrpc: '2.0', method: told, params: { told } }, { id: line })
      stream.send({ jsonrpc: '2.0', id: exchange.message.id, error })
      stream.end()
    },
    'a stream of noise'(exchange) {
      exchange.response.writeHead(200, { 'content-type': 'text/event-stream' })
      exchange.response.end(`: ${line}\nevent: ${line}\ndata: ${line}\n\ndata: {"told":"${escaped}"}\n\n`)
    },
    'a connection that is cut': exchange => exchange.cut(),
    nothing: never,
  }
}

/**
 * A server that answers one method, `initialize` say, in one of these ways, the first `after` times as usual. Its tool `tell` tells all,
 * with progress before. Whoever comes with `refused` gets a challenge that tells it.
 */
export async function tellingServer(t, secrets, { method, answer, after = 0, refused, ...options } = {}) {
  const { told, forms, escaped } = speech(secrets)
  const tell = exchange => {
    const { progressToken } = exchange.message.params._meta ?? {}
    const stream = exchange.stream()
    const progress = message => ({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken, progress: 1, total: 2, message },
    })
    stream.send(progress(told))
    exchange.response.write(`data: ${JSON.stringify(progress('@')).replace('@', escaped)}\n\n`)
    stream.send(exchange.answer({ content: [{ type: 'text', text: told }], structuredContent: { forms } }))
    stream.end()
  }
  const own = { 'tools/call tell': tell }
  if (method !== undefined) own[method] = inTurn(...Array(after).fill(usual), answers(secrets)[answer])
  if (refused !== undefined) {
    own['*'] ??= usual
    const refusal = answers([refused])['a challenge']
    for (const [name, answered] of Object.entries(own)) {
      own[name] = exchange =>
        exchange.request.headers.authorization?.includes(refused) ? refusal(exchange) : answered(exchange)
    }
  }
  return { server: await httpServer(t, own, options), told, forms }
}
