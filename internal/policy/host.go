package policy

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
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
	if !plain(h.name) || h.beneath && strings.Contains(h.name, ":") {
		return Host{}, errors.New("a host is a name in plain letters: write one with others as it is in the system of names, xn--…")
	}
	return h, nil
}

func hostName(u *url.URL) string { return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") }

func plain(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.:") == ""
}

func (h Host) match(name, port string) bool {
	if h.port != "" && h.port != port {
		return false
	}
	if h.beneath {
		return strings.HasSuffix(name, "."+h.name)
	}
	return name == h.name
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
	if !strings.Contains(text, "://") {
		if before, _, ok := strings.Cut(text, ":"); ok && schemePorts[strings.ToLower(before)] != "" || strings.HasPrefix(text, "/") {
			return location{} // "https:example.com", "//example.com"
		}
		text, certain = "https://"+text, false
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || strings.Contains(u.Host, "%") || u.Opaque != "" {
		return location{}
	}
	l := location{name: hostName(u), port: u.Port(), certain: certain, readable: !certain}
	if l.port == "" {
		l.port = schemePorts[u.Scheme]
	}
	if l.name != "" && (!plain(l.name) || oddAddress(l.name)) { // "file:///x" has none
		return location{}
	}
	if address, err := netip.ParseAddr(l.name); err == nil {
		l.name = address.String()
	}
	return l
}

// on reports whether l is on one of hosts.
func (l location) on(hosts []Host) truth {
	if !l.certain && !l.readable {
		return some
	}
	t := is(l.name != "" && slices.ContainsFunc(hosts, func(h Host) bool { return h.match(l.name, l.port) }))
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
