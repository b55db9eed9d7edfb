//go:build unix

package fsserver

import (
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// Whatever the arguments are, a call is answered with a text or an error, in one line that a client takes, and never with
// what lies outside.
func FuzzCall(f *testing.F) {
	w := tree(f, session)
	set := roots.NewSet(resolve(f, w+"/R", roots.ReadOnly), resolve(f, w+"/S", roots.ReadOnly))
	server := newServer(f)
	for name := range session {
		f.Add(`{"path":` + quoteJSON(name) + `}`)
		f.Add(`{"path":` + quoteJSON(strings.TrimPrefix(name, "R/")) + `,"head":1}`)
		f.Add(`{"path":` + quoteJSON("../"+name) + `,"tail":2.5}`)
		f.Add(`{"path":` + quoteJSON("file://$W/"+name) + `,"tail":-1e400}`)
	}
	for _, args := range []string{
		``, `null`, `true`, `"x"`, `1e999`, `[]`, `[{"path":"a.txt"}]`, `{}`, `{"":0}`, `{"path":null}`, `{"path":{"path":"a.txt"}}`, `{"path":"\u0000"}`,
		`{"path":"a.txt","head":{},"tail":{}}`, `{"path":"a.txt","head":-0}`, `{"path":"a.txt","tail":0.1e1}`, `{"path":"~"}`, `{"path":"C:"}`,
		`{"path":"file:///$W/R/../canary"}`, `{"path":"file://%00"}`, `{"path":"outdir/../../canary"}`, `{"path":"./././"}`, `{"path":"//"}`,
	} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, args string) {
		args = strings.ReplaceAll(args, "$W", w)
		for i, tool := range append([]string{"nope"}, names()...) {
			params := `{"name":"` + tool + `","arguments":` + args + `}`
			if _, err := wire.Scan([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":`+params+`}`), wire.Strict); err != nil {
				return // it does not get here
			}
			era := eras[(len(args)+i)%2]
			r := request(era, "tools/call", params, set)
			if r.Msg.Kind() != wire.Request || string(r.Msg.ID()) != "7" {
				return // the arguments end params and go on behind
			}
			answer := exchange.Do(t.Context(), server, r).Msg.Bytes()
			if _, err := wire.Scan(answer, wire.Strict); err != nil || len(answer) > 10<<20 || strings.Contains(string(answer), strings.TrimSpace(canary)) {
				t.Errorf("%s %s: %v, %s", tool, args, err, answer)
			}
			use(t, server, era, set, tool, args)
		}
	})
}

// names are the names of all tools.
func names() []string {
	var list []string
	for _, tool := range tools {
		list = append(list, tool.name)
	}
	return list
}
