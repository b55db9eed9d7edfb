package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func TestReaderCutsLinesAndGoesOnAfterOneThatIsTooLong(t *testing.T) {
	long := `{"result":"` + strings.Repeat("x", 300<<10) + `\\","jsonrpc":"2.0","id":42}`
	in := "one\n\n  \r\n" + long + "\ntwo\r\n" + strings.Repeat("y", 100<<10) + "\nlast"
	for name, src := range map[string]io.Reader{"whole": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in))} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(src, 200<<10)
			var got []string
			for {
				line, err := r.Next()
				var refused *Refusal
				if errors.As(err, &refused) {
					got = append(got, fmt.Sprintf("refused %s %s", refused.ID, refused.Kind))
					continue
				}
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, clip(string(line))[:min(4, len(line))])
			}
			if want := "[one refused 42 response two\r yyyy last]"; fmt.Sprint(got) != want {
				t.Errorf("got %q, want %s", got, want)
			}
		})
	}
}

// FuzzReader holds the reader to what a split at the line ends gives, however the stream comes in: no line over the limit is
// kept, every other comes whole and in its place.
func FuzzReader(f *testing.F) {
	f.Add([]byte("a\n\r\nbcd\n"), 2, 1)
	f.Add([]byte(`{"id":1,"x":"`+strings.Repeat("y", 100)+"\"}\nlast"), 50, 700)
	f.Fuzz(func(t *testing.T, text []byte, limit, repeat int) {
		limit, repeat = max(1, limit%(200<<10)), max(1, repeat%1000)
		if len(text)*repeat > 1<<20 {
			return
		}
		in := bytes.Repeat(text, repeat) // lines that are longer than any buffer
		r := NewReader(iotest.HalfReader(bytes.NewReader(in)), limit)
		for i, want := range bytes.Split(in, []byte("\n")) {
			if len(want) <= limit && len(bytes.TrimSpace(want)) == 0 {
				continue
			}
			got, err := r.Next()
			var refused *Refusal
			switch {
			case len(want) > limit && !errors.As(err, &refused):
				t.Fatalf("line %d of %d bytes came with the limit %d: %d bytes, %v", i, len(want), limit, len(got), err)
			case len(want) <= limit && (err != nil || !bytes.Equal(got, want)):
				t.Fatalf("line %d: %.100q, %v, want %.100q", i, got, err, want)
			}
		}
		if line, err := r.Next(); err != io.EOF {
			t.Fatalf("at the end: %.100q, %v", line, err)
		}
	})
}

// blockingWriter takes nothing until it is released.
type blockingWriter struct {
	release chan struct{}
	started chan struct{}
	once    sync.Once
	mu      sync.Mutex
	buf     bytes.Buffer
}

func (w *blockingWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.started) })
	<-w.release
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func TestQueueNeverWaitsAndOrderHolds(t *testing.T) {
	dst := &blockingWriter{release: make(chan struct{}), started: make(chan struct{})}
	w := NewWriter(dst)
	var want strings.Builder
	for i := range 1000 {
		m := NewNotification(fmt.Sprintf("n/%d", i), nil)
		if err := w.Queue(m); err != nil {
			t.Fatal(err)
		}
		want.Write(m.Bytes())
		want.WriteByte('\n')
	}
	close(dst.release)
	if err := w.Wait(); err != nil {
		t.Fatal(err)
	}
	if dst.buf.String() != want.String() {
		t.Error("order or bytes are not what was queued")
	}
}

func TestQueueGivesUpOnAPeerThatDoesNotRead(t *testing.T) {
	dst := &blockingWriter{release: make(chan struct{}), started: make(chan struct{})}
	defer close(dst.release)
	w := NewWriter(dst)
	m := NewNotification("n", append(append([]byte(`{"x":"`), bytes.Repeat([]byte("y"), 1<<20)...), `"}`...))
	for range 200 {
		if err := w.Queue(m); errors.Is(err, ErrStalled) {
			return
		}
	}
	t.Error("200 MiB were queued for a peer that reads nothing")
}

func TestSendFromManyGoroutines(t *testing.T) {
	r, pw := io.Pipe()
	w := NewWriter(pw)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				m := NewNotification(fmt.Sprintf("n/%d/%d", g, i), nil)
				if i%2 == 0 {
					w.Send(m)
				} else {
					w.Queue(m)
				}
			}
		})
	}
	go func() { wg.Wait(); w.Wait(); pw.Close() }()
	next := map[int]int{}
	rd := NewReader(r, 0)
	for {
		line, err := rd.Next()
		if err == io.EOF {
			break
		}
		m, err := Scan(line, Strict)
		if err != nil {
			t.Fatal(err)
		}
		var g, i int
		fmt.Sscanf(m.Method(), "n/%d/%d", &g, &i)
		if next[g] != i {
			t.Fatalf("goroutine %d: message %d came when %d was due", g, i, next[g])
		}
		next[g]++
	}
	for g := range 8 {
		if next[g] != 200 {
			t.Errorf("goroutine %d: %d of 200 messages came", g, next[g])
		}
	}
}

func TestFailEndsASendThatWaits(t *testing.T) {
	dst := &blockingWriter{release: make(chan struct{}), started: make(chan struct{})}
	w := NewWriter(dst)
	gone := errors.New("gone")
	first := make(chan error, 1)
	go func() { first <- w.Send(NewNotification("n", nil)) }()
	<-dst.started
	w.Fail(gone)
	if err := w.Send(NewNotification("n", nil)); !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
	close(dst.release)
	<-first
}

// A queue that is long and never becomes empty keeps its order.
func TestWriterKeepsOrderInALongQueue(t *testing.T) {
	const n = 5 * maxQueue
	var got, want []byte
	next := 0
	var w *Writer
	put := func() {
		if next < n {
			next++
			m := NewNotification("n", fmt.Appendf(nil, `{"n":%d}`, next))
			want = append(append(want, m.Bytes()...), '\n')
			w.Put(m)
		}
	}
	w = NewWriter(written(func(p []byte) {
		got = append(got, p...)
		put() // two come while one goes
		put()
	}))
	put()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d messages of %d were written, or in another order", bytes.Count(got, []byte("\n")), n)
	}
}

// written is a writer that tells of what it was given.
type written func(p []byte)

func (w written) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
