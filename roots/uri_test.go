package roots

import (
	"errors"
	"strings"
	"testing"
)

func TestParseURI(t *testing.T) {
	tests := []struct {
		os     system
		uri    string
		path   string // or why it is refused:
		reason Reason
		strict Reason // why StrictURI refuses what ParseURI takes
	}{
		{os: posixPaths, uri: "file:///home/u/p", path: "/home/u/p"},
		{os: posixPaths, uri: "file://localhost/home/u/p", path: "/home/u/p"},
		{os: posixPaths, uri: "file://LocalHost/home/u/p", path: "/home/u/p"},
		{os: posixPaths, uri: "FILE:///home/u/p", path: "/home/u/p"},
		{os: posixPaths, uri: "file:///", path: "/"},
		{os: posixPaths, uri: "file:///home/u/p/", path: "/home/u/p/"},
		{os: posixPaths, uri: "file:///home//u/./p", path: "/home//u/./p"},
		{os: posixPaths, uri: "file:////x", path: "//x"},
		{os: posixPaths, uri: "file:///home/u/my%20project", path: "/home/u/my project"},
		{os: posixPaths, uri: "file:///a%23b%3Fc%25d", path: "/a#b?c%d"},
		{os: posixPaths, uri: "file:///a%252e", path: "/a%2e"}, // decoded once
		{os: posixPaths, uri: "file:///a%FFb%0A", path: "/a\xffb\n"},
		{os: posixPaths, uri: "file:///a%2Fb", path: "/a/b"},
		{os: posixPaths, uri: "file:///c%3A/temp", path: "/c:/temp"},
		{os: posixPaths, uri: "file:///a/..b/c..", path: "/a/..b/c.."},
		{os: posixPaths, uri: `file:///a\b`, path: `/a\b`},
		{os: posixPaths, uri: "file:///home/u/my project", path: "/home/u/my project", strict: NotStrict},
		{os: posixPaths, uri: "file:///home/u/我的项目", path: "/home/u/我的项目", strict: NotStrict},
		{os: posixPaths, uri: "file:/home/u/p", path: "/home/u/p", strict: NotStrict},

		{os: posixPaths, uri: "", reason: NoScheme},
		{os: posixPaths, uri: "/home/u/p", reason: NoScheme},
		{os: posixPaths, uri: "p/q", reason: NoScheme},
		{os: posixPaths, uri: "~/p", reason: NoScheme},
		{os: posixPaths, uri: "/a:b", reason: NoScheme},
		{os: posixPaths, uri: " file:///x", reason: NoScheme},
		{os: posixPaths, uri: `C:\x`, reason: NoScheme},
		{os: posixPaths, uri: `\\host\share`, reason: NoScheme},
		{os: posixPaths, uri: "vscode-remote://ssh/home/u", reason: NotFile},
		{os: posixPaths, uri: "https://example.com/", reason: NotFile},
		{os: posixPaths, uri: "file://C:/x", reason: RemoteHost},
		{os: posixPaths, uri: "file://host/share", reason: RemoteHost},
		{os: posixPaths, uri: "file://home/u/p", reason: RemoteHost},
		{os: posixPaths, uri: "file://localhost:80/x", reason: RemoteHost},
		{os: posixPaths, uri: "file:///a?b", reason: QueryOrFragment},
		{os: posixPaths, uri: "file:///a#b", reason: QueryOrFragment},
		{os: posixPaths, uri: "file:///100%", reason: BadEncoding},
		{os: posixPaths, uri: "file:///%4", reason: BadEncoding},
		{os: posixPaths, uri: "file:///%zz", reason: BadEncoding},
		{os: posixPaths, uri: "file:///a%00b", reason: HasNUL},
		{os: posixPaths, uri: "file:///a\x00b", reason: HasNUL, strict: NotStrict},
		{os: posixPaths, uri: "file:", reason: NotAbsolute},
		{os: posixPaths, uri: "file://", reason: NotAbsolute},
		{os: posixPaths, uri: "file:p/q", reason: NotAbsolute},
		{os: posixPaths, uri: "file:%2Fp", reason: NotAbsolute},
		{os: posixPaths, uri: "file:///a/../b", reason: DotDot},
		{os: posixPaths, uri: "file:///a/%2e%2E", reason: DotDot},
		{os: posixPaths, uri: "file:///a%2F..%2Fb", reason: DotDot},

		{os: windowsPaths, uri: "file:///C:/x", path: `C:\x`},
		{os: windowsPaths, uri: "file:///c:/x", path: `c:\x`},
		{os: windowsPaths, uri: "file:///c%3A/x%20y", path: `c:\x y`},
		{os: windowsPaths, uri: "file:///C:/", path: `C:\`},
		{os: windowsPaths, uri: "file://localhost/C:/x", path: `C:\x`},
		{os: windowsPaths, uri: "file://host/share", path: `\\host\share`},
		{os: windowsPaths, uri: "file://host/share/a%23b", path: `\\host\share\a#b`},
		{os: windowsPaths, uri: "file:////host/share", path: `\\host\share`},
		{os: windowsPaths, uri: "file:///C:%5Cx", path: `C:\x`},
		{os: windowsPaths, uri: "file:/C:/x", path: `C:\x`, strict: NotStrict},
		{os: windowsPaths, uri: "file://C:/x", path: `C:\x`, strict: NotStrict},
		{os: windowsPaths, uri: `file://C:\x`, path: `C:\x`, strict: NotStrict},
		{os: windowsPaths, uri: `C:\x y`, path: `C:\x y`, strict: NotStrict},
		{os: windowsPaths, uri: `c:/x`, path: `c:\x`, strict: NotStrict},
		{os: windowsPaths, uri: `C:\x%20#?`, path: `C:\x%20#?`, strict: NotStrict}, // no URI, so nothing is encoded

		{os: windowsPaths, uri: `C:x`, reason: NotAbsolute},
		{os: windowsPaths, uri: `file:C:/x`, reason: NotAbsolute},
		{os: windowsPaths, uri: `file:///C:`, reason: NotAbsolute},
		{os: windowsPaths, uri: `file:///C:x`, reason: NotAbsolute},
		{os: windowsPaths, uri: `file:///home/u`, reason: NotAbsolute},
		{os: windowsPaths, uri: `file://host`, reason: NotAbsolute},
		{os: windowsPaths, uri: `file://host/`, reason: NotAbsolute},
		{os: windowsPaths, uri: `\\host\share`, reason: NoScheme},
		{os: windowsPaths, uri: `/home/u`, reason: NoScheme},
		{os: windowsPaths, uri: `file://me@host/share`, reason: RemoteHost},
		{os: windowsPaths, uri: `file://host:80/share`, reason: RemoteHost},
		{os: windowsPaths, uri: `file://./pipe/x`, reason: RemoteHost},
		{os: windowsPaths, uri: `file:////./pipe/x`, reason: DevicePath},
		{os: windowsPaths, uri: `file:////%3F/C:/x`, reason: DevicePath},
		{os: windowsPaths, uri: `C:\a\..\b`, reason: DotDot, strict: NotStrict},
		{os: windowsPaths, uri: `file:///C:/a%5C..%5Cb`, reason: DotDot},
		{os: windowsPaths, uri: `file:///C:/a/..%20/b`, reason: DotDot},
		{os: windowsPaths, uri: `file:///C:/a/.../b`, reason: DotDot},
		{os: windowsPaths, uri: `vscode-remote:/x`, reason: NotFile},
	}
	for _, test := range tests {
		check := func(form string, strict bool, want Reason) {
			path, err := test.os.parse(test.uri, strict)
			switch {
			case want == "":
				if err != nil || path != test.path {
					t.Errorf("%s(%q) on %v = %q, %v, want %q", form, test.uri, test.os, path, err, test.path)
				}
			default:
				var e *Error
				if !errors.As(err, &e) || e.Reason != want || path != "" {
					t.Errorf("%s(%q) on %v = %q, %v, want reason %q", form, test.uri, test.os, path, err, want)
				} else if e.Root != test.uri || e.Fix == "" || reasonText[e.Reason] == "" {
					t.Errorf("%s(%q): %v does not name the root and the fix", form, test.uri, err)
				}
			}
		}
		check("ParseURI", false, test.reason)
		if test.strict == "" {
			test.strict = test.reason
		}
		check("StrictURI", true, test.strict)
	}
}

func TestRefusalSaysWhatToWrite(t *testing.T) {
	tests := []struct {
		os       system
		strict   bool
		uri, fix string
	}{
		{posixPaths, false, "/home/u/my project", "write file:///home/u/my%20project"},
		{posixPaths, true, "file:/home/u", "write file:///home/u"},
		{windowsPaths, false, `\\host\share`, "write file://host/share"},
		{windowsPaths, true, `C:\x y`, "write file:///C:/x%20y"},
		{windowsPaths, true, `file://C:/x%20y`, "write file:///C:/x%20y"},
	}
	for _, test := range tests {
		_, err := test.os.parse(test.uri, test.strict)
		var e *Error
		if !errors.As(err, &e) || e.Fix != test.fix {
			t.Errorf("parse(%q) = %v, want the fix %q", test.uri, err, test.fix)
		}
	}
	_, err := posixPaths.parse("/p", false)
	if got, want := err.Error(), `refusing root "/p": it is a path without a scheme; write file:///p`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFileURI(t *testing.T) {
	tests := []struct {
		os        system
		path, uri string
	}{
		{posixPaths, "/", "file:///"},
		{posixPaths, "/home/u/a b", "file:///home/u/a%20b"},
		{posixPaths, "/a#b?c%d", "file:///a%23b%3Fc%25d"},
		{posixPaths, "/我", "file:///%E6%88%91"},
		{posixPaths, "/\xff\n", "file:///%FF%0A"},
		{posixPaths, `/a\b`, "file:///a%5Cb"},
		{posixPaths, "//x", "file:////x"},
		{posixPaths, "x", ""},
		{posixPaths, "", ""},
		{windowsPaths, `C:\x y`, "file:///C:/x%20y"},
		{windowsPaths, `C:\`, "file:///C:/"},
		{windowsPaths, `\\host\share\a#b`, "file://host/share/a%23b"},
		{windowsPaths, `\\my host\share`, "file:////my%20host/share"},
		{windowsPaths, `\\localhost\share`, "file:////localhost/share"},
		{windowsPaths, `\x`, ""},
		{windowsPaths, `C:x`, ""},
	}
	for _, test := range tests {
		if got := test.os.write(test.path); got != test.uri {
			t.Errorf("FileURI(%q) on %v = %q, want %q", test.path, test.os, got, test.uri)
		}
	}
}

// FuzzFileURI: what is written is read back as it was, by the lenient and by the strict reader, whatever bytes a name
// holds.
func FuzzFileURI(f *testing.F) {
	for _, name := range []string{"a", "%", "%25", "#", "?", " ", "\n", "\xff\xfe", "我的项目", "..x", "...", `a\b`, "a:b", "~", "\x7f"} {
		f.Add(name, "host")
	}
	f.Fuzz(func(t *testing.T, name, host string) {
		// What can be a name, of one element or several.
		if strings.Contains(name, "\x00") {
			return
		}
		for _, e := range strings.FieldsFunc(name, windowsPaths.isSeparator) {
			if strings.Trim(e, ". ") == "" {
				return
			}
		}
		back := func(o system, path string) {
			uri := o.write(path)
			for _, strict := range []bool{false, true} {
				if got, err := o.parse(uri, strict); err != nil || got != path {
					t.Errorf("on %v, %q written as %q is read as %q, %v (strict %v)", o, path, uri, got, err, strict)
				}
			}
			if strings.ContainsFunc(uri, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '#' || c == '?' }) {
				t.Errorf("the URI of %q is not written out: %q", path, uri)
			}
		}
		back(posixPaths, "/"+name)
		back(posixPaths, "/a/"+name+"/b")
		name = strings.ReplaceAll(name, "/", "_")
		back(windowsPaths, `C:\`+name)
		if host != "" && host != "." && !strings.ContainsAny(host, "/\\\x00?") && strings.Trim(host, ". ") != "" {
			back(windowsPaths, `\\`+host+`\share\`+name)
		}
	})
}

// FuzzParseURI: whatever comes, a path that is handed out is absolute and has no NUL and no ".." in it.
func FuzzParseURI(f *testing.F) {
	for _, uri := range []string{"file:///a/b", "file:///%2e%2e", "file://host/share", "file:////%3F/C:/x", `C:\x`, "file:/x", "file:///a%00",
		"file://localhost/C:/x", "/x", `\\a\b`, "file://c:/..", "file:///c|/x"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		for _, o := range []system{posixPaths, windowsPaths} {
			path, err := o.parse(uri, false)
			strict, serr := o.parse(uri, true)
			if serr == nil && (err != nil || strict != path) {
				t.Errorf("on %v, %q is %q by the letter and %q, %v otherwise", o, uri, strict, path, err)
			}
			if err != nil {
				var e *Error
				if path != "" || !errors.As(err, &e) || e.Root != uri || e.Fix == "" {
					t.Errorf("on %v, refusing %q: %q, %v", o, uri, path, err)
				}
				continue
			}
			if !isAbs(o, path) || strings.Contains(path, "\x00") {
				t.Errorf("on %v, %q gives %q", o, uri, path)
			}
			for e := range strings.SplitSeq(strings.ReplaceAll(path, `\`, map[system]string{posixPaths: `\`, windowsPaths: "/"}[o]), "/") {
				if e == ".." {
					t.Errorf("on %v, %q gives %q", o, uri, path)
				}
			}
			if o == windowsPaths && strings.Contains(path, "/") {
				t.Errorf("on %v, %q gives %q, with both separators", o, uri, path)
			}
		}
	})
}
