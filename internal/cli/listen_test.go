package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/streamable"
)

// signer signs certificates for a test.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func certificate(t *testing.T, by *signer, name string) (signer, string, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: by == nil, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	with := signer{template, key}
	if by != nil {
		with = *by
	}
	der, err := x509.CreateCertificate(rand.Reader, template, with.cert, &key.PublicKey, with.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(t.TempDir(), name+".pem"), filepath.Join(t.TempDir(), name+".key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return signer{cert, key}, certFile, keyFile
}

// Only who shows a certificate of the authority gets in, and over HTTP without TLS nobody.
func TestListeningWithCertificates(t *testing.T) {
	ca, caFile, _ := certificate(t, nil, "authority")
	_, cert, key := certificate(t, &ca, "server")
	_, clientCert, clientKey := certificate(t, &ca, "client")
	_, otherCert, otherKey := certificate(t, nil, "other")
	l := listening{address: "0.0.0.0:0", remote: true, cert: cert, key: key, client: caFile, idle: time.Hour}
	ln, o, err := l.open(&app{env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	h := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() == "initialize" {
			reply(exchange.Result(r, []byte(`{"protocolVersion":"2025-11-25"}`)))
		}
	})
	o.Stateless = h
	o.Session = func(func(error)) (exchange.Handler, func(), error) { return h, func() {}, nil }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- streamable.New(ln, *o).Serve(ctx, ln) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	for _, tt := range []struct {
		name, scheme, cert, key string
		in                      bool
	}{
		{"a client", "https", clientCert, clientKey, true},
		{"nobody", "https", "", "", false},
		{"another's", "https", otherCert, otherKey, false},
		{"in the clear", "http", "", "", false},
	} {
		c := &tls.Config{RootCAs: pool}
		if tt.cert != "" {
			pair, err := tls.LoadX509KeyPair(tt.cert, tt.key)
			if err != nil {
				t.Fatal(err)
			}
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		tr := &http.Transport{TLSClientConfig: c}
		req, err := http.NewRequest("POST", tt.scheme+"://127.0.0.1:"+port+streamable.Path,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := (&http.Client{Transport: tr}).Do(req)
		in := err == nil && resp.StatusCode == http.StatusOK
		if in != tt.in {
			t.Errorf("%s: got in %v: %v", tt.name, in, err)
		}
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		tr.CloseIdleConnections()
	}
}
