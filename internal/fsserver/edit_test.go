package fsserver

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edited makes edits in the bytes of a file. Replaced is old and new, one after the other.
func edited(t *testing.T, raw string, replaced ...string) (string, error) {
	t.Helper()
	var edits []textEdit
	for i := 0; i < len(replaced); i += 2 {
		old, all := strings.CutPrefix(replaced[i], "ALL ")
		edits = append(edits, newEdit(old, replaced[i+1], all))
	}
	d, err := parseDocument([]byte(raw)).applyEdits(t.Context(), edits, "Say which.")
	if err != nil {
		return "", err
	}
	return string(d.raw()), nil
}

// What an edit does not name stays as it is, byte for byte.
// https://github.com/modelcontextprotocol/servers/issues/1591
// https://github.com/modelcontextprotocol/servers/issues/4157
func TestEditChangesOnlyWhatItNames(t *testing.T) {
	for name, tt := range map[string]struct {
		raw      string
		replaced []string
		want     string
	}{
		"a word":                                    {"a b c\n", []string{"b", "B"}, "a B c\n"},
		"dollars are no patterns":                   {"x\n", []string{"x", "a$&b$1$$"}, "a$&b$1$$\n"},
		"no final line end":                         {"a\nb", []string{"b", "c"}, "a\nc"},
		"a final line end taken":                    {"a\nb\n", []string{"b\n", "c"}, "a\nc"},
		"tabs":                                      {"\ta\n\t\tb\n", []string{"b", "c"}, "\ta\n\t\tc\n"},
		"one after the other":                       {"a\n", []string{"a", "b", "b", "c"}, "c\n"},
		"no edits":                                  {"a\r\nb", nil, "a\r\nb"},
		"everywhere":                                {"x y x", []string{"ALL x", "xx"}, "xx y xx"},
		"everywhere, side by side":                  {"aaaa", []string{"ALL aa", "b"}, "bb"},
		"latin-1":                                   {"caf\xe9\nb\n", []string{"b", "c"}, "caf\xe9\nc\n"},
		"GBK":                                       {"\xc4\xe3\xba\xc3\r\nb\r\n", []string{"b", "c"}, "\xc4\xe3\xba\xc3\r\nc\r\n"},
		"latin-1 in the line":                       {"caf\xe9 au lait\n", []string{" au lait", " noir"}, "caf\xe9 noir\n"},
		"a byte order mark":                         {"\ufeffa\n", []string{"a", "b"}, "\ufeffb\n"},
		"a byte order mark in oldText":              {"\ufeffa\n", []string{"\ufeffa", "b"}, "\ufeffb\n"},
		"a byte order mark in both":                 {"\ufeffa\n", []string{"\ufeffa", "\ufeffb"}, "\ufeffb\n"},
		"a byte order mark and blanks":              {"\ufeff  a\n", []string{" \ta", " \tb"}, "\ufeff  b\n"},
		"CRLF":                                      {"a\r\nb\r\nc", []string{"b", "B"}, "a\r\nB\r\nc"},
		"CRLF, by LF":                               {"a\r\nb\r\nc\r\n", []string{"a\nb", "x\ny\nz"}, "x\r\ny\r\nz\r\nc\r\n"},
		"CRLF, by CRLF":                             {"a\r\nb\r\n", []string{"a\r\nb", "x\r\ny"}, "x\r\ny\r\n"},
		"CRLF, lines put in":                        {"a\r\nb\r\n", []string{"b", "b\nc"}, "a\r\nb\r\nc\r\n"},
		"CRLF, lines put in at the end":             {"a\r\nb", []string{"b", "b\nc"}, "a\r\nb\r\nc"},
		"CRLF, lines taken":                         {"a\r\nb\r\nc\r\n", []string{"b\n", ""}, "a\r\nc\r\n"},
		"CRLF, by a line end alone":                 {"a\r\nb\r\n", []string{"a\nb", "a\n\nb"}, "a\r\n\r\nb\r\n"},
		"LF, by CRLF":                               {"a\nb\n", []string{"a\r\nb", "a\r\nc"}, "a\nc\n"},
		"mixed, what is alike":                      {"a\r\nb\nc\r\n", []string{"a\nb\nc", "a\nb\nd"}, "a\r\nb\nd\r\n"},
		"mixed, those of the span":                  {"a\r\nb\nc\r\n", []string{"a\nb\nc\n", "x\ny\nz\n"}, "x\r\ny\nz\r\n"},
		"mixed, beyond those of the span":           {"a\r\nb\nc\r\n", []string{"a\nb", "x\ny\nz"}, "x\r\ny\r\nz\nc\r\n"},
		"mixed, that of the line":                   {"a\r\nb\nc\r\n", []string{"b", "x\ny"}, "a\r\nx\ny\nc\r\n"},
		"mixed, everywhere":                         {"a\r\na\na", []string{"ALL a", "a\nb"}, "a\r\nb\r\na\nb\na\nb"},
		"a carriage return alone is text":           {"a\rb\r\n", []string{"a\rb", "c"}, "c\r\n"},
		"the second of CRLF at the edge of oldText": {"a\r\nb", []string{"\nb", "\nc"}, "a\r\nc"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := edited(t, tt.raw, tt.replaced...)
			if got != tt.want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// Lines that differ in the blanks around them are found, and keep the file's own indentation and nesting.
func TestEditKeepsNesting(t *testing.T) {
	for name, tt := range map[string]struct{ raw, old, new, want string }{
		"tabs for the edit's blanks":     {"\tif x {\n\t\tfoo()\n\t}\n", "    if x {\n        foo()\n    }", "    if x {\n        foo()\n        bar()\n    }", "\tif x {\n\t\tfoo()\n\t\tbar()\n\t}\n"},
		"deeper than any line":           {"\tfoo()\n", "    foo()", "    if x {\n        foo()\n    }", "\tif x {\n\t\tfoo()\n\t}\n"},
		"indentation left out":           {"class A:\n    def f(self):\n        if x:\n            return 1\n", "if x:\n    return 1", "if x:\n    if y:\n        return 2", "class A:\n    def f(self):\n        if x:\n            if y:\n                return 2\n"},
		"two columns in the file":        {"a:\n  b:\n    c: 1\n", "a:\n    b:\n        c: 1", "a:\n    b:\n        c: 1\n        d: 2\n            e", "a:\n  b:\n    c: 1\n    d: 2\n      e\n"},
		"tabs in the edit":               {"f:\n    if x:\n        y\n", "\tif x:\n\t\t y", "\tif x:\n\t\tz\n\t\tw", "f:\n    if x:\n        z\n        w\n"},
		"less deep":                      {"\t\ta\n\t\tb\n", "        a\n        b", "        a\n    b", "\t\ta\n\tb\n"},
		"an edit without any, in a nest": {"if x:\n    foo()\n", "if x: \nfoo()", "if x: \nfoo()\nbar()", "if x:\n    foo()\n    bar()\n"},
		"blanks at line ends":            {"\ta  \n\tb\n", "\ta\n\tb", "\ta\n\tc", "\ta  \n\tc\n"},
		"what is to be less deep":        {"\t\ta \n\t\tb\n", "\t\ta\n\t\tb", "\ta\n\tb", "\ta\n\tb\n"},
		"blank lines":                    {"\ta\n\n\tb\n", "a\n \nb", "a\n\nc", "\ta\n\n\tc\n"},
		"CRLF":                           {"\ta\r\n\tb\r\n", "a\nb", "a\nb\nc", "\ta\r\n\tb\r\n\tc\r\n"},
		"whole lines":                    {"\ta \n\tb\n", "a\n", "c\n", "\tc\n\tb\n"},
		"a line taken":                   {"\ta \n\tb\n", " a\n", "", "\tb\n"},
		"whole lines at an open end":     {"x\n\ta ", "a \n \n", "c\n", ""},
		"the last line, which is open":   {"x\n\ta", "  a\n", "  c\n", "x\n\tc"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := edited(t, tt.raw, tt.old, tt.new)
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// https://github.com/docker/docker-agent/issues/3929
// https://github.com/modelcontextprotocol/servers/issues/2034
func TestEditRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		raw      string
		replaced []string
		code     string
		want     string
	}{
		"what is there twice": {"x = 1\ny\nx = 1\n", []string{"x = 1", "z"}, codeSeveralMatches,
			"Found 2 matches for edit, at lines 1, 3, so it is not clear which is meant:\nx = 1\n\nSay which."},
		"what overlaps itself": {"aaa", []string{"aa", "b"}, codeSeveralMatches,
			"Found 2 matches for edit, at lines 1, 1, so it is not clear which is meant:\naa\n\nSay which."},
		"what is there very often": {strings.Repeat("a\n", 500), []string{"a", "b"}, codeSeveralMatches,
			"Found more than 100 matches for edit, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more, so it is not clear which is meant:\na\n\nSay which."},
		"lines that are there twice, but for blanks": {"\ta b\n\n  a b\n", []string{" a b ", "z"}, codeSeveralMatches,
			"Found no exact match for edit, and, leaving out blanks around the lines, 2 matches for edit, at lines 1, 3, so it is not clear which is meant:\n a b \n\n" +
				"Nothing was changed. Give the text exactly as it is in the file, with its indentation."},
		"one blank too many": {"package a\n\nfunc main() {\n\treturn\n}\n", []string{"func  main() {\n\treturn", "x"}, codeNoMatch,
			"Could not find exact match for edit:\nfunc  main() {\n\treturn\n\nThe nearest lines of the file are:\n     3: func main() {\n     4: \treturn"},
		"a letter wrong": {"one line here\n", []string{"one lime here", "x"}, codeNoMatch,
			"Could not find exact match for edit:\none lime here\n\nThe nearest lines of the file are:\n     1: one line here"},
		"nothing like it":  {"abc\n", []string{"xyz", ""}, codeNoMatch, "Could not find exact match for edit:\nxyz"},
		"an empty file":    {"", []string{"xyz", ""}, codeNoMatch, "Could not find exact match for edit:\nxyz"},
		"only blank lines": {"a\n\n\nb\n", []string{" \n \n ", ""}, codeNoMatch, "Could not find exact match for edit:\n \n \n "},
		"the second": {"a\n", []string{"a", "b", "a", "c"}, codeNoMatch,
			"Could not find exact match for edit:\na\n\nThis is edit 2 of 2. None of them was made."},
		"what was read of latin-1": {"un caf\xe9\n", []string{"un caf\ufffd", "x"}, codeNoMatch,
			"Could not find exact match for edit:\nun caf\ufffd\n\nU+FFFD in oldText stands for bytes of the file that are no UTF-8 and matches none of them. Give text without it." +
				"\n\nThe nearest lines of the file are:\n     1: un caf\ufffd"},
		"UTF-16": {"\xff\xfea\x00b\x00", []string{"ab", "x"}, codeNoMatch,
			"Could not find exact match for edit:\nab\n\nThe file has NUL bytes: it may be binary, or text in UTF-16, which edit_file does not write."},
		"no text": {"a\n", []string{"", "x"}, codeArguments,
			"oldText is empty, so it says nothing about where. To insert text, give the line before or behind that place as oldText, and again in newText. To fill a file, use write_file."},
		"what becomes too large": {strings.Repeat("a", 1<<10), []string{"ALL a", strings.Repeat("b", 1<<15)}, codeTooLarge,
			"The file would have 33554432 bytes, and edit_file makes at most 16777216. Nothing was changed."},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := edited(t, tt.raw, tt.replaced...)
			var r refusal
			if !errors.As(err, &r) {
				t.Fatalf("no refusal: %v", err)
			}
			if diff := cmp.Diff(tt.want, r.text); diff != "" || r.code != tt.code {
				t.Errorf("%s, want %s (-want +got):\n%s", r.code, tt.code, diff)
			}
		})
	}
}

// Texts made to be slow to search.
func TestEditsOfHostileTexts(t *testing.T) {
	many := strings.Repeat("a\n", 1<<20)
	for name, tt := range map[string]struct{ raw, old, new string }{
		"alike lines":    {many, strings.Repeat("a\n", 1<<18) + "b", ""},
		"one long line":  {strings.Repeat("a", 1<<21), strings.Repeat("a", 1<<20) + "b", ""},
		"overlapping":    {strings.Repeat("a", 1<<20), strings.Repeat("a", 1<<19), ""},
		"lines made":     {strings.Repeat("a", 1<<20) + "\r\n", "ALL a", "\n"},
		"line ends made": {strings.Repeat("\r\n", 1<<20), "ALL \n", "\n\n"},
		"blank lines":    {strings.Repeat(" \n", 1<<20) + "x", "\t\nx", "\nx"},
	} {
		t.Run(name, func(t *testing.T) {
			d := parseDocument([]byte(tt.raw))
			old, all := strings.CutPrefix(tt.old, "ALL ")
			if got, err := d.applyEdits(t.Context(), []textEdit{newEdit(old, tt.new, all)}, ""); err == nil {
				showDiff("f", d.text, got.text)
			}
		})
	}
}

// FuzzEdit holds edits to their promise: what is before and behind the text that was found stays as it is.
func FuzzEdit(f *testing.F) {
	f.Add([]byte("a\r\nb\nc\xe9\r\n"), "b", "x\ny", false)
	f.Add([]byte("\ufeffa\r\na"), "a", "\r\n", true)
	f.Add([]byte("\tif x {\n\t\ty\n\t}\n"), "  if x {\n    y\n", "  z {\n    y\n", false)
	f.Fuzz(func(t *testing.T, raw []byte, old, new string, all bool) {
		d := parseDocument(raw)
		if !bytes.Equal(d.raw(), raw) {
			t.Fatalf("%q is %q when nothing was changed", raw, d.raw())
		}
		e := newEdit(old, new, all)
		to, err := d.applyEdits(t.Context(), []textEdit{e}, "")
		if err != nil {
			return
		}
		found, size, _ := d.find(e, "")
		spans := slices.Collect(found)
		if size != len(to.text) {
			t.Errorf("%d bytes of text, want %d", len(to.text), size)
		}
		first, last := spans[0], spans[len(spans)-1]
		got := to.raw()
		head := len(d.splice(slices.Values([]span{{first.start, len(d.text), nil}}), first.start).raw()) // of the raw bytes
		if before := d.raw()[:head]; !bytes.HasPrefix(got, before) {
			t.Errorf("%q is %q: it does not begin with %q", raw, got, before)
		}
		tail := &document{text: d.text[last.end:]}
		for _, r := range d.returns {
			if int(r) >= last.end {
				tail.returns = append(tail.returns, r-int32(last.end))
			}
		}
		if behind := tail.raw(); !bytes.HasSuffix(got, behind) {
			t.Errorf("%q is %q: it does not end with %q", raw, got, behind)
		}
		var want []byte
		at := 0
		for _, s := range spans {
			want = append(append(want, d.text[at:s.start]...), s.new...)
			at = s.end
		}
		if want = append(want, d.text[at:]...); !bytes.Equal(to.text, want) {
			t.Errorf("%q is %q, want, with other line ends, %q", raw, to.text, want)
		}
		showDiff("f", d.text, to.text)
	})
}
