// Starts servers by the official client and lets each read a small file, in turns. On standard input: {modules: a file beside
// node_modules, commands: [[program, argument…]…], file, rounds, reads}. On standard output: {Starts, Reads}, seconds by
// command and round; a read is the median of a round.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

let text = "";
for await (const part of process.stdin) text += part;
const job = JSON.parse(text);
const require = createRequire(job.modules);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
const starts = job.commands.map(() => []);
const reads = job.commands.map(() => []);
for (let round = 0; round < job.rounds; round++) {
  for (const [i, [command, ...args]] of job.commands.entries()) {
    const client = new Client({ name: "bench", version: "1" });
    const began = performance.now();
    await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }));
    starts[i].push((performance.now() - began) / 1000);
    const took = [];
    for (let n = -20; n < job.reads; n++) {
      const began = performance.now();
      const answer = await client.callTool({ name: "read_text_file", arguments: { path: job.file } });
      if (answer.isError) throw new Error(answer.content[0].text);
      if (n >= 0) took.push((performance.now() - began) / 1000);
    }
    reads[i].push(median(took));
    await client.close();
  }
}
process.stdout.write(JSON.stringify({ Starts: starts, Reads: reads }));
