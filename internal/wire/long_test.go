package wire

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"sync"
	"testing"
)

// Long results from many goroutines come out whole, each with its own text, although their memory is used again.
func TestLongResultsKeepApart(t *testing.T) {
	r, w := io.Pipe()
	out := NewWriter(w)
	const senders, each = 4, 50
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				n := longMade + 1000*s + i
				id := []byte(strconv.Itoa(1000*s + i))
				m := NewLongResult(id, n/2, func(b []byte) []byte { // it may be longer than was said
					return append(append(append(b, '"'), bytes.Repeat([]byte{byte('a' + s)}, n)...), '"')
				})
				if string(m.ID()) != string(id) || len(m.Result()) != n+2 {
					t.Errorf("made with id %s and a result of %d bytes", m.ID(), len(m.Result()))
				}
				if err := out.Send(m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		sending.Wait()
		out.Wait()
		w.Close()
	}()
	lines := bufio.NewReader(r)
	for n := range senders * each {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("after %d: %v", n, err)
		}
		m, err := Scan(bytes.TrimSuffix(line, []byte("\n")), Strict)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := strconv.Atoi(string(m.ID()))
		s, i := id/1000, id%1000
		if want := bytes.Repeat([]byte{byte('a' + s)}, longMade+1000*s+i); string(m.Result()) != `"`+string(want)+`"` {
			t.Fatalf("the result of %d is another: %.20q…", id, m.Result())
		}
	}
}
