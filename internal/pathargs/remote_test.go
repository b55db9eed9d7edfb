package pathargs

import (
	"fmt"
	"strings"
	"testing"
)

// Paths of another machine are held to its directories by their text.
func TestJudgeText(t *testing.T) {
	for value, want := range map[string]string{
		"/srv/repo": "", "/srv/repo/a/../b": "", "a/b": "", ".": "", "file:///srv/repo/x": "", "file://localhost/srv/repo": "", "/srv/repo/%2e%2e/x": "outside",
		"/srv/repository": "outside", "/srv": "outside", "/": "outside", "/srv/repo/../x": "outside", "../x": "outside", "a/../../x": "outside",
		"file:///etc/passwd": "outside", "/srv/repo/..\\..\\x": "outside", "C:\\x": "outside", "~/x": "cannot", "$HOME/x": "cannot", "file://other/srv/repo": "cannot",
		"/srv/repo/a\x00/../../../etc": "outside",
	} {
		args, err := Find("tools/call", fmt.Appendf(nil, `{"name":"a","arguments":{"path":%q}}`, strings.ReplaceAll(value, "\x00", "\\u0000")), nil, Rules{Where: Remote})
		if strings.Contains(value, "\x00") {
			args, err = Find("tools/call", []byte(`{"name":"a","arguments":{"path":"/srv/repo/a\u0000/../../../etc"}}`), nil, Rules{Where: Remote})
		}
		if err != nil {
			t.Fatal(err)
		}
		refused := JudgeText(args, []string{"/srv/repo"}).Refused()
		got := ""
		if len(refused) > 0 {
			got = refused[0].Refusal.String()
		}
		if want == "" != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q (%+v)", value, got, want, args)
		}
	}
	// By its shape a string counts too, though nobody can look whether it is there.
	args, _ := Find("tools/call", []byte(`{"name":"a","arguments":{"x":"/etc/passwd","y":"word","z":"./a","content":"/etc/passwd"}}`), nil, Rules{Where: Remote})
	v := JudgeText(args, []string{"/srv/repo"})
	if got := v.Refused(); len(got) != 1 || got[0].Pointer != "/x" {
		t.Errorf("got %+v", got)
	}
	if got := JudgeText(args, []string{"/"}).Refused(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}
