package verify

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

// token returns a text that is nowhere else: letters, so that no way of quoting changes it, and no number is in it by chance.
func token() string {
	var b [20]byte
	rand.Read(b[:])
	for i := range b {
		b[i] = 'a' + b[i]%26
	}
	return string(b[:])
}

// forms are how a text may come back: as it is, backwards, in hex, and in base64 wherever it begins.
func forms(text string) [][]byte {
	reversed := []byte(text)
	slices.Reverse(reversed)
	list := [][]byte{[]byte(text), reversed, []byte(hex.EncodeToString([]byte(text)))}
	for shift := range 3 {
		whole := base64.RawStdEncoding.EncodeToString(append(bytes.Repeat([]byte{'.'}, shift), text...))
		// The first and the last characters depend on what stands beside.
		from := []int{0, 2, 3}[shift]
		list = append(list, []byte(strings.TrimRight(whole[from:len(whole)-1], "=")))
	}
	return list
}

// canary is what a file outside is known by.
type canary struct {
	text  string // in its content
	name  string // in its name
	size  int64
	time  time.Time // when it was changed and used
	forms [][]byte
}

// found says in which form something of the canary is in b: "content", "name", or "".
func (c *canary) found(b []byte) string {
	for _, f := range c.forms {
		if bytes.Contains(b, f) {
			return "content"
		}
	}
	if bytes.Contains(b, []byte(c.name)) {
		return "name"
	}
	return ""
}

// facts says which fact about the file is in b, and not in what is usual: "size", "time", or "".
func (c *canary) facts(b, usual []byte) string {
	told := func(n int64) bool {
		digits := strconv.FormatInt(n, 10)
		return number(b, digits) && !number(usual, digits)
	}
	switch {
	case told(c.size):
		return "size"
	case told(int64(c.time.Year())), told(c.time.Unix()), told(c.time.UnixMilli()):
		return "time"
	}
	return ""
}

// number reports whether digits stand in b by themselves.
func number(b []byte, digits string) bool {
	for i := 0; ; {
		n := bytes.Index(b[i:], []byte(digits))
		if n < 0 {
			return false
		}
		i += n
		before, after := i > 0 && isDigit(b[i-1]), i+len(digits) < len(b) && isDigit(b[i+len(digits)])
		if !before && !after {
			return true
		}
		i++
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
