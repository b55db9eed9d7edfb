#!/usr/bin/env node
'use strict';
// Starts the program of this platform, which npm installed beside this package. Nothing is loaded before it is needed: what
// this costs is added to each start of a server.

const platform = `${process.platform}-${process.arch}`;
const args = process.argv.slice(2);

function fail(what, hint) {
	console.error(`rootbound: error: ${what}`);
	console.error(`rootbound: hint: ${hint}`);
	process.exit(1);
}

let program;
try {
	program = require.resolve(`@rootbound/${platform}/${process.platform === 'win32' ? 'rootbound.exe' : 'rootbound'}`);
} catch {
	const known = Object.keys(require('../package.json').optionalDependencies);
	if (known.includes(`@rootbound/${platform}`)) {
		fail(
			`finding the program for ${platform}: the package @rootbound/${platform} is not installed`,
			'install rootbound again on this machine, without leaving out optional dependencies; a node_modules of another system has only its own',
		);
	}
	const platforms = known.map((name) => name.replace('@rootbound/', '')).join(', ');
	fail(`finding the program for ${platform}: there is none`, `there are programs for ${platforms}; with Go it can be built for others`);
}

if (process.platform === 'win32') {
	run('inherit', args);
} else {
	try {
		require('fs').accessSync(program, 1); // some versions of Node end with a dump where execve fails
		if (process.execve) {
			process.execve(program, [program, ...args]); // this process becomes the program; nothing is left to be done
		}
	} catch (err) {
		fail(`starting ${program}: ${err.message}`, 'install rootbound again, or make the file executable');
	}
	// When this process is killed it cannot end the program, which then sees that the pipe is closed.
	run(['inherit', 'inherit', 'inherit', 'pipe'], ['__tied', ...args]);
}

// run starts the program, hands signals on to it, and ends as it does.
function run(stdio, args) {
	const child = require('child_process').spawn(program, args, { stdio });
	for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGBREAK']) {
		// On Windows the console tells both, and to send a signal would be to kill.
		process.on(signal, () => process.platform === 'win32' || child.kill(signal));
	}
	child.on('error', (err) => fail(`starting ${program}: ${err.message}`, 'install rootbound again on this machine'));
	child.on('exit', (code, signal) => {
		if (signal === null) {
			process.exit(code);
		}
		process.removeAllListeners(signal);
		process.kill(process.pid, signal);
	});
}
