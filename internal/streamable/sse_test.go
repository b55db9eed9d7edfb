package streamable

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func readEvents(t *testing.T, r io.Reader) []event {
	t.Helper()
	var got []event
	for er := newEventReader(r, 1<<20, nil); ; {
		e, err := er.next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
}

func TestEventsAreReadAsTheyAreWrittenAnywhere(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		want         []event
	}{
		{"one", "event: message\ndata: {}\n\n", []event{{name: "message", data: []byte("{}")}}},
		{"all line ends", "data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n", []event{{data: []byte("1")}, {data: []byte("2")}, {data: []byte("3")}}},
		{"parts", "data: a\ndata:b\ndata\ndata:  c\n\n", []event{{data: []byte("a\nb\n\n c")}}},
		{"comments and unknown fields", ": hi\n\n:\nfoo: bar\ndata: x\nbar\n\n", []event{{data: []byte("x")}}},
		{"an id in advance", "id: 7\nretry: 1500\ndata: \n\n", []event{{id: "7", hasID: true, retry: 1500 * time.Millisecond, data: []byte("")}}},
		{"only an id", "id: 7\n\n", []event{{id: "7", hasID: true}}},
		{"an id that is reset", "id\ndata: x\n\n", []event{{hasID: true, data: []byte("x")}}},
		{"an id with NUL and a retry that is none", "id: a\x00b\nretry: 1s\ndata: x\n\n", []event{{data: []byte("x")}}},
		{"byte order mark", "\uFEFFdata: x\n\n", []event{{data: []byte("x")}}},
		{"cut off", "data: x\n\ndata: y\n", []event{{data: []byte("x")}}},
		{"only a name", "event: ping\n\ndata: x\n\n", []event{{data: []byte("x")}}},
	} {
		for way, r := range map[string]io.Reader{"at once": strings.NewReader(tt.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.stream))} {
			if d := cmp.Diff(tt.want, readEvents(t, r), cmp.AllowUnexported(event{})); d != "" {
				t.Errorf("%s, %s (-want +got):\n%s", tt.name, way, d)
			}
		}
	}
}

func TestAnEventIsThereBeforeTheNextByte(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r\n"} {
		r, w := io.Pipe()
		er := newEventReader(r, 100, nil)
		go w.Write([]byte("data: x" + end))
		if e, err := er.next(); err != nil || string(e.data) != "x" {
			t.Errorf("%q: got %q, %v", end, e.data, err)
		}
		w.Close()
	}
}

func TestALongEventEndsTheStream(t *testing.T) {
	for _, stream := range []string{"data: " + strings.Repeat("x", 200), strings.Repeat("data: xxxx\n", 40), ":" + strings.Repeat("x", 200)} {
		if _, err := newEventReader(strings.NewReader(stream), 100, nil).next(); !errors.Is(err, errEventTooLong) {
			t.Errorf("%.10q: got %v", stream, err)
		}
	}
	many := strings.Repeat(": keep-alive\n\n", 100) + "data: x\n\n"
	if e, err := newEventReader(strings.NewReader(many), 100, nil).next(); err != nil || string(e.data) != "x" {
		t.Errorf("got %q, %v", e.data, err)
	}
}

// What is written is read again, with LF for every line end: JSON has none within a string.
func FuzzEvents(f *testing.F) {
	f.Add("message", "a-1", "{\"a\":\r\n1}", uint16(3))
	f.Add("", "", "", uint16(0))
	f.Add("", "", "a\r\rb\n\r", uint16(0))
	f.Fuzz(func(t *testing.T, name, id, data string, retry uint16) {
		clean := strings.NewReplacer("\n", "", "\r", "", "\x00", "").Replace
		e := event{name: clean(name), id: clean(id), hasID: true, data: []byte(data), retry: time.Duration(retry) * time.Millisecond}
		b := appendEvent([]byte(keepAlive), e)
		want := e
		want.data = []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data))
		if d := cmp.Diff([]event{want}, readEvents(t, strings.NewReader(string(b))), cmp.AllowUnexported(event{})); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		readEvents(t, strings.NewReader(data)) // any text is a stream
	})
}
