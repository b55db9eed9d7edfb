package wire

import "strings"

// Pointer makes a JSON pointer (RFC 6901) of the names and indexes that lead to a value.
func Pointer(at ...string) string {
	var b strings.Builder
	for _, e := range at {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(e))
	}
	return b.String()
}

// PointerName is the name, or the index, that an element of a JSON pointer stands for.
func PointerName(element string) string {
	if !strings.Contains(element, "~") {
		return element
	}
	return pointerUnescape.Replace(element)
}

var (
	pointerEscape   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescape = strings.NewReplacer("~1", "/", "~0", "~")
)
