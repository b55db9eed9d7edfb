//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
)

// Guards that hang hold up no other, and all are waited for at once; each is named, and the others' questions are there in their order.
func TestGuardsThatHang(t *testing.T) {
	run, home := t.TempDir(), t.TempDir()
	var out, errs strings.Builder
	a := &app{out: &out, err: &errs, env: func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": run, "HOME": home}[name] }}
	dir, err := a.approvalDir()
	if err != nil {
		t.Fatal(err)
	}
	for i, server := range []string{"zfiles", "files"} {
		desk := approval.NewDesk(approval.DeskOptions{})
		door, err := approval.Listen(approval.DoorOptions{Dir: dir, Server: server, Desk: desk, Report: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { door.Close() })
		id := fmt.Sprintf("c%d", i+1)
		desk.Ask(t.Context(), approval.Call{Key: id, Question: approval.Question{ID: id, Head: server + " wants to write"}, Answered: func(approval.Answer) {}})
		time.Sleep(2 * time.Millisecond)
	}
	for i := range 3 {
		l, err := net.Listen("unix", filepath.Join(dir, fmt.Sprintf("hangs%d.sock", i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		card, err := json.Marshal(map[string]any{"server": fmt.Sprintf("hangs%d", i), "pid": 4711, "socket": l.Addr().String()})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("hangs%d.json", i)), card, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	err = a.listQuestions(t.Context(), false)
	if took := time.Since(began); took > 9*time.Second { // one is waited for 5 seconds
		t.Errorf("it took %v", took)
	}
	if err == nil || strings.Count(err.Error(), "process 4711 does not answer") != 3 {
		t.Errorf("%v, want three that do not answer", err)
	}
	var heads []string
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "c") {
			heads = append(heads, strings.TrimSpace(line))
		}
	}
	if got, want := strings.Join(heads, ", "), "c1  zfiles wants to write, c2  files wants to write"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
