// A server on @modelcontextprotocol/sdk, which speaks the handshake revisions and asks in mid-call. Its tools are the first three of
// those in server.mjs. With the argument "http" it is served over HTTP, a server for each session, and prints where.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { ElicitResultSchema, ListRootsResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const say = (text) => ({ content: [{ type: 'text', text }] });
const listed = async (extra) => {
	const { roots } = await extra.sendRequest({ method: 'roots/list' }, ListRootsResultSchema);
	return roots.map((r) => r.uri).join(' ');
};

const make = () => {
	const server = new McpServer({ name: 'peers-ts-legacy', version: '1.0.0' });
	server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text }) => say(text));
	server.registerTool('need_roots', {}, async (extra) => say(await listed(extra)));
	server.registerTool('two_rounds', {}, async (extra) => {
		const roots = await listed(extra);
		const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
		const params = { mode: 'form', message: 'Who?', requestedSchema };
		const name = await extra.sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema);
		return say(`two ${roots} ${name.action} ${name.content?.name}`);
	});
	return server;
};

if (process.argv[2] === 'http') {
	const sessions = new Map();
	const http = createServer(async (req, res) => {
		const id = req.headers['mcp-session-id'];
		let session = sessions.get(id);
		if (!session && id) {
			res.writeHead(404).end();
			return;
		}
		if (!session) {
			session = new StreamableHTTPServerTransport({
				sessionIdGenerator: randomUUID,
				onsessioninitialized: (id) => void sessions.set(id, session),
				onsessionclosed: (id) => void sessions.delete(id),
			});
			await make().connect(session);
		}
		await session.handleRequest(req, res, req.method === 'POST' ? await json(req) : undefined);
	});
	http.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`));
} else {
	await make().connect(new StdioServerTransport());
}
