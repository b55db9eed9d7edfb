//go:build unix

package fsserver

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

// Each transcript is one client on one stream. ${root} is the directory that it may reach.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.transcript")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".transcript"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			root := makeDirs(t, "root")[0]
			set := roots.NewSet(resolve(t, root, roots.ReadOnly))
			inRoot := func(next exchange.Handler) exchange.Handler {
				return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
					c := *r
					c.Roots = set
					next.Handle(ctx, &c, reply)
				})
			}
			report := func(err error) { t.Error(err) }
			handler := exchange.Chain(exchange.Checked(newServer(t), report), inRoot)
			quoted := quoteJSON(root)
			names := map[string]string{"root": quoted[1 : len(quoted)-1]}
			mcptest.Play(t, string(text), names, func(t *testing.T, _, _ []string) (io.WriteCloser, io.Reader) {
				in, stdin := io.Pipe()
				stdout, out := io.Pipe()
				go func() {
					out.CloseWithError(transport.ServeStdio(t.Context(), in, out, handler, transport.StdioOptions{}))
				}()
				return stdin, stdout
			})
		})
	}
}
