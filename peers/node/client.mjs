// A client that drives a server through a plan and prints what came of each step as one line of JSON.
//
//	node client.mjs legacy|auto|pinned COMMAND ARGS… < plan.json
//
// In place of a command there may be the URL of a server.
//
// legacy is @modelcontextprotocol/sdk; auto and pinned are @modelcontextprotocol/client, which asks for the era or insists
// on the stateless one. plan_test.go says what a plan is.
import { createHash } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { text } from 'node:stream/consumers';

const [mode, command, ...args] = process.argv.slice(2);
const plan = JSON.parse(await text(process.stdin));

let roots = plan.roots;
let asked = []; // what the current step made the server ask
const seen = []; // notifications that no step waited for yet
const waiting = []; // steps that wait for a notification

const answers = {
	'roots/list': () => ({ roots: roots.map((dir) => ({ uri: pathToFileURL(dir).href })) }),
	'sampling/createMessage': () => ({ role: 'assistant', model: 'none', content: { type: 'text', text: 'sampled' } }),
	'elicitation/create': () => ({ action: 'accept', content: plan.content ?? {} }),
};
function answer(method, params) {
	if (method !== 'roots/list') {
		asked.push({ method, params });
	}
	return answers[method]();
}
function notified(notification) {
	const i = waiting.findIndex((w) => w.method === notification.method);
	if (i >= 0) {
		waiting.splice(i, 1)[0].resolve(notification);
	} else {
		seen.push(notification);
	}
}

const capabilities = { sampling: {}, elicitation: { form: {} } };
if (plan.nobody) {
	delete capabilities.elicitation;
	delete answers['elicitation/create'];
}
if (roots) {
	capabilities.roots = { listChanged: true };
}
const info = { name: 'peers', version: '1.0.0' };
const changes = ['tools', 'prompts', 'resources'].map((kind) => `notifications/${kind}/list_changed`);
const notifications = [...changes, 'notifications/message', 'notifications/resources/updated'];
const server = { command, args, env: process.env, stderr: 'inherit' };
const url = /^https?:/.test(command) && new URL(command);
let client, transport, call;
if (mode === 'legacy') {
	const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
	const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
	const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
	const types = await import('@modelcontextprotocol/sdk/types.js');
	client = new Client(info, { capabilities });
	transport = url ? new StreamableHTTPClientTransport(url) : new StdioClientTransport(server);
	for (const schema of [types.ListRootsRequestSchema, types.CreateMessageRequestSchema, types.ElicitRequestSchema]) {
		const method = schema.shape.method.value;
		if (method === 'roots/list' ? roots : answers[method]) {
			client.setRequestHandler(schema, (r) => answer(r.method, r.params));
		}
	}
	client.fallbackNotificationHandler = async (n) => notified(n);
	call = (params, options) => client.callTool(params, undefined, options);
} else {
	const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
	const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
	client = new Client(info, { capabilities, versionNegotiation: { mode: mode === 'pinned' ? { pin: '2026-07-28' } : 'auto' } });
	transport = url ? new StreamableHTTPClientTransport(url) : new StdioClientTransport(server);
	for (const method of Object.keys(answers)) {
		if (roots || method !== 'roots/list') {
			client.setRequestHandler(method, (r) => answer(r.method, r.params));
		}
	}
	for (const method of notifications) {
		client.setNotificationHandler(method, (n) => notified(n));
	}
	call = (params, options) => client.callTool(params, options);
}

const modern = () => mode !== 'legacy' && client.getProtocolEra() === 'modern';
const meta = (step) => (step.log && modern() ? { _meta: { 'io.modelcontextprotocol/logLevel': step.log } } : {});

const steps = {
	async list() {
		const has = client.getServerCapabilities();
		return {
			capabilities: has,
			tools: has.tools && (await client.listTools()),
			prompts: has.prompts && (await client.listPrompts()),
			resources: has.resources && (await client.listResources()),
			templates: has.resources && (await client.listResourceTemplates()),
		};
	},
	async call(step) {
		const abort = new AbortController();
		const options = { signal: abort.signal, timeout: 60_000 };
		if (step.progress) {
			options.onprogress = () => step.cancel && abort.abort('changed my mind');
		}
		return { result: await call({ name: step.tool, arguments: step.arguments ?? {}, ...meta(step) }, options) };
	},
	async until(step) {
		for (;;) {
			const outcome = await steps.call(step);
			if (JSON.stringify(outcome).includes(step.text)) {
				return outcome;
			}
		}
	},
	parallel: (step) => Promise.all(step.steps.map(run)),
	async roots(step) {
		roots = step.roots;
		if (!modern()) {
			await client.sendRootsListChanged();
		}
	},
	await: (step) => {
		const i = seen.findIndex((n) => n.method === step.notification);
		if (i >= 0) {
			return seen.splice(i, 1)[0];
		}
		return new Promise((resolve) => waiting.push({ method: step.notification, resolve }));
	},
	async listen(step) {
		if (modern()) {
			await client.listen({ toolsListChanged: true });
		}
	},
	level: (step) => (modern() ? undefined : client.setLoggingLevel(step.log)),
	read: (step) => client.readResource({ uri: step.uri }),
	subscribe: (step) => client.subscribeResource({ uri: step.uri }),
	prompt: (step) => client.getPrompt({ name: step.prompt, arguments: step.arguments }),
	complete: (step) => client.complete(step.arguments),
};
const failed = (e) => ({ error: { code: e.code, message: e.message } });

async function run(step) {
	try {
		return (await steps[step.do](step)) ?? {};
	} catch (e) {
		return failed(e);
	}
}

// print writes a line with sorted names, and long strings as what they hash to.
function print(value) {
	const canonical = (key, v) => {
		if (typeof v === 'string' && v.length > 1000) {
			return `${v.length} characters, sha256 ${createHash('sha256').update(v).digest('hex')}`;
		}
		if (v && typeof v === 'object' && !Array.isArray(v)) {
			return Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)));
		}
		return v;
	};
	process.stdout.write(JSON.stringify(value, canonical) + '\n');
}

await client.connect(transport);
for (const step of plan.steps) {
	asked = [];
	const outcome = await run(step);
	print({ asked, ...(Array.isArray(outcome) ? { outcomes: outcome } : outcome) });
}
if (transport.terminateSession) {
	await transport.terminateSession();
}
await client.close();
process.exit(0);
