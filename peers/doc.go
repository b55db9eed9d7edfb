// Package peers tests the guard between clients and servers that others wrote: the official TypeScript packages of both
// eras, the reference servers, and the Go SDK at both ends. It is a module of its own, so that none of them is a
// dependency of the program.
//
// .ci/peers installs what is not Go, by package-lock.json. Without it, or without Node, the tests that need it are
// skipped; with ROOTBOUND_PEERS=require they fail. To move a peer to another version, change package.json (exact versions
// only), run "npm install --ignore-scripts", see that package-lock.json names no registry but the public one, and run the
// tests; for the Go SDK, "go get" and "go mod tidy" in this directory.
package peers
