package calllog

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	var e encoder
	line, _ := e.line(&Record{Kind: Call, Call: "c7f3a2", Method: "tools/call", Tool: "read_file", Verdict: Deny,
		Args:   []byte(`{"path":"C:\\Users\\Ann\\notes.txt","time":"at noon","port":8080,"说明":"会议记录"}`),
		Reason: `the name "büro` + "\n" + `plan" is outside`}, 4711, someTime, "files", noPrev)
	line = line[:len(line)-1]
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"", true},
		{"READ_FILE", true},
		{`Users\ann\NOTES`, true},
		{`Users\\ann`, false},
		{"at noon", true}, // a member of somebody's that is called as one of ours
		{"8080", true},
		{"808080", false},
		{"会议", true},
		{"说明", false},
		{`"büro`, true},
		{"büro\nplan", true},
		{"BüRO", true},
		{"outside", true},
		{"path", false}, // only a name
		{"verdict", false},
		{"4711", false},     // the record's number
		{"2026-", false},    // its time
		{"00000000", false}, // its chain
		{`","`, false},
		{"deny", true},
		{"c7f3a2", true},
	} {
		if got := NewText(tt.text).In(line); got != tt.want {
			t.Errorf("%q is in %s: %v, want %v", tt.text, line, got, tt.want)
		}
	}
}

// FuzzText looks for what is there: what a person reads in a record, and copies from it, is found.
func FuzzText(f *testing.F) {
	f.Add("the name \"büro\nplan\" is outside", "x", 4, 9)
	f.Add(`C:\Users\ann`, `\`, 0, 3)
	f.Add("\u202eevil\x00\x1b[31m", "\\", 0, 4)
	f.Fuzz(func(t *testing.T, reason, text string, from, to int) {
		var e encoder
		line, _ := e.line(&Record{Kind: Note, Reason: reason}, 1, someTime, "files", noPrev)
		line = line[:len(line)-1]
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if from >= 0 && from <= to && to <= len(r.Reason) {
			if part := r.Reason[from:to]; strings.ToValidUTF8(part, "") == part && !NewText(part).In(line) {
				t.Errorf("%q is not found in %s", part, line)
			}
		}
		read := folded(r.Reason)
		sought := folded(text)
		if strings.ToValidUTF8(text, "") == text && NewText(text).In(line) && !strings.Contains(read, sought) &&
			!strings.Contains("notefiles{}[],:", sought) && !partOfEscape(read, sought) {
			t.Errorf("%q is found in %s", text, line)
		}
	})
}

// partOfEscape reports whether what was sought could be the end of an escape: letters behind a backslash that JSON has for a
// character that cannot be seen.
func partOfEscape(read, sought string) bool {
	quoted := folded(string(appendEscaped(nil, []byte(read))))
	return strings.Contains(quoted, sought)
}

func folded(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}
