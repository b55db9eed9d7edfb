package egress

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseHosts(t *testing.T) {
	for text, want := range map[string]string{
		"api.Example.com:443":    "api.example.com:443",
		"example.com.:443":       "example.com:443",
		"10.0.0.7:5432":          "10.0.0.7:5432",
		"[::1]:80":               "[::1]:80",
		"[::ffff:10.0.0.7]:5432": "10.0.0.7:5432",
		"localhost:1":            "localhost:1",
		"a_b.test:65535":         "a_b.test:65535",
	} {
		got, err := ParseHosts([]string{text})
		if err != nil || len(got) != 1 || got[0].String() != want {
			t.Errorf("%q is %v, error %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"example.com":       `want HOST:PORT, as in example.com:443`,
		"example.com:":      `"" is no port`,
		"example.com:0":     `"0" is no port`,
		"example.com:https": `"https" is no port`,
		"*.example.com:1":   `"*.example.com" is neither a name nor an address`,
		"127.1:80":          `"127.1" is neither a name nor an address`,
		"0x7f000001:80":     `"0x7f000001" is neither a name nor an address`,
		"2130706433:80":     `"2130706433" is neither a name nor an address`,
		"::1:80":            `write [::1]:80`,
		"[::1:80":           `the bracket is not closed`,
		"[fe80::1%eth0]:1":  `"fe80::1%eth0" is no address`,
		"a..b:1":            `"a..b" is neither a name nor an address`,
		"https://x:1":       `"https://x" is neither a name nor an address`,
		":80":               `"" is neither a name nor an address`,
	} {
		_, err := ParseHosts([]string{text})
		if err == nil || err.Error() != fmt.Sprintf("reading the host %q: %s", text, want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// What is only watched may go where it wants.
func TestListenAny(t *testing.T) {
	var seen []Attempt
	p, err := ListenAny(func(a Attempt) { seen = append(seen, a) })
	if err != nil {
		t.Fatal(err)
	}
	there, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	code := base64.StdEncoding.EncodeToString([]byte(user + ":" + p.token))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nProxy-Authorization: Basic %s\r\n\r\n", there.Addr(), code)
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 200 ") {
		t.Errorf("answer %q, error %v", line, err)
	}
	p.Close()
	if want := []Attempt{{Host: there.Addr().String()}}; !cmp.Equal(want, seen) {
		t.Errorf("seen (-want +got):\n%s", cmp.Diff(want, seen))
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"a:1", "[::1]:2", "1.2.3.4:5", "x.y.:9", "[::ffff:1.2.3.4]:1", "0x1:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parseHost(s)
		if err != nil {
			return
		}
		if again, err := parseHost(h.String()); err != nil || again != h {
			t.Fatalf("%q is %q, which is %q, error %v", s, h, again, err)
		}
	})
}

func TestPublic(t *testing.T) {
	for _, s := range []string{"1.1.1.1", "93.184.216.34", "2606:4700::1111", "172.32.0.1", "100.128.0.1", "192.0.1.1"} {
		if !public(netip.MustParseAddr(s)) {
			t.Errorf("%s is not public", s)
		}
	}
	for _, s := range []string{
		"127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0", "0.1.2.3",
		"224.0.0.1", "255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.0.192", "::1", "::", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
		"::7f00:1", "fe80::1", "fe80::1%1", "fd00:ec2::254", "fec0::1", "ff02::1", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "2001::1",
		"168.63.129.16", "::ffff:0:a9fe:a9fe",
	} {
		if public(netip.MustParseAddr(s)) {
			t.Errorf("%s is public", s)
		}
	}
}

// A machine with an address of the internet serves at it what it serves at the others.
func TestPublicAddressesOfThisMachine(t *testing.T) {
	before := interfaces
	t.Cleanup(func() { interfaces = before })
	own := func(texts ...string) {
		interfaces = func() ([]net.Addr, error) {
			var list []net.Addr
			for _, text := range texts {
				ip, prefix, err := net.ParseCIDR(text)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, &net.IPNet{IP: ip, Mask: prefix.Mask})
			}
			return list, nil
		}
	}
	own("127.0.0.1/8", "9.9.9.9/24", "2620:fe::fe/64")
	for s, want := range map[string]bool{"9.9.9.9": false, "::ffff:9.9.9.9": false, "2620:fe::fe": false, "9.9.9.10": true, "2620:fe::9": true} {
		if got := public(netip.MustParseAddr(s)); got != want {
			t.Errorf("%s is public: %v, want %v", s, got, want)
		}
	}
	own("127.0.0.1/8")
	if !public(netip.MustParseAddr("9.9.9.9")) {
		t.Error("an address of another machine is not public")
	}
}

// names answers questions for A records from a table.
func names(t *testing.T, table map[string][4]byte) *net.Resolver {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			q := slices.Clone(b[:n])
			name, end := "", 12
			for q[end] != 0 {
				name += string(q[end+1:end+1+int(q[end])]) + "."
				end += 1 + int(q[end])
			}
			end += 5
			a := append(slices.Clone(q[:end]), 0)[:end]
			binary.BigEndian.PutUint16(a[2:], 0x8180)
			ip, known := table[strings.TrimSuffix(name, ".")]
			isA := binary.BigEndian.Uint16(q[end-4:]) == 1
			clear(a[6:12])
			if known && isA {
				a[7] = 1
				a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				a = append(a, ip[:]...)
			} else if !known {
				a[3] |= 3
			}
			c.WriteTo(a, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

// echo is a server that says back what it hears.
func echo(t *testing.T) (port string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// ask sends a request and what follows it at once, and returns the first line of the answer and all that came behind its head.
func ask(t *testing.T, p *Proxy, request, early string) (status, rest string) {
	t.Helper()
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + p.token))
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "TOKEN", auth)+early); err != nil {
		t.Fatal(err)
	}
	c.(*net.TCPConn).CloseWrite()
	b, err := io.ReadAll(bufio.NewReader(c))
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(b), "\r\n\r\n")
	status, _, _ = strings.Cut(head, "\r\n")
	return strings.TrimPrefix(status, "HTTP/1.1 "), strings.TrimSpace(rest)
}

