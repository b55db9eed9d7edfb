package verify_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/rootbound/rootbound/internal/verify"
)

// TestWhatAServerSaysIsText gives every text of a report markup, an entity and quotes, and reads the page as a browser does:
// each is there as it was, and no element or attribute is made of it.
func TestWhatAServerSaysIsText(t *testing.T) {
	r := &verify.Report{
		Server: verify.Server{Command: make([]string, 2), Eras: []string{"modern", "legacy"}, Notes: make([]string, 2), Opened: make([]string, 2)},
		Tools:  []verify.Found{{Arguments: map[string]string{`<img src=x> "&amp;'`: `<img src=y> "&amp;'`}}},
		Questions: []verify.Answered{
			{Era: "modern", Verdict: verify.Held}, {Era: "legacy", Verdict: verify.Leaked},
		},
		Cases: []verify.Result{
			{Era: "modern", Verdict: verify.Held}, {Era: "legacy", Verdict: verify.Leaked}, {Era: "legacy", Verdict: verify.Failed},
			{Era: "legacy", Verdict: verify.ByDesign}, {Era: "legacy", Verdict: verify.NotApplicable}, {Era: "legacy"},
		},
	}
	r.Cases[5].Verdict = verify.Inconclusive
	var said []string
	fill(reflect.ValueOf(r).Elem(), func(field string) string {
		s := fmt.Sprintf(`<b title="%s %d">'&lt;</td></style></title><script>{}`, field, len(said))
		if field != "Unfinished" && field != "Answered.ID" { // the notes say the first; the second is for programs
			said = append(said, s)
		}
		return s
	})
	for k, v := range r.Tools[0].Arguments {
		said = append(said, k, v)
	}

	var b strings.Builder
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	top, err := html.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	elements := strings.Fields("html head meta title style body header h1 code dl dt dd p main div strong h2 table thead tr th tbody td details summary span ul li")
	attributes := strings.Fields("lang charset name content http-equiv class scope data-label")
	var text strings.Builder
	for n := range top.Descendants() {
		switch n.Type {
		case html.TextNode:
			text.WriteString(n.Data)
		case html.ElementNode:
			if !slices.Contains(elements, n.Data) {
				t.Errorf("the page has an element <%s>", n.Data)
			}
			for _, a := range n.Attr {
				if !slices.Contains(attributes, a.Key) {
					t.Errorf("<%s> has an attribute %s=%q", n.Data, a.Key, a.Val)
				}
			}
		}
	}
	for _, want := range append(said, "✔ held", "✘ leaked", "✘ failed", "• allowed by design", "– not applicable", "? inconclusive", "stateless", "handshake") {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the page does not have the text %q", want)
		}
	}
	if len(said) < 50 {
		t.Errorf("%d texts were looked for, want more", len(said))
	}
}

// fill sets every empty string in v, to what say makes of the name of its field.
func fill(v reflect.Value, say func(field string) string, name ...string) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() == 0 {
			v.SetString(say(strings.Join(name, ".")))
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), say, name...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i).Name
			if v.Type() == reflect.TypeFor[verify.Answered]() {
				field = "Answered." + field
			}
			fill(v.Field(i), say, field)
		}
	}
}
