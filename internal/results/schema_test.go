package results

import (
	"strings"
	"testing"
)

// The time is looked at wherever a check may take long: by what a schema refers to, or by how long it and the value are, since each
// element may be compared with each of a list.
func TestTheTimeIsLookedAt(t *testing.T) {
	list := func(n int) string { return "[" + strings.Repeat("1,", n) + "1]" }
	for _, tt := range []struct {
		schema, value string
		atOnce        bool
	}{
		{`{"type":"object"}`, `{"a":1}`, true}, {`{"items":{"enum":` + list(500) + `}}`, list(1000), true}, {`{"items":{"enum":` + list(5000) + `}}`, list(5000), false},
		{`{"$ref":"#/$defs/a","$defs":{"a":{}}}`, `1`, false}, {`{"$Ref":"#/$defs/a","$defs":{"a":{}}}`, `1`, false}, {`{"$r\u0065f":"#/$defs/a","$defs":{"a":{}}}`, `1`, false},
	} {
		s := schema{text: []byte(tt.schema)}
		if _, unusable := s.validate([]byte("null")); unusable != nil {
			t.Fatal(unusable)
		}
		if got := s.atOnce([]byte(tt.value)); got != tt.atOnce {
			t.Errorf("%.40s and %.40s: at once: %v", tt.schema, tt.value, got)
		}
	}
}
