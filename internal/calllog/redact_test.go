package calllog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Secrets of known shapes, made up; cut in two so that nobody's scanner takes them for real.
const (
	skKey   = "sk-" + "proj-4fZ8qLw2Xb9TnV7cRk3M"
	ghToken = "ghp_" + "7Kq2mZ9xWv4Tb8Rn3Lc6Yd1Hs5Gf0Jp2Qa4E"
	jwt     = "eyJ" + "0eXAiOiJKV1QifQ.eyJpc3MiOiJ1cyJ9.q7Vn2Lx9Tz4Kd8Rw1Mb6Yc"
	awsID   = "AKIA" + "Q3WZ7TN2XK5LB8RM"
	awsKey  = "hT9bQ2xLw7Rz/V4nKc8Yd/1MfGs6Jp3Xa5EuZk0q"
	hexKey  = "4b7e01c9d23f8a6510e9b4c27d8f3a61"
	pem     = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nbm90IGEga2V5\n-----END OPENSSH PRIVATE KEY-----"
)

func TestRedact(t *testing.T) {
	long := strings.Repeat("a line of text\n", 40)
	sum := sha256.Sum256([]byte(long))
	digest := hex.EncodeToString(sum[:4])
	quoted, _ := json.Marshal(long)
	longPath := "/" + strings.Repeat("directory/", 40) + "file"
	for _, tt := range []struct{ name, in, want string }{
		{"scalars", ` [1, -2.5e+3 ,true,false,null,"x"] `, `[1,-2.5e+3,true,false,null,"x"]`},
		{"path stays", `{"path":"/home/u/a b/c.go"}`, `{"path":"/home/u/a b/c.go"}`},
		{"long path stays", `{"path":"` + longPath + `"}`, `{"path":"` + longPath + `"}`},
		{"hash in a path stays", `{"path":"/nix/store/0c8m4x3ny1q2v5l7z9r6k8d4f2g1h3j5-go-1.26/bin"}`, `{"path":"/nix/store/0c8m4x3ny1q2v5l7z9r6k8d4f2g1h3j5-go-1.26/bin"}`},
		{"words in a path stay", `["/tmp/sk-learn-tutorial-2"]`, `["/tmp/sk-learn-tutorial-2"]`},
		{"uuid stays", `{"page":"550e8400-e29b-41d4-a716-446655440000"}`, `{"page":"550e8400-e29b-41d4-a716-446655440000"}`},
		{"date stays", `["2026-11-30T06:12:01Z"]`, `["2026-11-30T06:12:01Z"]`},
		{"identifier stays", `["AbstractSingletonProxyFactoryBeanTest2"]`, `["AbstractSingletonProxyFactoryBeanTest2"]`},
		{"windows path", `["C:\\new\\table.txt"]`, `["C:\\new\\table.txt"]`},
		{"unicode stays", `{"路径":"/家/我的项目"}`, `{"路径":"/家/我的项目"}`},

		{"free text", `{"path":"/x","content":` + string(quoted) + `}`, `{"path":"/x","content":{"bytes":600,"sha256":"` + digest + `"}}`},
		{"short free text has no digest", `{"query":"secret plans"}`, `{"query":{"bytes":12}}`},
		{"free text in depth", `{"edits":[{"oldText":"a\"b","line":3}],"body":{"x":["yy",1,""]}}`, `{"edits":[{"oldText":{"bytes":3},"line":3}],"body":{"x":[{"bytes":2},1,""]}}`},
		{"long string", `{"anything":` + string(quoted) + `}`, `{"anything":{"bytes":600,"sha256":"` + digest + `"}}`},
		{"long text that begins like a path", `{"x":"/* ` + strings.Repeat("a", 300) + `\n*/"}`, `{"x":{"bytes":306,"sha256":"HASH"}}`},

		{"secret names", `{"password":"hunter2","API-Key":"x","accessToken":1234,"auth":{"user":"u","n":[1,true]},"client_secret":""}`,
			`{"password":"[7 bytes redacted]","API-Key":"[1 bytes redacted]","accessToken":"[4 bytes redacted]","auth":{"user":"[1 bytes redacted]","n":["[1 bytes redacted]",true]},"client_secret":""}`},
		{"escaped name", `{"p\u0061ssword":"hunter2"}`, `{"password":"[7 bytes redacted]"}`},
		{"secret beats free text", `{"content":{"token":"abc"}}`, `{"content":{"token":"[3 bytes redacted]"}}`},
		{"numbers of tokens", `{"max_tokens":100,"maxTokens":{"github":"abc"},"progressToken":"p1"}`, `{"max_tokens":100,"maxTokens":{"github":"[3 bytes redacted]"},"progressToken":"p1"}`},
		{"header pair", `{"headers":[{"name":"X-Api-Key","value":"abc"},{"value":"a\"bc","name":"Cookie","x":1},{"name":"Accept","value":"*/*"}]}`,
			`{"headers":[{"name":"X-Api-Key","value":"[3 bytes redacted]"},{"value":"[5 bytes redacted]","name":"Cookie","x":1},{"name":"Accept","value":"*/*"}]}`},
		{"option and value", `{"args":["--token","abc","--out","f","--token=abc"]}`, `{"args":["--token","[3 bytes redacted]","--out","f","--token=[3 bytes redacted]"]}`},

		{"known shapes", `["` + skKey + `","x ` + ghToken + `.","` + jwt + `","` + awsID + `","` + awsKey + `","` + hexKey + `"]`,
			`["[28 bytes redacted]","x [41 bytes redacted]","[` + itoa(len(jwt)) + ` bytes redacted]","[20 bytes redacted]","[40 bytes redacted]","[32 bytes redacted]"]`},
		{"bearer", `["Authorization: Bearer abc","use Bearer aBcd1234 here","bearer of good news"]`, `["Authorization: [10 bytes redacted]","use Bearer [8 bytes redacted] here","bearer of good news"]`},
		{"url", `["postgres://u:p/ss@db:5432/x","https://host:8080/@user","ssh://git@host/x","https:\/\/u:pw@h/?key=abc&page=2"]`,
			`["postgres://u:[4 bytes redacted]@db:5432/x","https://host:8080/@user","ssh://git@host/x","https://u:[2 bytes redacted]@h/?key=[3 bytes redacted]&page=2"]`},
		{"json in a string", `["{\"password\": \"a b\", \"x\": 1}"]`, `["{\"password\": \"[3 bytes redacted]\", \"x\": 1}"]`},
		{"secret in a name", `{"` + skKey + `":1}`, `{"[28 bytes redacted]":1}`},
		{"pem", `["a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b"]`, `["a [66 bytes redacted] b"]`},
		{"shape in a path", `["/tmp/` + awsID + `/x","file:///a/` + ghToken + `"]`, `["/tmp/[20 bytes redacted]/x","file:///a/[40 bytes redacted]"]`},

		{"escapes for a terminal", "[\"\\u001b[31m\",\"\u202e\u009b\u007f\u200b\U000e0041\"]", `["\u001b[31m","\u202e\u009b\u007f\u200b\udb40\udc41"]`},
		{"bad text", "[\"a\xffb\",\"\\ud83d\"]", `["a\ufffdb","\ufffd"]`},

		{"not json", `{"a":1,}`, `{"bytes":8}`},
		{"trailing", `1 2`, `{"bytes":3}`},
		{"trailing zero byte", "1\x00", `{"bytes":2}`},
		{"unterminated", `["abc\"`, `{"bytes":7}`},
		{"nothing", ``, `{"bytes":0}`},
		{"bad number", `[01]`, `{"bytes":4}`},
		{"deep", strings.Repeat("[", 66) + `{"password":"x"}` + strings.Repeat("]", 66), strings.Repeat("[", 65) + `{"bytes":18}` + strings.Repeat("]", 65)},
		{"too much", `[` + strings.Repeat(`"aaaaaaaa",`, 2000) + `1]`, `{"bytes":22003,"sha256":"HASH"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := string(new(walker).appendJSON(nil, []byte(tt.in)))
			if i := strings.Index(tt.want, "HASH"); i >= 0 && len(got) > i+8 {
				got = got[:i] + "HASH" + got[i+8:]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("redacting %s (-want +got):\n%s", tt.in, diff)
			}
			if !json.Valid([]byte(got)) && !strings.Contains(got, "HASH") {
				t.Errorf("not JSON: %s", got)
			}
		})
	}
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// TestDigest compares the size and digest of a body with those of the file that it becomes.
func TestDigest(t *testing.T) {
	for _, text := range []string{
		"", "plain", strings.Repeat("x", 100_000), strings.Repeat("tab\tand \"quote\"\n", 9000), strings.Repeat("\u2028", 5000),
		strings.Repeat("\n", 20_000), strings.Repeat("我的项目 <&>", 3000), strings.Repeat("a", 4095) + "\n" + strings.Repeat("\U0001f600", 3000),
	} {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		size, sum := new(walker).measure(quoted[1 : len(quoted)-1])
		if want := sha256.Sum256([]byte(text)); size != len(text) || sum != want {
			t.Errorf("measuring %.20q…: got %d %x, want %d %x", text, size, sum[:4], len(text), want[:4])
		}
	}
}

func TestBodies(t *testing.T) {
	w := walker{bodies: true}
	long := strings.Repeat("some text ", 100)
	got := string(w.appendJSON(nil, []byte(`{"content":"`+long+``+skKey+`","token":"x"}`)))
	want := `{"content":"` + long + `[28 bytes redacted]","token":"[1 bytes redacted]"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRedactArgs(t *testing.T) {
	got := RedactArgs([]string{"npx", "-y", "server", "/home/u/app", "--api-key", "abc", "--password=abc def", "-H", "Authorization: Basic dXNlcg==",
		"-e", "GITHUB_PAT=abc", "--env=PLAIN=abc", "ROOT=/srv/x", "postgres://u:pw@h/d", skKey, "--verbose", "sh", "-c", "export TOKEN=abc; run"})
	want := []string{"npx", "-y", "server", "/home/u/app", "--api-key", "[3 bytes redacted]", "--password=[3 bytes redacted] def", "-H", "Authorization: [14 bytes redacted]",
		"-e", "GITHUB_PAT=[3 bytes redacted]", "--env=PLAIN=[3 bytes redacted]", "ROOT=/srv/x", "postgres://u:[2 bytes redacted]@h/d", "[28 bytes redacted]", "--verbose", "sh", "-c", "export TOKEN=[3 bytes redacted]; run"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRedactText(t *testing.T) {
	for in, want := range map[string]string{
		"nothing here":                    "nothing here",
		"opening /etc/passwd: denied":     "opening /etc/passwd: denied",
		"password: a b\nnext":             "password: [3 bytes redacted]\nnext",
		"got " + jwt + ", " + awsID + "!": "got [" + itoa(len(jwt)) + " bytes redacted], [20 bytes redacted]!",
		pem:                               "[" + itoa(len(pem)) + " bytes redacted]",
	} {
		if got := RedactText(in); got != want {
			t.Errorf("RedactText(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzAppendJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\u00e9\n",{"token":"x"}],"content":"y"}`, `{"value":"x","name":"token"}`, `"\ud83d\ude00\ud83d"`, `["--token","\"`, `{"a":1e5,"b":-0.1}`, `{"`, `[[[[]]]]`, "\"\\", `{"name":"--token","value":{"value":"q","key":"password"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, bodies := range []bool{false, true} {
			w := walker{bodies: bodies}
			got := w.appendJSON([]byte("before"), src)
			if !strings.HasPrefix(string(got), "before") || !json.Valid(got[6:]) {
				t.Fatalf("redacting %q: not JSON: %q", src, got)
			}
			for _, c := range got {
				if c < ' ' || c == 0x7f {
					t.Fatalf("redacting %q: control character in %q", src, got)
				}
			}
			// what is JSON is not taken for something else
			if json.Valid(src) && len(src) < 1000 && strings.HasPrefix(string(got[6:]), `{"bytes":`) && src[0] == '[' && strings.Count(string(src), "[") < maxDepth {
				t.Fatalf("redacting %q: given up: %q", src, got)
			}
		}
	})
}

// FuzzSecret hides a secret in any surroundings that do not grow together with it.
func FuzzSecret(f *testing.F) {
	f.Add("", "", "x")
	f.Add("Bearer ", "\n", "content")
	f.Add("https://u:", "@host", "na\"me")
	f.Add(`{"a":"`, `"}`, "--token")
	f.Fuzz(func(t *testing.T, before, after, key string) {
		for _, secret := range []string{skKey, ghToken, jwt, awsID, hexKey} {
			text := before + " " + secret + " " + after
			args, err := json.Marshal(map[string]any{key: text, "list": []any{text, map[string]string{text: key}}})
			if err != nil {
				t.Skip()
			}
			for _, bodies := range []bool{false, true} {
				w := walker{bodies: bodies}
				if got := string(w.appendJSON(nil, args)); strings.Contains(got, secret) {
					t.Fatalf("leaked from %s:\n%s", args, got)
				}
			}
			if got := RedactText(text); strings.Contains(got, secret) {
				t.Fatalf("leaked from %q:\n%q", text, got)
			}
			e := encoder{}
			line, _ := e.line(&Record{Reason: text, Command: []string{key, text}, Env: []string{"A=" + text}, Paths: []Path{{Given: text}}, Text: text, ID: args},
				1, someTime, text, noPrev)
			if strings.Contains(string(line), secret) {
				t.Fatalf("leaked into %s", line)
			}
		}
	})
}
