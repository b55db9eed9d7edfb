package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/policy"
)

const fullRules = `ask = "always"
preset = "cautious"
trust_annotations = true
publish_annotations = true

[[rule]]
match = { server = "files", tool = "write_*", args = { path = { path_under = ["src", "~/work"], not = { path_glob = "**/*.lock" } } } }
verdict = "allow"

[[rule]]
match = { tool = "fetch", args = { url = { url_host = ["example.com", "*.example.org:8443"] }, "/options/*/mode" = { one_of = ["a", 1, true] } } }
verdict = "ask"
reason = "It leaves this machine."
remember = "call"

[[rule]]
match = { effect = ["write", "delete"], args = { content = { max_bytes = 0 }, sql = { regex = "drop .*" }, force = { any = true }, dry_run = { absent = true } } }
verdict = "deny"

[[rule]]
default = true
match = {}
verdict = "ask"
remember = "never"

[server.files]
command = "x"

[server.files.tool.sync]
effect = "delete"
`

const fullRulesJSON = `{
  "ask": "always", "preset": "cautious", "trust_annotations": true, "publish_annotations": true,
  "rule": [
    {"match": {"server": "files", "tool": "write_*", "args": {"path": {"path_under": ["src", "~/work"], "not": {"path_glob": "**/*.lock"}}}}, "verdict": "allow"},
    {"match": {"tool": "fetch", "args": {"url": {"url_host": ["example.com", "*.example.org:8443"]}, "/options/*/mode": {"one_of": ["a", 1, true]}}},
      "verdict": "ask", "reason": "It leaves this machine.", "remember": "call"},
    {"match": {"effect": ["write", "delete"], "args": {"content": {"max_bytes": 0}, "sql": {"regex": "drop .*"}, "force": {"any": true}, "dry_run": {"absent": true}}},
      "verdict": "deny"},
    {"default": true, "match": {}, "verdict": "ask", "remember": "never"}
  ],
  "server": {"files": {"command": "x", "tool": {"sync": {"effect": "delete"}}}}
}`

