// A server on @modelcontextprotocol/server that speaks both eras, or with the argument "modern" the stateless one only. Its tools are
// those of the Go server in goserver_test.go. With the argument "http" it is served over HTTP, in the stateless era only, or with "http both" also
// in the handshake's but without sessions, and prints where.
import { createServer } from 'node:http';
import { McpServer, createMcpHandler, inputRequired, fromJsonSchema } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const object = (properties = {}) => fromJsonSchema({ type: 'object', properties });
const say = (text) => ({ content: [{ type: 'text', text }] });
const askRoots = { method: 'roots/list', params: {} };
const listed = (answer) => answer.roots.map((r) => r.uri).join(' ');

const make = () => {
	const server = new McpServer({ name: 'peers-ts', version: '1.0.0' }, { capabilities: { tools: { listChanged: true }, logging: {} } });
	const tool = (name, properties, f) => server.registerTool(name, { description: name, inputSchema: object(properties) }, f);
	tool('echo', { text: { type: 'string' } }, ({ text }) => say(text));
	tool('need_roots', {}, (_, { mcpReq }) => {
		const got = mcpReq.inputResponses?.roots;
		return got ? say(listed(got)) : inputRequired({ inputRequests: { roots: askRoots }, requestState: 'one' });
	});
	tool('two_rounds', {}, (_, { mcpReq }) => {
		const got = mcpReq.inputResponses ?? {};
		if (got.name) {
			return say(`${mcpReq.requestState()} ${got.name.action} ${got.name.content?.name}`);
		}
		if (got.roots) {
			const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
			const name = inputRequired.elicit({ mode: 'form', message: 'Who?', requestedSchema });
			return inputRequired({ inputRequests: { name }, requestState: `two ${listed(got.roots)}` });
		}
		return inputRequired({ inputRequests: { roots: askRoots }, requestState: 'one' });
	});
	tool('slow', { steps: { type: 'number' }, hang: { type: 'boolean' } }, async ({ steps, hang }, { mcpReq }) => {
		for (let progress = 1; progress <= steps; progress++) {
			const progressToken = mcpReq._meta.progressToken;
			await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: steps, message: `step ${progress}` } });
		}
		if (hang) {
			await new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve));
		}
		return say('done');
	});
	tool('log', {}, async (_, { mcpReq }) => {
		await mcpReq.log('info', { said: 'in mid-call' }, 'peers');
		return say('logged');
	});
	tool('big', { bytes: { type: 'number' } }, ({ bytes }) => say('0123456789abcdef'.repeat(bytes / 16)));
	tool('add_tool', {}, () => {
		tool('added', {}, () => say('added'));
		return say('added');
	});
	return server;
};

if (process.argv[2] === 'http') {
	const handler = createMcpHandler(make, { legacy: process.argv[3] === 'both' ? 'stateless' : 'reject' });
	const http = createServer(async (req, res) => {
		const body = req.method === 'POST' ? Buffer.concat(await req.toArray()) : undefined;
		const gone = new AbortController();
		res.on('close', () => gone.abort());
		const answer = await handler.fetch(new Request(`http://${req.headers.host}${req.url}`, { method: req.method, headers: req.headers, body, signal: gone.signal }));
		res.writeHead(answer.status, Object.fromEntries(answer.headers));
		for await (const part of answer.body ?? []) {
			res.write(part);
		}
		res.end();
	});
	http.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`));
} else {
	serveStdio(make, { legacy: process.argv[2] === 'modern' ? 'reject' : 'serve' });
}
