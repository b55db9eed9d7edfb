package calllog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// written returns the lines of a log of n calls, line ends included; tag makes logs differ.
func written(t testing.TB, n int, tag string) [][]byte {
	t.Helper()
	log, err := Create(t.TempDir(), Record{Server: "s"}, Options{Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := log.Append(&Record{Kind: Call, Tool: fmt.Sprint(tag, i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(0, ""); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	return bytes.SplitAfter(b, []byte("\n"))[:n+2]
}

func TestVerifyDamage(t *testing.T) {
	lines := written(t, 4, "a") // start, four calls, exit
	other := written(t, 4, "b")
	file := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	whole := file(lines...)
	flip := func(line int, at int) []byte {
		l := bytes.Clone(lines[line])
		l[(at+len(l))%len(l)] ^= 1
		c := slices.Clone(lines)
		c[line] = l
		return file(c...)
	}
	seq := bytes.Index(lines[2], []byte("3,"))
	// the third record written anew, with a hash that fits
	forged := bytes.Clone(lines[2])
	forged = bytes.Replace(forged, []byte(`"tool":"a1"`), []byte(`"tool":"zz"`), 1)
	covered := len(forged) - len(`,"hash":""}`+"\n") - 64
	hash := digest(forged[:covered])
	copy(forged[covered+len(`,"hash":"`):], hash[:])

	type want struct {
		records int
		state   State
		tail    int
		kind    DamageKind
		line    int
	}
	for _, tt := range []struct {
		name string
		file []byte
		want want
	}{
		{"whole", whole, want{6, Ended, 0, "", 0}},
		{"cut at a record", file(lines[:5]...), want{5, Killed, 0, "", 0}},
		{"cut in a record", whole[:len(whole)-100], want{5, Killed, len(lines[5]) - 100, "", 0}},
		{"cut in the first record", lines[0][:20], want{0, Killed, 20, "", 0}},
		{"cut behind a byte", file(lines[0], lines[1][:1]), want{1, Killed, 1, "", 0}},
		{"cut before the line end", whole[:len(whole)-1], want{5, Killed, len(lines[5]) - 1, "", 0}},
		{"zeros behind a cut", append(file(lines[0], lines[1][:30]), make([]byte, 500)...), want{1, Killed, 530, "", 0}},
		{"zeros at the end", append(file(lines[:2]...), make([]byte, 500)...), want{2, Killed, 500, "", 0}},
		{"empty", nil, want{0, Killed, 0, "", 0}},

		{"byte in the middle", flip(2, 40), want{2, Killed, 0, Changed, 3}},
		{"byte of the number", flip(2, seq), want{2, Killed, 0, Changed, 3}},
		{"byte of the hash", flip(2, -10), want{2, Killed, 0, Changed, 3}},
		{"byte in the last record", flip(5, 40), want{5, Killed, 0, Changed, 6}},
		{"opening brace", flip(2, 0), want{2, Killed, 0, Unreadable, 3}},
		{"line end", flip(2, -1), want{2, Killed, 0, Unreadable, 3}},
		{"last line end", flip(5, -1), want{5, Killed, 0, Unreadable, 6}},
		{"record written anew", file(lines[0], lines[1], forged, lines[3], lines[4], lines[5]), want{3, Killed, 0, Foreign, 4}},
		{"one gone", file(lines[0], lines[1], lines[3], lines[4], lines[5]), want{2, Killed, 0, Missing, 3}},
		{"two gone", file(lines[0], lines[1], lines[4], lines[5]), want{2, Killed, 0, Missing, 3}},
		{"first gone", file(lines[1:]...), want{0, Killed, 0, Missing, 1}},
		{"two exchanged", file(lines[0], lines[2], lines[1], lines[3], lines[4], lines[5]), want{1, Killed, 0, Misplaced, 2}},
		{"one repeated", file(lines[0], lines[1], lines[1], lines[2]), want{2, Killed, 0, Misplaced, 3}},
		{"foreign put in", file(lines[0], lines[1], other[2], lines[2], lines[3]), want{2, Killed, 0, Misplaced, 3}},
		{"foreign appended", file(lines[0], lines[1], other[2]), want{2, Killed, 0, Foreign, 3}},
		{"appended behind the exit", append(bytes.Clone(whole), other[1]...), want{6, Ended, 0, Misplaced, 7}},
		{"text appended", append(bytes.Clone(whole), "hello\n"...), want{6, Ended, 0, Unreadable, 7}},
		{"text appended without an end", append(bytes.Clone(whole), "hello"...), want{6, Ended, 0, Unreadable, 7}},
		{"record without an end from elsewhere", append(file(lines[0], lines[1]), bytes.TrimSpace(other[2])...), want{2, Killed, 0, Unreadable, 3}},
		{"empty line", file(lines[0], []byte("\n"), lines[1]), want{1, Killed, 0, Unreadable, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, tt.file, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Verify(path)
			if err != nil {
				t.Fatal(err)
			}
			got := want{records: r.Records, state: r.State, tail: r.Tail}
			if r.Damage != nil {
				got.kind, got.line = r.Damage.Kind, r.Damage.Line
				if wantOffset := len(file(bytes.SplitAfter(tt.file, []byte("\n"))[:r.Damage.Line-1]...)); int(r.Damage.Offset) != wantOffset {
					t.Errorf("offset %d, want %d", r.Damage.Offset, wantOffset)
				}
				if r.Damage.Seq != uint64(r.Records)+1 || r.Damage.Detail == "" {
					t.Errorf("damage %+v", r.Damage)
				}
			}
			if got != tt.want {
				t.Errorf("got %+v, want %+v; damage %+v", got, tt.want, r.Damage)
			}
			if tt.name == "whole" && (r.Head != string(lines[5][len(lines[5])-67:len(lines[5])-3]) || r.Server != "s" || !r.Last.After(r.First)) {
				t.Errorf("report %+v", r)
			}
		})
	}
}

// TestEveryByte flips each bit of a log in turn: none goes unnoticed.
func TestEveryByte(t *testing.T) {
	whole := bytes.Join(written(t, 1, "x"), nil)
	for i := range whole {
		for bit := range 8 {
			changed := bytes.Clone(whole)
			changed[i] ^= 1 << bit
			if r, err := new(Proven).verify(bytes.NewReader(changed)); err != nil || r.Damage == nil {
				t.Errorf("bit %d of byte %d (%q): not noticed: %+v %v", bit, i, whole[i], r, err)
			}
		}
	}
}

// TestEveryCut ends a log at each byte in turn: no cut is taken for damage.
func TestEveryCut(t *testing.T) {
	whole := bytes.Join(written(t, 1, "x"), nil)
	for i := range whole {
		if r, err := new(Proven).verify(bytes.NewReader(whole[:i])); err != nil || r.Damage != nil || r.State == Ended {
			t.Errorf("cut at %d: %+v %v", i, r.Damage, err)
		}
	}
}

func TestVerifyDir(t *testing.T) {
	dir := t.TempDir()
	now := clock()
	for range 3 {
		log, err := Create(dir, Record{Server: "s"}, Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		log.Close(0, "")
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	reports, err := VerifyDir(dir)
	if err != nil || len(reports) != 3 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	for i, r := range reports {
		if r.Damage != nil || r.State != Ended || i > 0 && !r.First.After(reports[i-1].First) {
			t.Errorf("report %d: %+v", i, r)
		}
	}
	if _, err := VerifyDir(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
}

func TestVerifyGoesOn(t *testing.T) {
	lines, other := written(t, 6, "a"), written(t, 6, "b")
	path := filepath.Join(t.TempDir(), "log.jsonl")
	stamp := clock()
	var p Proven
	put := func(b []byte) { // as another program does: the file stays the same one, and has another time
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			_, err = f.Write(b)
			at := stamp()
			err = errors.Join(err, f.Truncate(int64(len(b))), f.Close(), os.Chtimes(path, at, at))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, read int64, same bool) {
		t.Helper()
		before := p.end
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if on := p.holds(f, info); on != (read > 0) {
			t.Errorf("%s: it goes on: %t", what, on)
		}
		f.Close()
		if read > 0 && before != read {
			t.Errorf("%s: it goes on at %d, want %d", what, before, read)
		}
		got, err := p.Verify(path)
		want, werr := Verify(path)
		if err != nil || werr != nil || same != reflect.DeepEqual(got, want) {
			t.Errorf("%s: found is %+v %+v, %v, and from the start %+v %+v, %v", what, got, got.Damage, err, want, want.Damage, werr)
		}
	}
	join := func(l ...[]byte) []byte { return bytes.Join(l, nil) }
	size := func(n int) int64 { return int64(len(join(lines[:n]...))) }

	put(join(lines[:3]...))
	check("the first time", 0, true)
	check("as it was", size(3), true)
	put(join(lines[:4]...))
	check("a record more", size(3), true)
	put(append(join(lines[:5]...), lines[5][:20]...))
	check("one that is cut off", size(4), true)
	put(join(lines...))
	check("to its end", size(5), true)

	put(join(lines[:4]...))
	check("it shrank", 0, true)
	changed := bytes.Replace(join(lines[:4]...), []byte(`"tool":"a0"`), []byte(`"tool":"z0"`), 1)
	put(changed)
	check("changed where it was read, with the same length", 0, true)
	if p.end != 0 {
		t.Errorf("of a file that was changed %d bytes are held to be proven", p.end)
	}
	put(join(lines[:4]...))
	check("mended", 0, true)
	put(join(other...))
	check("another one in its place", 0, true)
	put(join(lines[:4]...))
	check("and back", 0, true)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	put(join(lines[:5]...))
	check("another file of the same name", 0, true)
	put(append(join(lines[:5]...), "not a record\n"...))
	check("what is no record behind it", size(5), true)
	put(append(join(lines[:5]...), other[5]...))
	check("a record of another file behind it", 0, true)
	put(join(lines[:4]...))
	check("without it", 0, true)
	put(bytes.Replace(join(lines[:5]...), []byte(`"tool":"a0"`), []byte(`"tool":"z0"`), 1))
	check("changed where it was read, and grown", size(4), false) // only Verify finds that
}

func FuzzVerify(f *testing.F) {
	lines := written(f, 2, "x")
	f.Add(bytes.Join(lines, nil))
	f.Add(bytes.Join(lines[:2], nil)[:400])
	f.Add([]byte(`{"seq":1,"time":"","prev":"","hash":"` + string(noPrev[:]) + "\"}\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := new(Proven).verify(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if r.Damage == nil && r.Records == 0 && len(data) != r.Tail {
			t.Errorf("neither records nor damage: %+v", r)
		}
		path := filepath.Join(dir, fmt.Sprint(os.Getpid()))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p := Printer{W: &bytes.Buffer{}}
		for e, err := range Read(path) {
			if err == nil {
				err = p.Print(e)
			}
			if fatal(err) {
				t.Fatal(err)
			}
		}
		for _, c := range p.W.(*bytes.Buffer).Bytes() {
			if c < ' ' && c != '\n' || c == 0x7f {
				t.Fatalf("control character %x from %q", c, data)
			}
		}
	})
}