func TestRules(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`allow server = "files", tool = "write_*", args.path = { path_under = ["/c/src", "` + filepath.Join(home, "work") + `"], not = { path_glob = "**/*.lock" } }`,
		`ask tool = "fetch", args.url = { url_host = ["example.com", "*.example.org:8443"] }, args./options/*/mode = { one_of = ["a", 1, true] }, remember = call`,
		`deny effect = write, delete, args.content = { max_bytes = 0 }, args.sql = { regex = "drop .*" }, args.force = { any = true }, args.dry_run = { absent = true }`,
		`ask every call, remember = never`,
	}
	for path, text := range map[string]string{"/c/rootbound.toml": fullRules, "/c/rootbound.json": fullRulesJSON} {
		f := parse(t, path, text)
		var got []string
		for _, r := range f.Rules {
			got = append(got, r.String())
			if file, _, _ := strings.Cut(r.At, ":"); file != path {
				t.Errorf("%s: a rule is at %q", path, r.At)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if len(f.Rules) == 4 && (f.Rules[1].Reason != "It leaves this machine" || !f.Rules[3].Default) {
			t.Errorf("%s: reason %q, default %v", path, f.Rules[1].Reason, f.Rules[3].Default)
		}
		files, _ := f.Server("files")
		if f.Ask.Value != policy.AskAlways || f.Preset.Value != "cautious" || !f.TrustAnnotations.Value || !f.PublishAnnotations.Value ||
			files.Tools["sync"].Effect.Value != policy.Delete {
			t.Errorf("%s: %+v", path, f.Choices)
		}
	}
}

// What is wrong with a rule is an error with file, line and column, never a rule that does nothing.
func TestRuleFaults(t *testing.T) {
	for text, want := range map[string]string{
		"rule = 1":                                                                         `1:8: this is a number and has to be an array`,
		"[[rule]]\nverdict = \"deny\"":                                                     `1:3: a rule needs match (match = {} is every call)`,
		"[[rule]]\nmatch = {}":                                                             `1:3: a rule needs verdict`,
		"[[rule]]\nmatch = {}\nverdict = \"alow\"":                                         `3:11: unknown value "alow": did you mean "allow"?`,
		"[[rule]]\nmatch = {}\nverdict = \"deny\"\nx = 1":                                  `4:1: unknown key "x"`,
		rule(`toool = "x"`, "deny"):                                                        `2:11: unknown key "toool": did you mean "tool"?`,
		rule(`tool = ""`, "deny"):                                                          `2:18: this is empty`,
		rule(`effect = "wrote"`, "deny"):                                                   `2:20: unknown value "wrote": did you mean "write"?`,
		rule(`args = {}`, "deny"):                                                          `there is no argument in it`,
		rule(`args = { "a/b" = { any = true } }`, "deny"):                                  `argument "a/b": a name with slashes begins with one`,
		rule(`args = { a = { path_undr = "x" } }`, "deny"):                                 `unknown key "path_undr": did you mean "path_under"?`,
		rule(`args = { a = {} }`, "deny"):                                                  `this says nothing: known are absent,`,
		rule(`args = { a = { not = {} } }`, "deny"):                                        `this says nothing: known are path_under,`,
		rule(`args = { a = { any = true, absent = true } }`, "deny"):                       `an argument that is absent is nothing else besides`,
		rule(`args = { a = { any = true, regex = "x" } }`, "deny"):                         `any says nothing besides others`,
		rule(`args = { a = { absent = false } }`, "deny"):                                  `this is true or left out`,
		rule(`args = { a = { regex = "a)|(b" } }`, "deny"):                                 `reading the regular expression: error parsing regexp: unexpected ): ` + "`a)|(b`",
		rule(`args = { a = { url_host = "http://a" } }`, "deny"):                           `a host is a name such as`,
		rule(`args = { a = { path_glob = "a**" } }`, "deny"):                               `"**" stands alone between slashes`,
		rule(`args = { a = { max_bytes = 1.5 } }`, "deny"):                                 `this has to be a whole number`,
		rule(`args = { a = { one_of = ["a"], regex = "b" } }`, "deny"):                     `no argument is as "a" has to be: none of the values in one_of is as the rest says`,
		rule(`args = { a = { regex = "b", not = { regex = "b" } } }`, "deny"):              `what it has to be is what it must not be`,
		"[[rule]]\nmatch = {}\nverdict = \"deny\"\nremember = \"tool\"":                    `4:12: remember is for rules with verdict = "ask"`,
		rule(`tool = "a*"`, "deny") + rule(`tool = "ab"`, "allow"):                         `4:3: this rule does nothing: the rule at line 1 has verdict "deny"`,
		rule(`tool = "ab"`, "allow") + rule(`tool = "a*"`, "ask"):                          `1:3: this rule does nothing: the rule at line 4 has verdict "ask", which is looked at before "allow", and is for every call`,
		rule(`tool = "a"`, "ask") + rule(`tool = "a", effect = "write"`, "ask"):            `4:3: this rule does nothing: the rule at line 1 comes first and is for every call`,
		rule(`args = { a = { path_under = "/x" } }`, "deny") + under("/x/y"):               `4:3: this rule does nothing`,
		rule(`args = { a = { regex = "[a-z]+" } }`, "deny") + oneOf("b", "c"):              `4:3: this rule does nothing`,
		rule(`args = { a = { url_host = "*.x.org" } }`, "deny") + host("a.x.org:1"):        `4:3: this rule does nothing`,
		rule("", "deny") + rule(`server = "x", args = { a = { absent = true } }`, "allow"): `4:3: this rule does nothing`,
	} {
		_, err := Parse("/c/c.toml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "/c/c.toml:") {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	const client = `{"mcpServers": {"a": {"command": "x"}}, "rule": [{"match": {}, "verdict": "deny"}]}`
	if _, err := Parse("/c/mcp.json", []byte(client)); err == nil || !strings.Contains(err.Error(), "rules are not read from a client's file") {
		t.Errorf("rules in a client's file: %v", err)
	}
	for _, text := range []string{
		rule(`tool = "a*"`, "ask") + rule(`tool = "ab"`, "deny"),
		rule(`tool = "a", effect = "write"`, "ask") + rule(`tool = "a"`, "ask"),
		rule(`args = { a = { path_under = "/x" } }`, "deny") + under("/xy"),
		rule(`args = { a = { regex = "[a-z]+" } }`, "deny") + oneOf("b", "C"),
		rule(`server = "x"`, "deny") + rule("", "allow"),
	} {
		if _, err := Parse("/c/c.toml", []byte(text)); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

func under(dir string) string { return rule(`args = { a = { path_under = "`+dir+`" } }`, "allow") }
func host(name string) string { return rule(`args = { a = { url_host = "`+name+`" } }`, "allow") }
func oneOf(a, b string) string {
	return rule(`args = { a = { one_of = ["`+a+`", "`+b+`"] } }`, "allow")
}

// A file below another one asks and denies, and nothing else.
func TestRuleLayers(t *testing.T) {
	decide := func(h *home, f Flags, tool string) policy.Decision {
		return h.resolve(f).Policy.Rules.Decide(policy.Call{Server: "a", Tool: tool, Effect: policy.Read})
	}
	h := newHome(t)
	h.write(user, rule(`tool = "x"`, "allow")+rule(`tool = "y"`, "ask")+"[server.a]\ncommand = \"x\"\n")
	h.write(project, rule(`tool = "x"`, "ask")+rule(`tool = "z"`, "deny"))
	for tool, want := range map[string]policy.Verdict{"x": policy.Ask, "y": policy.Ask, "z": policy.Deny, "w": policy.Allow} {
		if d := decide(h, Flags{}, tool); d.Verdict != want {
			t.Errorf("%s: got %v (%s), want %v", tool, d.Verdict, d.Rule, want)
		}
	}
	for _, text := range []string{
		rule("", "allow"), "[[rule]]\nmatch = {}\nverdict = \"ask\"\nremember = \"tool\"", "[[rule]]\nmatch = {}\nverdict = \"deny\"\ndefault = true",
		"trust_annotations = true", "[server.a.tool.t]\neffect = \"read\"",
	} {
		h.write(project, text)
		if _, err := Resolve(h.sys, Flags{}); err == nil || !strings.Contains(err.Error(), "only narrows") {
			t.Errorf("a project's file with\n%s\ngot %v", text, err)
		}
	}
	h.write(project, "ask = \"client\"\npreset = \"boundary\"\n")
	p := h.resolve(Flags{})
	if p.Ask.Value != policy.AskAuto || p.Preset.Value != "standard" || len(p.Notes) != 2 {
		t.Errorf("a project loosens: ask %v, preset %q, %q", p.Ask.Value, p.Preset.Value, p.Notes)
	}
	h.write(project, "ask = \"deny\"\npreset = \"readonly\"\n")
	if p = h.resolve(Flags{Ask: "client", Preset: "boundary"}); p.Ask.Value != policy.AskNobody || p.Preset.Value != "readonly" {
		t.Errorf("a project narrows: ask %v, preset %q", p.Ask.Value, p.Preset.Value)
	}
	h.write(project, "")

	h.write(managed, rule(`tool = "w"`, "deny"))
	if _, err := Resolve(h.sys, Flags{}); err == nil || !strings.Contains(err.Error(), "has rules or a preset, so a file below it only asks and denies") {
		t.Errorf("an allow below the managed file's rules: %v", err)
	}
	h.write(user, rule(`tool = "x"`, "ask")+"[server.a]\ncommand = \"x\"\n")
	for tool, want := range map[string]policy.Verdict{"x": policy.Ask, "w": policy.Deny, "v": policy.Allow} {
		if d := decide(h, Flags{}, tool); d.Verdict != want {
			t.Errorf("%s below the managed file: got %v (%s), want %v", tool, d.Verdict, d.Rule, want)
		}
	}
	h.write(managed, "preset = \"cautious\"\n")
	h.write(user, rule(`tool = "x"`, "allow"))
	if _, err := Resolve(h.sys, Flags{}); err == nil || !strings.Contains(err.Error(), "has rules or a preset") {
		t.Errorf("an allow below the managed file's preset: %v", err)
	}
	h.write(managed, "")
	// What is only to be read is only read, whatever a rule allows; the other presets are for what no rule is for.
	for preset, want := range map[string]policy.Verdict{"readonly": policy.Deny, "cautious": policy.Allow} {
		d := h.resolve(Flags{Preset: preset}).Policy.Rules.Decide(policy.Call{Tool: "x", Effect: policy.Write})
		if d.Verdict != want {
			t.Errorf("an allowed tool with the preset %s: %v", preset, d.Verdict)
		}
	}
	h.write(user, "")
	// A question below a default that denies stays a no.
	h.write(managed, "preset = \"readonly\"\n")
	h.write(project, rule("effect = \"write\"", "ask"))
	d := h.resolve(Flags{}).Policy.Rules.Decide(policy.Call{Server: "a", Tool: "t", Effect: policy.Write})
	if d.Verdict != policy.Deny {
		t.Errorf("a question of a project turns a no into %v", d.Verdict)
	}
}

// Each preset is a file of rules that loads, and says for each effect what it says.
func TestPresets(t *testing.T) {
	want := map[string]string{"readonly": "allow deny deny deny", "cautious": "allow ask ask ask", "standard": "allow ask ask ask", "boundary": "allow allow allow allow"}
	// The page has a text for each that a person is asked for: see lib/codes.text.js of internal/ui.
	codes := map[string]string{
		"readonly": "[ readonly-write-delete readonly-write-delete readonly-unknown]", "cautious": "[ cautious-write-delete cautious-write-delete cautious-unknown]",
		"standard": "[ standard-write standard-delete standard-unknown]", "boundary": "[   ]",
	}
	for _, name := range Presets() {
		text, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		h := newHome(t)
		h.write(user, string(text))
		var got, code [2][]string
		for _, e := range []policy.Effect{policy.Read, policy.Write, policy.Delete, policy.Unknown} {
			for i, f := range []Flags{{}, {Config: filepath.Join(h.top, "none.toml"), Preset: name}} {
				h.write("none.toml", "")
				d := h.resolve(f).Policy.Rules.Decide(policy.Call{Tool: "t", Effect: e})
				got[i], code[i] = append(got[i], d.Verdict.String()), append(code[i], d.Code)
			}
		}
		if mine, ours := fmt.Sprint(code[0]), fmt.Sprint(code[1]); mine != "[   ]" || ours != codes[name] {
			t.Errorf("%s: the codes of its reasons are %s, want %s; in a file of the user's %s", name, ours, codes[name], mine)
		}
		for i, how := range []string{"as a file", "by its name"} {
			if g := strings.Join(got[i], " "); g != want[name] {
				t.Errorf("%s %s: got %s, want %s", name, how, g, want[name])
			}
		}
	}
	if _, err := Preset("readnoly"); err == nil || !strings.Contains(err.Error(), `did you mean "readonly"?`) {
		t.Errorf("an unknown preset: %v", err)
	}
}

// Whatever is written, a rule is taken with all that it says or refused; and what is taken decides.
func FuzzRules(f *testing.F) {
	for _, text := range []string{fullRules, fullRulesJSON, rule("", "ask"), rule(`args = { a = { path_glob = "{a,[!b]}/**" } }`, "allow")} {
		f.Add(text, `{"path": "x", "url": "https://example.com", "a": [1, "b"]}`)
	}
	f.Fuzz(func(t *testing.T, text, args string) {
		file, err := Parse("/c/c.toml", []byte(text))
		if err != nil {
			return
		}
		var list []*policy.Rule
		for _, r := range file.Rules {
			if r.String() == "" || r.At == "" {
				t.Errorf("a rule says nothing: %+v", r)
			}
			list = append(list, &r.Rule)
		}
		d := policy.New(policy.Layers{Rules: list}).Decide(policy.Call{Server: "files", Tool: "fetch", Args: []byte(args)})
		if len(list) == 0 && d.Verdict != policy.Deny {
			t.Errorf("no rule says %v", d.Verdict)
		}
	})
}

// Tests are read with their places, and what is no JSON in another grammar is refused.
func TestParseTests(t *testing.T) {
	const text = `[[test]]
server = "a"
tool = "t"
arguments = { path = "x\ny", list = [1, 1.5, 0x10, +3, true], inner = { "a b" = "é" } }
effect = "unknown"
want = "deny"
reason = "why"
`
	tests, err := parseTests("/t/t.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Test{{
		Server: "a", Tool: "t", Arguments: []byte(`{"path":"x\ny","list":[1,1.5,16,3,true],"inner":{"a b":"é"}}`),
		Effect: tests[0].Effect, Want: policy.Deny, Reason: "why", At: "/t/t.toml:1:3",
	}}
	if diff := cmp.Diff(want, tests); diff != "" || !tests[0].Effect.Given() {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"":                                  "there is no test in it",
		"test = 1":                          "has to be an array",
		"[[test]]\ntool = \"t\"":            "a test needs want",
		"[[test]]\nwant = \"ask\"":          "a test needs tool",
		"[[test]]\nwant = \"maybe\"":        `unknown value "maybe"`,
		"[[test]]\narguments = []":          "has to be",
		"[[test]]\narguments = { a = nan }": "JSON has no such number",
		"[[test]]\narguments = { a = 1979-05-27 }": "JSON has no",
		"[[test]]\nx = 1":                          `unknown key "x"`,
	} {
		if _, err := parseTests("/t/t.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is taken has arguments that are JSON.
func FuzzParseTests(f *testing.F) {
	f.Add("[[test]]\ntool = \"t\"\nwant = \"ask\"\narguments = { a = 0b1, b = [1e5, inf, 07:32:00], c = '''\n''' }\n")
	f.Add(`{"test": [{"tool": "t", "want": "deny", "arguments": {"a": [null, -0, 1E5]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		tests, err := parseTests("/t/t.toml", []byte(text))
		if err != nil {
			return
		}
		for _, test := range tests {
			if test.Arguments != nil && !json.Valid(test.Arguments) {
				t.Errorf("the arguments are %q", test.Arguments)
			}
		}
	})
}

// The page has the list of clients that a question is left to.
func TestClientsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range policy.Clients {
		kind := "all tools"
		if c.UnlessReadOnly {
			kind = "all tools but those shown as read-only"
		}
		if row := "| " + c.Title + " | " + c.Name + " | " + kind + " | " + c.Source + " (" + c.Date + ") |\n"; !strings.Contains(string(text), row) {
			t.Errorf("docs/configuration.md has no row %s", row)
		}
	}
	if n := strings.Count(string(text), "(2026-"); n != len(policy.Clients) {
		t.Errorf("docs/configuration.md has %d rows of clients, and there are %d", n, len(policy.Clients))
	}
}
