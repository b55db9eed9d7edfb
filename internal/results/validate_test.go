package results_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rootbound/rootbound/internal/results"
)

// Names that a server chooses may be those of keywords, and a schema may refer to itself for what is in a value.
func TestNamesOfKeywords(t *testing.T) {
	for _, tt := range []struct {
		schema, value string
		valid         bool
	}{
		{`{"properties":{"default":{"type":"integer"},"Default":{"type":"string"},"not":{"type":"null"},"$ref":{"type":"string"}}}`, `{"default":1,"Default":"x","not":null,"$ref":"y"}`, true},
		{`{"properties":{"default":{"type":"integer"},"const":{"type":"string"}}}`, `{"default":"x"}`, false},
		{`{"properties":{"properties":{"items":{"$ref":"#"}}}}`, `{"properties":[{"properties":[]},{}]}`, true},
		{`{"properties":{"properties":{"items":{"$ref":"#"}}},"required":["properties"]}`, `{"properties":[{}]}`, false},
		{`{"const":{"$ref":"#","$Ref":"#"}}`, `{"$ref":"#","$Ref":"#"}`, true},
	} {
		if invalid, unusable := results.Valid([]byte(tt.schema), []byte(tt.value)); unusable != nil || (invalid == nil) != tt.valid {
			t.Errorf("%s by %s: %v, %v", tt.value, tt.schema, invalid, unusable)
		}
	}
}

// Whatever a schema and a value are, checking them never ends the program.
func FuzzValid(f *testing.F) {
	for schema, value := range map[string]string{
		`{"type":"object","properties":{"n":{"multipleOf":0}},"required":["n"]}`: `{"n":1}`,
		`{"pattern":"^(a+)+$"}`: `"aaa"`, `{"pattern":"["}`: `"a"`, `{"enum":[1,"a",null,{}]}`: `{}`, `{"uniqueItems":true}`: `[1,1]`,
		`{"items":[{"type":"string"}]}`: `["a"]`, `{"$Ref":"#/$defs/a","$defs":{"a":{"type":"null"}}}`: `null`, `{"minimum":1e400}`: `1e300`, `{"maxLength":-1}`: `""`,
		`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":{}}}]}`: `{"a":1,"b":2}`, `{"contains":{"const":1},"minContains":2,"maxContains":1}`: `[1,1]`,
		`{"if":{"type":"string"},"then":{"minLength":2},"else":false}`: `"a"`, `{"$anchor":"a","$ref":"#a"}`: `1`, `{"dependentSchemas":{"a":{"not":{}}}}`: `{"a":1}`, `true`: `1`,
	} {
		f.Add([]byte(schema), []byte(value))
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		if json.Valid(schema) && json.Valid(value) {
			results.Valid(schema, value)
		}
	})
}

// A check that never ends cannot be ended. So a server that has one schema after the other that takes for ever gets a few goroutines
// of ours, and no more. They run until the process ends, so it is one of its own.
func TestChecksThatNeverEnd(t *testing.T) {
	const alone = "ROOTBOUND_TEST_CHECKS_ALONE"
	if os.Getenv(alone) == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), alone+"=1")
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for n := range 12 {
		text := fmt.Sprintf(`{"title":"%d","$defs":{`, n)
		for i := range 60 {
			text += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%[2]d"}]},`, i, i+1)
		}
		text += `"d60":{}},"$ref":"#/$defs/d0"}`
		wg.Go(func() {
			if _, unusable := results.Valid([]byte(text), []byte(`{}`)); unusable == nil {
				t.Error("a value was checked against what takes for ever")
			}
		})
	}
	wg.Wait()
	if n := runtime.NumGoroutine() - before; n > 4 {
		t.Errorf("%d checks go on", n)
	}
}
