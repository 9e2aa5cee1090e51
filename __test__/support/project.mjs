// Projects as tests open them: closed with the test.

import { workflow } from './fixture.mjs'

/** A project of the integrations given by name. */
export function opened(t, mcpServers, options = {}) {
  const project = workflow.openMcpProject({ config: { mcpServers }, ...options })
  t.after(() => project.close())
  return project
}

/** The client of a project that has one server, which has a `url`; `more` are further properties of its integration. */
export function clientOf(t, { url }, more = {}, options = {}) {
  const project = opened(t, { server: { url, ...more } }, options)
  return { project, client: project.mcp('server') }
}

export function text(result) {
  return result.content.map(item => item.text).join('')
}
