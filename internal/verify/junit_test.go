package verify_test

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/verify"
)

// TestJUnit reads the XML back: each text is there as it was, but for what XML has no way to say.
func TestJUnit(t *testing.T) {
	const odd = `a < b & "c" 'd' ]]> é` + "\n\t"
	r := &verify.Report{
		Questions: []verify.Answered{{ID: "Q1", Era: "legacy", Question: odd, Seen: odd, Verdict: verify.Leaked}},
		Cases: []verify.Result{
			{ID: "E1", Era: "modern", Class: odd, Attempt: "reads", Seen: "x\x00\x1b\xffy", Verdict: verify.Failed},
			{ID: "E2", Era: "legacy", Class: "c", Attempt: "reads", Seen: "y", Verdict: verify.Held},
			{ID: "E3", Era: "legacy", Class: "c", Attempt: "reads", Seen: odd, Verdict: verify.NotApplicable},
			{ID: "E4", Era: "legacy", Class: "c", Attempt: "reads", Seen: "z", Verdict: verify.Inconclusive},
			{ID: "E5", Era: "legacy", Class: "c", Attempt: "reads", Seen: "z", Verdict: verify.ByDesign},
		},
	}
	type problem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
	}
	type unit struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *problem `xml:"failure"`
		Skipped *problem `xml:"skipped"`
	}
	type suite struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Cases    []unit   `xml:"testcase"`
	}
	want := suite{
		XMLName: xml.Name{Local: "testsuite"}, Name: "rootbound verify", Tests: 6, Failures: 2, Skipped: 3, Cases: []unit{
			{Class: "legacy.questions", Name: "Q1 " + odd, Failure: &problem{odd, "leaked"}},
			{Class: "modern." + odd, Name: "E1 reads", Failure: &problem{"x\uFFFD\uFFFD\uFFFDy", "failed"}},
			{Class: "legacy.c", Name: "E2 reads"},
			{Class: "legacy.c", Name: "E3 reads", Skipped: &problem{Message: "not applicable: " + odd}},
			{Class: "legacy.c", Name: "E4 reads", Skipped: &problem{Message: "inconclusive: z"}},
			{Class: "legacy.c", Name: "E5 reads", Skipped: &problem{Message: "allowed by design: z"}},
		},
	}
	var b strings.Builder
	if err := r.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), xml.Header) {
		t.Errorf("it begins with %.60q", b.String())
	}
	var got suite
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the suite (-want +got):\n%s", diff)
	}
}
