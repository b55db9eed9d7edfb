// Package egress is the way out of a server that may reach a few hosts and nothing else: a proxy on this machine that
// speaks CONNECT, resolves names itself, and looks at each address before it connects.
//
//	hosts, err := egress.ParseHosts([]string{"api.example.com:443"})
//	p, err := egress.Listen(hosts, func(a egress.Attempt) { … })
//	defer p.Close()
//	env = append(env, p.Environ()...)
//
// A name never leads to an address of this machine or of a private network, whatever its servers answer (DNS rebinding,
// metadata services of clouds). Such an address can be reached only where it was itself named as a host, or localhost was.
//
// # Limits
//
// What goes through a tunnel is not looked at: a host that is allowed can be told anything, and can pass it on. Programs
// have to follow HTTPS_PROXY and its kind; those that do not reach nothing. Only tunnels are made: HTTP without TLS works
// where a program asks for a tunnel for it. Who can read the environment of the server can use the proxy.
package egress

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Host is where a server may connect to: a name or an address, and a port.
type Host struct {
	Name string // in lower case, without a final dot; an address as netip writes it
	Port uint16
}

// String returns it as it is written.
func (h Host) String() string {
	if strings.Contains(h.Name, ":") {
		return fmt.Sprintf("[%s]:%d", h.Name, h.Port)
	}
	return fmt.Sprintf("%s:%d", h.Name, h.Port)
}

// ParseHosts reads HOST:PORT texts.
func ParseHosts(texts []string) ([]Host, error) {
	var list []Host
	for _, text := range texts {
		h, err := parseHost(text)
		if err != nil {
			return nil, fmt.Errorf("reading the host %q: %w", text, err)
		}
		list = append(list, h)
	}
	return list, nil
}

func parseHost(text string) (Host, error) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return Host{}, fmt.Errorf("want HOST:PORT, as in %s:443", text)
	}
	port, err := strconv.ParseUint(text[at+1:], 10, 16)
	if err != nil || port == 0 {
		return Host{}, fmt.Errorf("%q is no port", text[at+1:])
	}
	name := text[:at]
	if inner, ok := strings.CutPrefix(name, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok {
			return Host{}, fmt.Errorf("the bracket is not closed")
		}
		ip, err := netip.ParseAddr(inner)
		if err != nil || ip.Zone() != "" {
			return Host{}, fmt.Errorf("%q is no address", inner)
		}
		return Host{ip.Unmap().String(), uint16(port)}, nil
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		if ip.Is6() {
			return Host{}, fmt.Errorf("write [%s]:%d", name, port)
		}
		return Host{ip.String(), uint16(port)}, nil
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if !isName(name) {
		return Host{}, fmt.Errorf("%q is neither a name nor an address", name)
	}
	return Host{name, uint16(port)}, nil
}

// isName reports whether s is a host name. One whose last part is a number is an address in another spelling to some
// resolvers, and no name.
func isName(s string) bool {
	if len(s) > 253 {
		return false
	}
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.HasPrefix(l, "-") || strings.HasSuffix(l, "-") {
			return false
		}
		for _, c := range []byte(l) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	return last[0] < '0' || last[0] > '9'
}

// refused are the networks that a name must not lead to, besides those that netip knows. 168.63.129.16 is where the
// machines of Azure find their metadata.
var refused = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "168.63.129.16/32", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4",
	"::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2002::/16", "fec0::/10",
)

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

// public reports whether an address is one of the internet: not of this machine, of a private network, of a link (where
// clouds keep their metadata), of a group, nor one that stands for another one of these.
func public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, p := range refused {
		if p.Contains(ip) {
			return false
		}
	}
	own, err := interfaces()
	return err == nil && !slices.ContainsFunc(own, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err != nil || p.Addr().Unmap() == ip
	})
}

// interfaces returns the addresses of this machine as they are now.
var interfaces = net.InterfaceAddrs
