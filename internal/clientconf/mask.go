package clientconf

import (
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/splice"
)

// Masked returns the text of the file to be shown: every text in it that is no part of a server's command line is replaced
// by a sign, and so is what redact takes out of a command line.
func (f *File) Masked(redact func(args []string) []string) string {
	if f.src == nil || f.Place.Format.Grammar == Shell {
		return ""
	}
	tree, _ := splice.Read(f.src.text, f.Place.Format.Grammar.splice())
	if tree == nil {
		return ""
	}
	shown := map[splice.Pos]bool{}
	for _, s := range f.Servers {
		words := slices.Concat([]Text{s.Command}, s.Args)
		var plain []string
		for _, t := range words {
			plain = append(plain, t.Text)
		}
		for i, text := range redact(plain) {
			if text == plain[i] {
				shown[words[i].Pos] = true
			}
		}
	}
	var hidden []*splice.Value
	var walk func(v *splice.Value)
	walk = func(v *splice.Value) {
		for _, m := range v.Members {
			walk(m.Value)
		}
		for _, item := range v.Items {
			walk(item)
		}
		if v.Kind == splice.StringKind && !v.Aliased() && !shown[v.Pos] {
			hidden = append(hidden, v)
		}
	}
	walk(tree)
	text := strings.TrimPrefix(string(f.src.text), "\ufeff")
	var b strings.Builder
	done := 0
	slices.SortFunc(hidden, func(v, w *splice.Value) int { return first(v) - first(w) })
	for _, v := range hidden {
		start, end, ok := v.Span()
		if !ok { // up to the end of the line; what follows on further lines is not shown, as no edit reaches there
			end = start + strings.IndexByte(text[start:]+"\n", '\n')
		}
		if start < done {
			continue
		}
		b.WriteString(text[done:start])
		sign := "…"
		if start < len(text) && strings.ContainsAny(text[start:start+1], `"'`) {
			sign = `"…"`
		}
		b.WriteString(sign)
		done = end
	}
	b.WriteString(text[done:])
	return b.String()
}

func first(v *splice.Value) int {
	start, _, _ := v.Span()
	return start
}
