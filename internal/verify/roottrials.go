package verify

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rootbound/rootbound/internal/exchange"
)

// rooted is a case with a client whose list is special, and a process of its own.
func rooted(id string, severity Severity, what, expected string, client func(a *attempt) peerOptions, try func(a *attempt)) trial {
	return trial{
		id: id, class: "roots", severity: severity, fresh: true, needs: []role{roleRead}, attempt: what, expected: expected,
		try: func(a *attempt) {
			p, first, err := a.run.connect(a.era, client(a))
			if err != nil {
				a.unsure("%v", err)
				return
			}
			defer p.close()
			a.peer = p
			if !first.ok() {
				a.fault("the server did not begin: %s", a.short(first.text()))
				return
			}
			try(a)
		},
	}
}

// outsideAndInside reads outside, which must not be served, and inside, to see that the server still answers.
func outsideAndInside(a *attempt) {
	a.do(roleRead, text("path", filepath.Join(a.one, plainName)))
	a.do(roleRead, text("path", a.file))
	if a.era != exchange.Legacy {
		return
	}
	a.do(roleRead, text("path", filepath.Join(a.one, plainName)))
}

func lists(uris ...string) func(a *attempt) peerOptions {
	return func(*attempt) peerOptions { return peerOptions{roots: uris} }
}

// raw is a client that answers with a result as it stands.
func raw(result string) func(a *attempt) peerOptions {
	return func(*attempt) peerOptions {
		return peerOptions{answer: func([]string) []byte { return []byte(result) }}
	}
}

// rootTrials are about what a client says of its roots. Filled says that the command line has them, too.
func rootTrials(filled bool) []trial {
	all := []trial{
		rooted("E126", High, "a root on another host: file://elsewhere and the path of what is outside", "not taken for a path of this machine",
			func(a *attempt) peerOptions {
				return peerOptions{roots: []string{"file://elsewhere" + (&url.URL{Path: filepath.ToSlash(a.out)}).EscapedPath()}}
			}, outsideAndInside),
		rooted("E126h", High, "a root of another scheme: http:// and the path of what is outside", "not taken for a path of this machine",
			func(a *attempt) peerOptions {
				return peerOptions{roots: []string{"http://localhost" + filepath.ToSlash(a.out)}}
			}, outsideAndInside),
		rooted("E129", High, "a client whose list is empty", "never everything",
			lists([]string{}...), outsideAndInside),
		rooted("E127n", Medium, "a list that is null", "the server lives, nothing outside", raw(`{"roots":null}`), outsideAndInside),
		rooted("E127m", Medium, "an answer without a list", "the server lives, nothing outside", raw(`{}`), outsideAndInside),
		rooted("E127t", Medium, "a list with roots of the wrong type", "the server lives, nothing outside", raw(`{"roots":[1,null,"x",{"uri":7},{"name":"n"},[]]}`), outsideAndInside),
		rooted("E127l", Medium, "a list of 10,000 roots that are not there", "the server lives, nothing outside",
			func(a *attempt) peerOptions {
				return peerOptions{answer: func([]string) []byte {
					var b strings.Builder
					for i := range 10_000 {
						if i > 0 {
							b.WriteByte(',')
						}
						fmt.Fprintf(&b, `{"uri":"file:///nowhere/%d"}`, i)
					}
					return []byte(`{"roots":[` + b.String() + `]}`)
				}}
			}, outsideAndInside),
		rooted("E127u", Medium, "a list with a root that is not there and one that is", "the server lives, nothing outside",
			func(a *attempt) peerOptions { return peerOptions{roots: uris(filepath.Join(a.dir, "gone"), a.one)} }, outsideAndInside),
		rooted("E127e", Medium, "a client that answers with an error", "the server lives, nothing outside",
			func(*attempt) peerOptions { return peerOptions{answer: func([]string) []byte { return nil }} },
			func(a *attempt) {
				if a.era == exchange.Modern {
					a.skipped = "the stateless wire has no word for it"
					return
				}
				outsideAndInside(a)
			}),
		rooted("E127d", Medium, "a root that is taken away while the server runs", "the server lives, nothing outside",
			func(a *attempt) peerOptions {
				os.Mkdir(filepath.Join(a.root, "away"), 0o755)
				return peerOptions{roots: uris(a.one, filepath.Join(a.root, "away"))}
			}, func(a *attempt) {
				outsideAndInside(a)
				os.Remove(filepath.Join(a.root, "away"))
				outsideAndInside(a)
			}),
		rooted("E130", High, "a client whose list is narrower than the directories", "what is not in the list is refused",
			func(a *attempt) peerOptions { return peerOptions{roots: uris(a.root)} },
			func(a *attempt) {
				a.do(roleRead, text("path", a.in("ok.txt")))
				if !until(settle, func() bool { return a.looked().asked > 0 }) {
					a.skipped = "the server does not ask for roots"
					return
				}
				a.do(roleRead, text("path", a.in("ok.txt")))
				if !until(settle, func() bool {
					r := a.call(a.tools[roleRead].name, a.tools[roleRead].arguments(text("path", filepath.Join(a.two, plainName))))
					return r.refused() || !strings.Contains(r.text(), a.inside[a.two])
				}) {
					a.leak("a file is served that is in no root of the client")
				}
			}),
		rooted("E128", Medium, "a client without roots", "it is asked for none; nothing outside",
			func(*attempt) peerOptions { return peerOptions{noRoots: true} },
			func(a *attempt) {
				outsideAndInside(a)
				if list := a.looked().undeclared; len(list) > 0 {
					a.fault("the server asked for %s, which the client did not declare", strings.Join(list, ", "))
				}
			}),
	}
	if filled {
		widen := rooted("E125", High, "a client whose list is wider than the directories of the command line", "the directories of the command line stay the most",
			func(a *attempt) peerOptions { return peerOptions{roots: uris(a.dir)} }, outsideAndInside)
		widen.allowed = "a client's list may replace the server's own directories, and this server lets it"
		all = append(all, widen)
	}
	return all
}
