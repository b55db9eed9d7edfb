package clientconf

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/splice"
)

// scramble lays a JSON text out anew, as r says: other blanks and line ends, comments and trailing commas where the grammar
// has them, the members in another order, and unrelated ones among them.
func scramble(r *rand.Rand, v *splice.Value, g Grammar) string {
	var b strings.Builder
	nl := []string{"\n", "\r\n"}[r.IntN(2)]
	gap := func() {
		for r.IntN(3) == 0 {
			switch r.IntN(5) {
			case 0:
				b.WriteString(nl)
			case 1:
				b.WriteString("\t")
			case 2:
				b.WriteString("  ")
			case 3:
				if g != JSON {
					b.WriteString("// \"run\", [{" + nl)
				}
			case 4:
				if g != JSON {
					b.WriteString("/* ,] */")
				}
			}
		}
	}
	var write func(v *splice.Value)
	list := func(open, end string, n int, item func(i int)) {
		b.WriteString(open)
		gap()
		for i := range n {
			item(i)
			gap()
			if i < n-1 || g == JSONC && r.IntN(3) == 0 {
				b.WriteString(",")
				gap()
			}
		}
		b.WriteString(end)
	}
	text := func(s string) {
		b.WriteByte('"')
		for _, c := range s {
			switch {
			case c == '"' || c == '\\' || c == '/' && r.IntN(4) == 0:
				b.WriteString("\\" + string(c))
			case c < ' ' || c < 0x80 && r.IntN(16) == 0:
				b.WriteString("\\u00" + string("0123456789abcdef"[c>>4]) + string("0123456789ABCDEF"[c&15]))
			default:
				b.WriteRune(c)
			}
		}
		b.WriteByte('"')
	}
	write = func(v *splice.Value) {
		switch v.Kind {
		case splice.ObjectKind:
			order := r.Perm(len(v.Members))
			more := 0
			if r.IntN(4) == 0 {
				more = 1
			}
			list("{", "}", len(order)+more, func(i int) {
				if i == len(order) {
					b.WriteString(`"unrelated": [12345678901234567890, 1.0, "` + strings.Repeat("x", r.IntN(1<<10)) + `"]`)
					return
				}
				m := v.Members[order[i]]
				text(m.Name)
				gap()
				b.WriteString(":")
				gap()
				write(m.Value)
			})
		case splice.ArrayKind:
			list("[", "]", len(v.Items), func(i int) { write(v.Items[i]) })
		case splice.StringKind:
			text(v.Text)
		default:
			b.WriteString(v.Text)
		}
	}
	gap()
	write(v)
	gap()
	if r.IntN(2) == 0 {
		b.WriteString(nl)
	}
	return b.String()
}

func FuzzWrap(f *testing.F) {
	all := samples(f)
	for i, s := range all {
		for _, text := range s.variants() {
			if len(text) < 1<<16 {
				f.Add(string(text), uint8(i), uint64(0))
				f.Add(string(text), uint8(i), uint64(i+1))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string, which uint8, seed uint64) {
		if len(text) > 1<<14 {
			return
		}
		s := all[int(which)%len(all)]
		file := ParseAs(s.client, s.name, []byte(text))
		if g := file.Place.Format.Grammar; seed != 0 && (g == JSON || g == Comments || g == JSONC) {
			tree, faults := splice.Read([]byte(text), splice.JSONC)
			if tree == nil || len(faults) > 0 {
				return
			}
			text = scramble(rand.New(rand.NewPCG(seed, 0)), tree, g)
			file = ParseAs(s.client, s.name, []byte(text))
			if file.Dead() {
				t.Fatalf("what was laid out anew cannot be read: %v\n%s", file.Problems, text)
			}
		}
		var wrapped []byte
		d, err := file.Draft()
		if err != nil {
			return
		}
		for _, server := range file.Servers {
			if _, already := server.Guard(); already {
				return // of which unwrapping would make less than there was
			}
			if server.Command.Given() && !server.Unread {
				if err := d.Wrap(server, program); err != nil && strings.Contains(err.Error(), "bug: ") {
					t.Fatalf("%v\n%q", err, text)
				}
			}
		}
		wrapped = d.Bytes()
		back, err := unwrapAll(s.client, s.name, wrapped)
		if err != nil {
			t.Fatalf("unwrapping: %v\n%q\n%q", err, text, wrapped)
		}
		if !bytes.Equal(back, []byte(text)) {
			t.Fatalf("from %q\nover %q\nto   %q", text, wrapped, back)
		}
	})
}
