package modern

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

const (
	sealedPrefix = "rbs1."
	parkedPrefix = "rbp1."
	// unsentPrefix is for a parked request that nobody behind the stages has seen yet. The name of its edge follows.
	unsentPrefix = "rba1."
	// stateLifetime is how long a request may be away until its retry.
	stateLifetime = 10 * time.Minute
)

// errState is every way in which a request state of ours can be wrong; which one is nobody's business.
var errState = errors.New("the request state is not valid for this request, was used, or is too old")

// sealed is what travels inside a state of ours.
type sealed struct {
	Digest  []byte        // of the request it belongs to
	Expires time.Time     //
	Held    exchange.Held // what stages hold
	State   []byte        // the server's own state, as it came; nil when it gave none
	Answers []byte        `json:",omitempty"` // of the client, where they were not handed on yet
}

// KeySize is how many bytes a key has that seals request states.
const KeySize = 32

// sealer seals with a key, and remembers what was used.
type sealer struct {
	aead cipher.AEAD
	now  func() time.Time

	mu    sync.Mutex
	used  map[string]time.Time // nonce, until when it must be remembered
	swept time.Time            // when those were looked through that need be no longer
}

// newSealer returns one with a key, or without one with a key that lives as long as it does.
func newSealer(key []byte, now func() time.Time) *sealer {
	if key == nil {
		key = make([]byte, KeySize)
		rand.Read(key)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("bug: " + err.Error())
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return &sealer{aead: aead, now: now, used: map[string]time.Time{}}
}

func (s *sealer) seal(v sealed) (string, error) {
	v.Expires = s.now().Add(stateLifetime)
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, s.aead.NonceSize())
	rand.Read(nonce)
	return sealedPrefix + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, nil)), nil
}

// open opens a state and uses it up.
func (s *sealer) open(state string, digest []byte) (sealed, error) {
	var v sealed
	text, ours := strings.CutPrefix(state, sealedPrefix)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if !ours || err != nil || len(raw) < s.aead.NonceSize() {
		return v, errState
	}
	nonce := raw[:s.aead.NonceSize()]
	plain, err := s.aead.Open(nil, nonce, raw[len(nonce):], nil)
	if err != nil || json.Unmarshal(plain, &v) != nil {
		return sealed{}, errState
	}
	now := s.now()
	if string(v.Digest) != string(digest) || now.After(v.Expires) {
		return sealed{}, errState
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) > stateLifetime/10 { // not each time: there may be many
		s.swept = now
		for n, until := range s.used {
			if now.After(until) {
				delete(s.used, n)
			}
		}
	}
	if _, used := s.used[string(nonce)]; used {
		return sealed{}, errState
	}
	s.used[string(nonce)] = v.Expires
	return v, nil
}

// digest is what makes a retry the same request as the first try: method and params, without the answers, the state and
// _meta, and however they are spelled.
func digest(m *wire.Message) []byte {
	p := m.Params()
	for _, name := range []string{"_meta", "inputResponses", "requestState"} {
		p = wire.DeleteMember(p, name)
	}
	h := sha256.New()
	h.Write([]byte(m.Method()))
	h.Write([]byte{0})
	h.Write(wire.Canonical(p))
	return h.Sum(nil)
}
