package policy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Host is a host of a URL: a name, "*.NAME" for what is beneath a name, or an address; each may have a ":PORT".
type Host struct {
	name, port string
	beneath    bool
}

// String returns it as it is written.
func (h Host) String() string {
	s := h.name
	if strings.Contains(s, ":") {
		s = "[" + s + "]"
	}
	if h.beneath {
		s = "*." + s
	}
	if h.port != "" {
		s += ":" + h.port
	}
	return s
}

// ParseHost reads one.
func ParseHost(text string) (Host, error) {
	s := text
	var h Host
	s, h.beneath = strings.CutPrefix(s, "*.")
	u, err := url.Parse("//" + s)
	if err != nil || u.Host != s || u.Host == "" || u.User != nil {
		return Host{}, errors.New("a host is a name such as example.com, *.example.com or example.com:8443")
	}
	h.name, h.port = hostName(u), u.Port()
	switch {
	case !plain(h.name) || h.beneath && strings.Contains(h.name, ":"):
		return Host{}, errors.New("a host is a name in plain letters: write one with others as it is in the system of names, xn--…")
	case oddAddress(h.name):
		return Host{}, fmt.Errorf("%q is an address in a form that is read in several ways: write it as 192.0.2.1", h.name)
	}
	if h.port, err = plainPort(h.port); err != nil {
		return Host{}, err
	}
	return h, nil
}

// hostName is the host of a URL in the one form that is compared.
func hostName(u *url.URL) string {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if address, err := netip.ParseAddr(name); err == nil {
		return address.Unmap().String() // who connects to ::ffff:192.0.2.1 reaches 192.0.2.1
	}
	return name
}

// plainPort is a port without the zeros that may stand before it.
func plainPort(port string) (string, error) {
	if port == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", fmt.Errorf("there is no port %s", port)
	}
	return strconv.FormatUint(n, 10), nil
}

func plain(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.:") == ""
}

// match reports how much of a name with a port is h. The port is not known where a URL names none and its scheme is not a usual one.
func (h Host) match(name, port string) truth {
	switch {
	case h.beneath && !strings.HasSuffix(name, "."+h.name), !h.beneath && name != h.name:
		return none
	case h.port != "" && port == "":
		return some
	}
	return is(h.port == "" || h.port == port)
}

func (h Host) covers(o Host) bool {
	if h.port != "" && h.port != o.port {
		return false
	}
	if h.beneath {
		return strings.HasSuffix("."+o.name, "."+h.name) && (o.beneath || o.name != h.name)
	}
	return !o.beneath && h.name == o.name
}

// schemePorts are the ports of URLs that name none.
var schemePorts = map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443", "ftp": "21"}

// location is what is read of a URL, or of what may be one.
type location struct {
	name, port string
	host       string // the name, with its port where one is written
	// certain: it is a URL, and every reader finds this host, or none where the name is empty. Readable: it is none, and who makes
	// one of it finds this host.
	certain, readable bool
}

// locate reads a URL. What two readers could read differently is neither certain nor readable.
func locate(text string) location {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return location{}
	}
	certain := true
	switch scheme, _, ok := strings.Cut(text, "://"); {
	case ok && isScheme(scheme):
	case ok && strings.ContainsRune(scheme, '.') && isScheme(strings.ReplaceAll(scheme, ".", "")): // a scheme to some, a host to others
		return location{}
	default: // also "example.com/?to=https://example.org"
		if before, _, ok := strings.Cut(text, ":"); ok && schemePorts[strings.ToLower(before)] != "" || strings.HasPrefix(text, "/") {
			return location{} // "https:example.com", "//example.com"
		}
		text, certain = "https://"+text, false
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || strings.Contains(u.Host, "%") || u.Opaque != "" {
		return location{}
	}
	l := location{name: hostName(u), certain: certain, readable: !certain}
	if l.port, err = plainPort(u.Port()); err != nil {
		return location{}
	}
	usual := schemePorts[u.Scheme]
	if l.port == "" {
		l.port = usual
	}
	switch {
	case l.name == "" && usual != "" && u.Path != "": // "https:///example.com", in which browsers find a host; "file:///x" has none
		return location{}
	case l.name != "" && (!plain(l.name) || oddAddress(l.name)):
		return location{}
	}
	if l.host = l.name; u.Port() != "" {
		l.host = net.JoinHostPort(l.name, l.port)
	}
	return l
}

func isScheme(s string) bool {
	for i, c := range []byte(strings.ToLower(s)) {
		if letter := 'a' <= c && c <= 'z'; !letter && (i == 0 || !strings.ContainsRune("0123456789+-", rune(c))) {
			return false
		}
	}
	return s != ""
}

// Addressed says whether a text is an address.
type Addressed uint8

const (
	// NoAddress: it is none.
	NoAddress Addressed = iota
	// Perhaps: some take it for one, as "example.com" and "README.md".
	Perhaps
	// Unclear: it is one, and two readers may find different hosts.
	Unclear
	// Certain: it is one, and every reader finds the same host.
	Certain
)

// HostOf returns the host that a text is the address of, with its port where it names one; "file:" has none.
func HostOf(text string) (host string, how Addressed) {
	// Some take off what is around an address, and line ends out of it.
	text = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\r' || r == '\n' {
			return -1
		}
		return r
	}, strings.TrimFunc(text, func(r rune) bool { return r <= ' ' }))
	switch l := locate(text); {
	case l.certain && l.name == "":
		return "", NoAddress
	case l.certain || l.readable:
		if l.certain {
			return l.host, Certain
		}
		if strings.ContainsAny(l.host, ".:") || l.host == "localhost" {
			return l.host, Perhaps
		}
		return "", NoAddress
	}
	slash := func(s string) bool { return s != "" && (s[0] == '/' || s[0] == '\\') }
	if slash(text) {
		if slash(text[1:]) {
			return "", Unclear
		}
		return "", NoAddress
	}
	scheme, rest, ok := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	if ok && len(scheme) > 1 && isScheme(scheme) && scheme != "file" && (slash(rest) || schemePorts[scheme] != "") {
		return "", Unclear
	}
	return "", NoAddress
}

// on reports whether l is on one of hosts.
func (l location) on(hosts []Host) truth {
	if !l.certain && !l.readable {
		return some
	}
	t := none
	for _, h := range hosts {
		if l.name != "" {
			t = max(t, h.match(l.name, l.port))
		}
	}
	if !l.certain {
		t = t.within()
	}
	return t
}

// oddAddress reports whether a name is an address that some read in another way than others: "0177.1", "2130706433".
func oddAddress(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	number := last != "" && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"))
	if !number || strings.Contains(name, ":") {
		return false
	}
	address, err := netip.ParseAddr(name)
	return err != nil || !address.Is4()
}
