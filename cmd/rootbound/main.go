// Command rootbound puts a boundary around MCP servers. See `rootbound --help`.
package main

import (
	"os"

	"github.com/rootbound/rootbound/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
