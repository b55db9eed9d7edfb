package verify

import (
	"fmt"
	"slices"
	"strings"
)

// questionsID stands for what people check by hand, which is asked as a whole.
const questionsID = "Q"

// chosen reports whether a case is meant by a word: its id, the beginning of its id up to a '/', its class, or one of these
// with '*' for any characters.
func chosen(word, id, class string) bool {
	if id == questionsID && len(word) == 2 && strings.ContainsAny(word[1:], "12345") {
		word = word[:1] // one of them
	}
	if like(word, id) || strings.EqualFold(word, class) {
		return true
	}
	before, _, cut := strings.Cut(id, "/")
	return cut && like(word, before)
}

// like reports whether text is as pattern says, in which '*' stands for any characters. Letters may be small or capital.
func like(pattern, text string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	text = strings.ToLower(text)
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, last)
}

// CheckOnly says which of the words that choose cases choose none.
func CheckOnly(words []string) error {
	all := append(Cases(), Result{ID: questionsID, Class: "questions"})
	for _, word := range words {
		if word == "" || !slices.ContainsFunc(all, func(c Result) bool { return chosen(word, c.ID, c.Class) }) {
			return fmt.Errorf("there is no case %q", word)
		}
	}
	return nil
}

func (r *run) wanted(id, class string) bool {
	return len(r.Only) == 0 || slices.ContainsFunc(r.Only, func(word string) bool { return chosen(word, id, class) })
}
