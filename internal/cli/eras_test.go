package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
)

func TestWhatAServerSpeaksIsRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "eras.json")
	memory := func(runs string) *eraMemory { return &eraMemory{path: path, runs: runs, report: t.Errorf} }
	want := func(m *eraMemory, era exchange.Era, server string, known bool) {
		t.Helper()
		if gotEra, gotServer, gotKnown := m.Recall(); gotEra != era || gotServer != server || gotKnown != known {
			t.Errorf("recalled %v %q %v, want %v %q %v", gotEra, gotServer, gotKnown, era, server, known)
		}
	}
	a, b := memory("npm:a"), memory("b#1")
	want(a, 0, "", false)
	a.Remember(exchange.Modern, "a 1")
	b.Remember(exchange.Legacy, "b 1")
	want(memory("npm:a"), exchange.Modern, "a 1", true)
	want(b, exchange.Legacy, "b 1", true)
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	a.Forget()
	want(a, 0, "", false)
	want(b, exchange.Legacy, "b 1", true)

	// A damaged file, and one with what this version does not know, is as none, and is mended when there is something to say.
	for _, text := range []string{"", "null", "{", `{"npm:a":{"only":"other"}}`, `{"npm:a":1}`, `[]`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want(a, 0, "", false)
		a.Remember(exchange.Legacy, "a 2")
		want(a, exchange.Legacy, "a 2", true)
	}
	full := map[string]eraEntry{}
	for i := range maxEras + 10 {
		full[strings.Repeat("x", i)] = eraEntry{Only: "modern"}
	}
	if err := a.write(full); err != nil {
		t.Fatal(err)
	}
	a.Remember(exchange.Modern, "a 3")
	if n := len(a.read()); n != maxEras {
		t.Errorf("%d servers are remembered, want %d", n, maxEras)
	}
}

func TestWhatCannotBeRememberedIsTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "state"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var told string
	m := &eraMemory{path: filepath.Join(dir, "state", "eras.json"), runs: "a", report: func(f string, _ ...any) { told = f }}
	m.Remember(exchange.Modern, "")
	if !strings.Contains(told, "not remembered") {
		t.Errorf("it told %q", told)
	}
}
