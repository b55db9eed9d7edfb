package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/statefile"
	"github.com/rootbound/rootbound/internal/transport"
)

// eraMemory remembers which era a server speaks when it does not speak its client's, in one small file for all servers. What
// stands there only says what is tried first, so a file that is lost, wrong or damaged costs one refusal at a start.
type eraMemory struct {
	path, runs string
	report     func(format string, args ...any)

	mu sync.Mutex
}

// maxEras is how many servers are remembered.
const maxEras = 1000

type eraEntry struct {
	Only   string `json:"only"` // "legacy" or "modern"
	Server string `json:"server"`
}

// eras is what is remembered of the server that runs stands for; nil where there is no state directory. Report is told that it
// cannot be kept.
func (a *app) eras(runs string, report func(format string, args ...any)) transport.Memory {
	dir, err := a.logDir()
	if err != nil {
		return nil
	}
	return &eraMemory{path: filepath.Join(filepath.Dir(dir), "eras.json"), runs: runs, report: report}
}

// read returns what stands in the file, nothing when that cannot be read.
func (m *eraMemory) read() map[string]eraEntry {
	entries := map[string]eraEntry{}
	text, err := os.ReadFile(m.path)
	if err != nil || json.Unmarshal(text, &entries) != nil || entries == nil {
		return map[string]eraEntry{}
	}
	return entries
}

// Recall implements transport.Memory.
func (m *eraMemory) Recall() (only exchange.Era, server string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.read()[m.runs]
	switch e.Only {
	case exchange.Legacy.String():
		return exchange.Legacy, e.Server, true
	case exchange.Modern.String():
		return exchange.Modern, e.Server, true
	}
	return 0, "", false
}

// Remember implements transport.Memory.
func (m *eraMemory) Remember(only exchange.Era, server string) {
	m.change(func(entries map[string]eraEntry) {
		for old := range entries {
			if len(entries) < maxEras {
				break
			}
			delete(entries, old)
		}
		entries[m.runs] = eraEntry{only.String(), server}
	})
}

// Forget implements transport.Memory.
func (m *eraMemory) Forget() {
	m.change(func(entries map[string]eraEntry) { delete(entries, m.runs) })
}

// change writes the file anew. Of two guards that do so at once the last one wins.
func (m *eraMemory) change(f func(map[string]eraEntry)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries := m.read()
	f(entries)
	if err := m.write(entries); err != nil {
		m.report("what the server speaks is not remembered: %v", err)
	}
}

func (m *eraMemory) write(entries map[string]eraEntry) error {
	text, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return err
	}
	if err := statefile.Replace(m.path, append(text, '\n')); err != nil {
		return fmt.Errorf("writing %q: %w", m.path, err)
	}
	return nil
}
