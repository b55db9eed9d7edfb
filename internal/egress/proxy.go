package egress

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/textproto"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Attempt is one connection that a server wanted.
type Attempt struct {
	// Host is what it asked for, as it wrote it.
	Host string
	// Refused is why it was not let, empty when it was.
	Refused string
}

// Proxy is a listening proxy. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	hosts    map[Host]bool
	any      bool // every host, whatever it leads to
	token    string
	report   func(Attempt)
	// public judges the addresses that names lead to; lookup is where names are looked up.
	public func(netip.Addr) bool
	lookup *net.Resolver

	ctx  context.Context
	stop context.CancelFunc
	open sync.WaitGroup
	free chan struct{} // as many as may come in now
}

const (
	headTime   = 10 * time.Second // until a request has come whole
	dialTime   = 15 * time.Second
	answerTime = 5 * time.Second       // until a program has taken a refusal
	retryAfter = 50 * time.Millisecond // when no connection can be taken
	headBytes  = 16 << 10
	maxTunnels = 256
)

// Listen starts a proxy on a port of 127.0.0.1 that the system chooses. Report is told of each attempt, at once and from
// any goroutine. The caller closes the proxy.
func Listen(hosts []Host, report func(Attempt)) (*Proxy, error) {
	return start(&Proxy{hosts: map[Host]bool{}, report: report}, hosts)
}

// ListenAny starts one that leads to every host, also on this machine and in private networks: for a program that may
// reach them anyhow, to learn which ones it does.
func ListenAny(report func(Attempt)) (*Proxy, error) {
	return start(&Proxy{any: true, report: report}, nil)
}

func start(p *Proxy, hosts []Host) (*Proxy, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the server's connections: %w", err)
	}
	p.listener, p.token, p.public, p.lookup = l, rand.Text(), public, net.DefaultResolver
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.free = make(chan struct{}, maxTunnels)
	for _, h := range hosts {
		p.hosts[h] = true
	}
	p.open.Go(p.accept)
	return p, nil
}

// Port is where it listens.
func (p *Proxy) Port() uint16 { return p.listener.Addr().(*net.TCPAddr).AddrPort().Port() }

const user = "rootbound"

// Environ returns the environment variables by which programs find it: of curl, Python, Go and their kind, and of Node.
func (p *Proxy) Environ() []string {
	url := fmt.Sprintf("http://%s:%s@%s", user, p.token, p.listener.Addr())
	env := []string{"NODE_USE_ENV_PROXY=1", "NO_PROXY=", "no_proxy="}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+url, strings.ToLower(name)+"="+url)
	}
	return env
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() {
	p.stop()
	p.listener.Close()
	p.open.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(retryAfter): // no descriptors are left, and some will be
			}
			continue
		}
		select {
		case p.free <- struct{}{}:
			p.open.Go(func() {
				defer func() { <-p.free }()
				p.serve(c)
			})
		default:
			c.Close()
		}
	}
}

// refusal is an answer that makes no tunnel.
type refusal struct {
	status string
	why    string
}

func (p *Proxy) serve(c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(p.ctx, func() { c.Close() })()
	c.SetDeadline(time.Now().Add(headTime))
	in := bufio.NewReader(io.LimitReader(c, headBytes))
	asked, no := p.read(in)
	if no != nil {
		answer(c, no)
		return
	}
	c.SetDeadline(time.Time{}) // a host may take longer than a request
	to, err := p.dial(asked)
	a := Attempt{Host: asked}
	if err != nil {
		a.Refused = err.Error()
	}
	p.report(a)
	if err != nil {
		c.SetDeadline(time.Now().Add(answerTime))
		answer(c, &refusal{"403 Forbidden", err.Error()})
		return
	}
	defer to.Close()
	defer context.AfterFunc(p.ctx, func() { to.Close() })()
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	early, _ := in.Peek(in.Buffered()) // what did not wait for the answer
	tunnel(c.(*net.TCPConn), to.(*net.TCPConn), early)
}

// read reads a request for a tunnel and returns the host and port that it names.
func (p *Proxy) read(in *bufio.Reader) (string, *refusal) {
	r := textproto.NewReader(in)
	line, err := r.ReadLine()
	if err != nil {
		return "", &refusal{"400 Bad Request", "the request cannot be read"}
	}
	head, err := r.ReadMIMEHeader()
	if err != nil {
		return "", &refusal{"400 Bad Request", "the head of the request cannot be read"}
	}
	words := strings.Split(line, " ")
	if len(words) != 3 || !strings.HasPrefix(words[2], "HTTP/1.") {
		return "", &refusal{"400 Bad Request", "the request cannot be read"}
	}
	if !p.knows(head.Get("Proxy-Authorization")) {
		return "", &refusal{"407 Proxy Authentication Required", "this proxy is for one server"}
	}
	if words[0] != "CONNECT" {
		return "", &refusal{"405 Method Not Allowed", "this proxy makes tunnels only (CONNECT)"}
	}
	return words[1], nil
}

// knows reports whether a client has the token, so that no other program of this machine goes this way.
func (p *Proxy) knows(authorization string) bool {
	scheme, code, _ := strings.Cut(authorization, " ")
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(code))
	return strings.EqualFold(scheme, "Basic") && err == nil && subtle.ConstantTimeCompare(text, []byte(user+":"+p.token)) == 1
}

func answer(c net.Conn, r *refusal) {
	text := "rootbound: " + r.why + "\n"
	extra := ""
	if strings.HasPrefix(r.status, "407") {
		extra = "Proxy-Authenticate: Basic realm=\"rootbound\"\r\n"
	}
	fmt.Fprintf(c, "HTTP/1.1 %s\r\n%sContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", r.status, extra, len(text), text)
}

// dial connects to a host that is allowed.
func (p *Proxy) dial(asked string) (net.Conn, error) {
	host, err := parseHost(asked)
	if err != nil {
		return nil, fmt.Errorf("%q is no host and port", asked)
	}
	if !p.any && !p.hosts[host] {
		return nil, fmt.Errorf("%s is not among the hosts that this server may reach", host)
	}
	_, named := netip.ParseAddr(host.Name)
	anywhere := p.any || named == nil || host.Name == "localhost"
	d := net.Dialer{Timeout: dialTime, Resolver: p.lookup, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !anywhere && !p.public(to.Addr()) {
			return fmt.Errorf("%s leads to %s, which is of this machine or a private network", host, address)
		}
		return nil
	}}
	c, err := d.DialContext(p.ctx, "tcp", net.JoinHostPort(host.Name, fmt.Sprint(host.Port)))
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return c, err
}

// tunnel passes bytes both ways until both have ended.
func tunnel(a, b *net.TCPConn, early []byte) {
	var done sync.WaitGroup
	pass := func(to, from *net.TCPConn, first []byte) {
		_, err := to.Write(first)
		if err == nil {
			_, err = io.Copy(to, from)
		}
		if err == nil {
			err = to.CloseWrite()
		}
		if err != nil {
			a.Close()
			b.Close()
		}
	}
	done.Go(func() { pass(b, a, early) })
	done.Go(func() { pass(a, b, nil) })
	done.Wait()
}