func connect(host string) string {
	return "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\nProxy-Authorization: Basic TOKEN\r\n\r\n"
}

func TestProxy(t *testing.T) {
	port := echo(t)
	hosts, err := ParseHosts([]string{"good.test:" + port, "rebound.test:" + port, "localhost:" + port, "127.0.0.1:" + port, "gone.test:" + port})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var attempts []string
	p, err := Listen(hosts, func(a Attempt) {
		mu.Lock()
		defer mu.Unlock()
		attempts = append(attempts, strings.ReplaceAll(strings.TrimSuffix(a.Host+": "+a.Refused, ": "), port, "PORT"))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.lookup = names(t, map[string][4]byte{"good.test": {127, 0, 0, 1}, "rebound.test": {127, 0, 0, 1}, "bad.test": {127, 0, 0, 1}})

	// A name that leads to this machine is refused when it is dialled.
	no := "rootbound: rebound.test:" + port + " leads to 127.0.0.1:" + port + ", which is of this machine or a private network"
	tests := []struct{ request, status, rest string }{
		{connect("rebound.test:" + port), "403 Forbidden", no},
		{connect("127.0.0.1:" + port), "200 Connection established", "hello"},
		{connect("LocalHost.:" + port), "200 Connection established", "hello"},
		{connect("bad.test:" + port), "403 Forbidden", "rootbound: bad.test:" + port + " is not among the hosts that this server may reach"},
		{connect("good.test:1"), "403 Forbidden", "rootbound: good.test:1 is not among the hosts that this server may reach"},
		{connect("169.254.169.254:80"), "403 Forbidden", "rootbound: 169.254.169.254:80 is not among the hosts that this server may reach"},
		{connect("x"), "403 Forbidden", `rootbound: "x" is no host and port`},
		{strings.ReplaceAll(connect("127.0.0.1:"+port), "TOKEN", "eDp5"), "407 Proxy Authentication Required", "rootbound: this proxy is for one server"},
		{"CONNECT 127.0.0.1:" + port + " HTTP/1.1\r\n\r\n", "407 Proxy Authentication Required", "rootbound: this proxy is for one server"},
		{"GET http://good.test/ HTTP/1.1\r\nProxy-Authorization: basic TOKEN\r\n\r\n", "405 Method Not Allowed", "rootbound: this proxy makes tunnels only (CONNECT)"},
		{"hello\r\n\r\n", "400 Bad Request", "rootbound: the request cannot be read"},
		{"CONNECT a:1 HTTP/1.1\r\nX: " + strings.Repeat("x", headBytes) + "\r\n\r\n", "400 Bad Request", "rootbound: the head of the request cannot be read"},
	}
	for _, tt := range tests[:11] {
		status, rest := ask(t, p, tt.request, "hello")
		if status != tt.status || rest != tt.rest {
			t.Errorf("%.60q: %q and %q, want %q and %q", tt.request, status, rest, tt.status, tt.rest)
		}
	}
	// The same name through a proxy that takes this machine for the internet: what the test shows is the judgement.
	p.public = func(netip.Addr) bool { return true }
	if status, rest := ask(t, p, connect("good.test:"+port), "hello"); status != "200 Connection established" || rest != "hello" {
		t.Errorf("a name: %q and %q", status, rest)
	}
	if status, rest := ask(t, p, connect("gone.test:"+port), ""); status != "403 Forbidden" || !strings.Contains(rest, "no such host") {
		t.Errorf("a name that nobody has: %q and %q", status, rest)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{
		"rebound.test:PORT: rebound.test:PORT leads to 127.0.0.1:PORT, which is of this machine or a private network",
		"127.0.0.1:PORT", "LocalHost.:PORT",
		"bad.test:PORT: bad.test:PORT is not among the hosts that this server may reach",
		"good.test:1: good.test:1 is not among the hosts that this server may reach",
		"169.254.169.254:80: 169.254.169.254:80 is not among the hosts that this server may reach",
		`x: "x" is no host and port`, "good.test:PORT",
	}
	if diff := cmp.Diff(want, attempts[:min(len(want), len(attempts))]); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// Close ends what is open, and waits for it.
func TestClose(t *testing.T) {
	port := echo(t)
	hosts, _ := ParseHosts([]string{"127.0.0.1:" + port})
	p, err := Listen(hosts, func(Attempt) {})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + p.token))
	fmt.Fprint(c, strings.ReplaceAll(connect("127.0.0.1:"+port), "TOKEN", auth))
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	p.Close()
	if _, err := io.Copy(io.Discard, in); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the tunnel after Close: %v", err)
	}
}

func TestEnviron(t *testing.T) {
	p, err := Listen(nil, func(Attempt) {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want := fmt.Sprintf("https_proxy=http://rootbound:%s@127.0.0.1:%d", p.token, p.Port())
	if env := p.Environ(); !slices.Contains(env, want) || !slices.Contains(env, "NO_PROXY=") {
		t.Errorf("environment %q, want %q in it", env, want)
	}
}

// deadlined is a connection whose time is over when the test says so, if it had an end then.
type deadlined struct {
	net.Conn
	mu  sync.Mutex
	end time.Time
}

func (d *deadlined) SetDeadline(end time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end = end
	return d.Conn.SetDeadline(time.Time{})
}

func (d *deadlined) late() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.end.IsZero() {
		d.Conn.SetDeadline(d.end.AddDate(-1, 0, 0))
	}
}

// A refusal that takes longer than a request may take is told all the same.
func TestALateRefusal(t *testing.T) {
	hosts, err := ParseHosts([]string{"slow.test:443"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Listen(hosts, func(Attempt) {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, of := net.Pipe()
	d := &deadlined{Conn: of}
	p.lookup = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		d.late()
		return nil, errors.New("no names here")
	}}
	go p.serve(d)
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + p.token))
	if _, err := io.WriteString(c, strings.ReplaceAll(connect("slow.test:443"), "TOKEN", auth)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if text := string(answer); err != nil || !strings.HasPrefix(text, "HTTP/1.1 403 Forbidden\r\n") || !strings.Contains(text, "slow.test") {
		t.Errorf("got %q, error %v", text, err)
	}
}

// full is a listener of a process that has no descriptors left.
type full struct {
	net.Listener
	tries atomic.Int32
}

func (f *full) Accept() (net.Conn, error) {
	f.tries.Add(1)
	return nil, syscall.EMFILE
}

func TestNoDescriptorsAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &full{}
		p := &Proxy{listener: f}
		p.ctx, p.stop = context.WithCancel(t.Context())
		p.open.Go(p.accept)
		time.Sleep(5*retryAfter - 1)
		p.stop()
		p.open.Wait()
		if n := f.tries.Load(); n != 5 {
			t.Errorf("it was tried %d times in %v", n, 5*retryAfter)
		}
	})
}
