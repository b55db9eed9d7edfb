package mcptest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
)

// NewAuthority starts a Site behind an authorization server of OAuth, which lets in whoever visits its page. Close ends both.
func NewAuthority() (site *Site, closing func()) {
	a := &authority{}
	a.server = httptest.NewUnstartedServer(a)
	a.server.Start()
	a.site = &Site{Metadata: a.server.URL, token: "nobody-knows-" + rand.Text(), sessions: map[string]*siteSession{}}
	a.site.start()
	return a.site, func() {
		a.site.Close()
		a.server.Close()
	}
}

type authority struct {
	server *httptest.Server
	site   *Site

	mu        sync.Mutex
	challenge string
	n         int
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		json.NewEncoder(w).Encode(object{
			"issuer": a.server.URL, "authorization_endpoint": a.server.URL + "/authorize", "token_endpoint": a.server.URL + "/token",
			"registration_endpoint": a.server.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"},
		})
	case "/register":
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"client_id":"client"}`)
	case "/authorize":
		q := r.URL.Query()
		a.challenge = q.Get("code_challenge")
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"code"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	case "/token":
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if r.PostFormValue("grant_type") == "authorization_code" && base64.RawURLEncoding.EncodeToString(sum[:]) != a.challenge {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"invalid_grant"}`)
			return
		}
		a.n++
		token := fmt.Sprint("access-", a.n)
		a.site.SetToken(token)
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600,"refresh_token":"refresh-%d"}`, token, a.n)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// Visit is a program: it visits the page args[0], as a browser does.
func Visit(args []string) int {
	resp, err := http.Get(args[0])
	if err != nil || resp.StatusCode != http.StatusOK {
		fmt.Fprintln(os.Stderr, err, resp)
		return 1
	}
	resp.Body.Close()
	return 0
}
