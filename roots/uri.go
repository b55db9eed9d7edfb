package roots

import (
	"runtime"
	"strings"
)

// ParseURI returns the path that a file URI names, decoded once and otherwise untouched: what it returns is what has to
// be checked, and used. The path is absolute and has no NUL and no ".." element. An error is an *Error.
//
// Beside what RFC 8089 says it takes what clients send: file:/x, characters that should have been encoded, and on Windows
// file://C:/x and a bare C:\x. StrictURI does not.
func ParseURI(uri string) (path string, err error) { return here.parse(uri, false) }

// StrictURI is ParseURI for URIs by the letter: file:///x or file://localhost/x, on Windows also file://host/share, with
// blanks, control characters and what is not ASCII encoded.
func StrictURI(uri string) (path string, err error) { return here.parse(uri, true) }

// FileURI returns the file URI of an absolute path. ParseURI and StrictURI give back the same path, whatever bytes its
// names hold. The URI of a path that is not absolute is empty.
func FileURI(path string) string { return here.write(path) }

// system is whose paths are read and written.
type system uint8

const (
	posixPaths system = iota
	windowsPaths
)

var here = func() system {
	if runtime.GOOS == "windows" {
		return windowsPaths
	}
	return posixPaths
}()

func (o system) parse(uri string, strict bool) (string, error) {
	refuse := func(r Reason, fix string) (string, error) { return "", &Error{Root: uri, Reason: r, Fix: fix} }

	scheme, rest, ok := strings.Cut(uri, ":")
	if o == windowsPaths && isDrive(uri) {
		switch {
		case !isAbs(o, uri):
			return refuse(NotAbsolute, "write the whole path, as in file:///C:/project")
		case strict:
			return refuse(NotStrict, "write "+o.write(uri))
		}
		return o.check(uri, strings.ReplaceAll(uri, "/", `\`))
	}
	if !ok || !isScheme(scheme) {
		switch {
		case isAbs(o, uri):
			return refuse(NoScheme, "write "+o.write(uri))
		case isAbs(windowsPaths, uri):
			return refuse(NoScheme, "that is a path of Windows, and this system is not")
		}
		return refuse(NoScheme, "write an absolute path as a URI, as in file:///home/me/project")
	}
	if !strings.EqualFold(scheme, "file") {
		if o == posixPaths && isDrive(uri) {
			return refuse(NoScheme, "that is a path of Windows, and this system is not")
		}
		return refuse(NotFile, "only file: URIs name a directory of this machine")
	}
	if strings.ContainsAny(rest, "?#") {
		return refuse(QueryOrFragment, "write ? as %3F and # as %23 when they belong to a name")
	}
	if strict && strings.ContainsFunc(rest, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return refuse(NotStrict, "write blanks, control characters and what is not ASCII percent-encoded")
	}

	host := ""
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		end := strings.IndexByte(after, '/')
		if o == windowsPaths {
			end = strings.IndexAny(after, `/\`)
		}
		if end < 0 {
			end = len(after)
		}
		host, rest = after[:end], after[end:]
	} else if strings.HasPrefix(rest, "/") && strict {
		return refuse(NotStrict, "write file://"+rest)
	}
	if rest != "" && !o.isSeparator(rune(rest[0])) {
		return refuse(NotAbsolute, "write the whole path, as in file:///home/me/project")
	}
	path, ok := unescape(rest)
	if !ok {
		return refuse(BadEncoding, "write % as %25 when it belongs to a name")
	}
	if strings.EqualFold(host, "localhost") {
		host = ""
	}

	if o == posixPaths {
		switch {
		case len(host) == 2 && isDrive(host):
			return refuse(RemoteHost, "that is a path of Windows, and this system is not")
		case host != "":
			return refuse(RemoteHost, "three slashes begin a path of this machine, as in file:///home/me/project")
		}
		return o.check(uri, path)
	}

	path = strings.ReplaceAll(path, "/", `\`)
	switch {
	case len(host) == 2 && isDrive(host):
		if strict {
			return refuse(NotStrict, "write file:///"+host+rest)
		}
		path = host + path
	case host != "":
		if !isHost(host) {
			return refuse(RemoteHost, "write file://host/share, or file:///C:/project")
		}
		path = `\\` + host + path
	case len(path) > 1 && isDrive(path[1:]):
		path = path[1:]
	}
	return o.check(uri, path)
}

// check refuses a decoded path that no root can have.
func (o system) check(uri, path string) (string, error) {
	refuse := func(r Reason, fix string) (string, error) { return "", &Error{Root: uri, Reason: r, Fix: fix} }
	if strings.Contains(path, "\x00") {
		return refuse(HasNUL, "no file name has one: take %00 out")
	}
	if o == windowsPaths && (strings.HasPrefix(path, `\\?\`) || strings.HasPrefix(path, `\\.\`)) {
		return refuse(DevicePath, "write the drive or the share, as in file:///C:/project")
	}
	if !isAbs(o, path) {
		if o == windowsPaths {
			return refuse(NotAbsolute, "write a drive or a share, as in file:///C:/project or file://host/share")
		}
		return refuse(NotAbsolute, "write the whole path, as in file:///home/me/project")
	}
	for _, e := range strings.FieldsFunc(path, o.isSeparator) {
		if e == ".." || o == windowsPaths && strings.Count(e, ".") > 1 && strings.Trim(e, ". ") == "" {
			return refuse(DotDot, "write the path that is meant, without \"..\"")
		}
	}
	return path, nil
}

func (o system) write(path string) string {
	if !isAbs(o, path) {
		return ""
	}
	b := make([]byte, 0, len("file://")+len(path)+16)
	b = append(b, "file://"...)
	if o == windowsPaths {
		path = strings.ReplaceAll(path, `\`, "/")
		if after, ok := strings.CutPrefix(path, "//"); !ok {
			b = append(b, '/')
		} else if host, _, _ := strings.Cut(after, "/"); isHost(host) && !strings.EqualFold(host, "localhost") {
			path = after
		}
	}
	const hex = "0123456789ABCDEF"
	for i := range len(path) {
		if c := path[i]; isAlnum(c) || strings.IndexByte("/-._~!$&'()*+,;=:@", c) >= 0 {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// unescape decodes every percent-encoded byte once.
func unescape(s string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) {
				return "", false
			}
			hi, ok1 := unhex(s[i+1])
			lo, ok2 := unhex(s[i+2])
			if !ok1 || !ok2 {
				return "", false
			}
			c = hi<<4 | lo
			i += 2
		}
		b = append(b, c)
	}
	return string(b), true
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

func (o system) isSeparator(c rune) bool { return c == '/' || o == windowsPaths && c == '\\' }

// isAbs reports whether path starts at the top: "/", a drive and a separator, or a host and a share.
func isAbs(o system, path string) bool {
	if o == posixPaths {
		return strings.HasPrefix(path, "/")
	}
	path = strings.ReplaceAll(path, "/", `\`)
	if after, ok := strings.CutPrefix(path, `\\`); ok {
		host, rest, _ := strings.Cut(after, `\`)
		share, _, _ := strings.Cut(rest, `\`)
		return host != "" && share != ""
	}
	return isDrive(path) && len(path) > 2 && path[2] == '\\'
}

// isDrive reports whether s begins with a drive letter and a colon.
func isDrive(s string) bool {
	return len(s) >= 2 && s[1] == ':' && 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z'
}

// isScheme reports whether s can be the scheme of a URI.
func isScheme(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && (i == 0 || c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != "" && (s[0]|0x20) >= 'a'
}

// isHost reports whether s can name a host before a share. A dot or a question mark alone would be the device name space.
func isHost(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && strings.IndexByte("-._", c) < 0 {
			return false
		}
	}
	return strings.Trim(s, ".") != ""
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
