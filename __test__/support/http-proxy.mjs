// A proxy as companies have it: plain requests with an absolute address, tunnels by CONNECT. It sends everything to the servers it is
// told, whatever the name was, so that names which nobody resolves are reached only through it.

import { request as ask, createServer } from 'node:http'
import { connect } from 'node:net'

/**
 * `ports` says where a host leads: `{ 'server.test': 12345 }`, on this machine. `seen` are the requests: `{ method, target, headers }`.
 * With `refusal`, a status, it refuses them all, and says what credentials came.
 */
export async function httpProxy(t, ports, { refusal } = {}) {
  const seen = []
  const sockets = new Set()
  const hold = socket => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  }
  const server = createServer((request, response) => {
    seen.push({ method: request.method, target: request.url, headers: request.headers })
    if (refusal) return response.writeHead(refusal).end(request.headers['proxy-authorization'])
    const { hostname, pathname, search } = new URL(request.url)
    // What is meant for the proxy stays there (RFC 9110, 7.6.1).
    const { 'proxy-authorization': _, 'proxy-connection': __, ...headers } = request.headers
    const { method } = request
    const options = { port: ports[hostname], path: pathname + search, method, headers, agent: false }
    const onward = ask(options, answer => {
      response.writeHead(answer.statusCode, answer.headers).flushHeaders()
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  server.on('connection', hold)
  server.on('connect', (request, socket, head) => {
    seen.push({ method: 'CONNECT', target: request.url, headers: request.headers })
    if (refusal) return socket.end(`HTTP/1.1 ${refusal} Refused\r\n\r\n`)
    const onward = connect(ports[request.url.split(':')[0]], '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      onward.write(head)
      socket.pipe(onward).pipe(socket)
    })
    hold(onward)
    onward.on('close', () => socket.destroy())
    socket.on('close', () => onward.destroy())
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  })
  return { address: `127.0.0.1:${server.address().port}`, seen }
}
