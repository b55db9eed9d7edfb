package mcptest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// corpus is the kinds of odd peers, and where each is played: a transcript ROOM/ARCHIVE/NAME, or a test ROOM.TestNAME where a
// transcript cannot say it.
var corpus = []struct{ peer, played string }{
	// Servers, as a client of the stateless era meets them.
	{"refuses server/discover with -32601", "transport/eras/fallback"},
	{"refuses server/discover with -32602, or another code", "transport/eras/refused-otherwise"},
	{"refuses a revision and names another one of the same era", "transport/eras/unsupported-revision"},
	{"says nothing to server/discover", "transport/eras/silent"},
	{"ends on server/discover", "transport/eras/exit-on-discover"},
	{"refuses with the id null, or none", "transport/eras/nameless transport/odd-servers/null-id transport/odd-servers/null-id-modern"},
	{"prints text before its first message and between", "transport/odd-servers/refusals transport/odd-servers/blank-lines"},
	{"prints text instead of the answer to server/discover", "transport/eras/text"},
	{"asks for roots without params", "guard/modern/rounds guard/lists/narrow"},
	{"gives a result of an unknown type, or of an extension's", "transport/odd-servers/results-stateless transport/odd-servers/odd-modern guard/modern/odd-answers"},
	{"gives a state alone, without questions", "transport/odd-servers/odd-modern guard/modern/odd-answers"},
	{"asks a question of an unknown kind", "transport/odd-servers/odd-modern guard/modern/odd-answers transport/unknown/methods"},
	{"sends roots/list as a request in the stateless era", "transport/odd-servers/asks-stateless guard/modern/odd-answers"},
	{"asks for roots outside any request", "transport/ordinary/legacy guard/lists/narrow transport/odd-servers/asks-out-of-turn transport/odd-servers/unassociated"},
	{"sends a line that is too long for clients, or for us", "transport.TestLongLines"},
	{"has members that nobody knows in its results", "transport/unknown/members transport/unknown/shapes"},
	{"hands a client of the handshake a question as a result", "transport/odd-servers/leak"},
	{"stays in one era, or refuses a second handshake", "transport/eras/pinned"},
	{"answers a stateless request in the words of the handshake", "transport/eras/discover-after-handshake"},
	{"answers what was cancelled, with a result or an error", "transport/cancellation/late transport/cancellation/answered-with-an-error"},
	{"answers twice, or what nobody asked", "transport/odd-servers/answers-twice"},
	{"answers with a result and an error, or neither", "transport/odd-servers/both-or-neither"},
	{"asks without end", "transport.TestQuestionsWithoutAnAnswer guard/modern/asks-on-and-on"},
	{"has one subscription only", "transport/odd-servers/listens-twice"},
	{"tells progress of nobody", "transport/odd-servers/progress"},
	{"is none", "transport/odd-servers/echo"},
	{"ends at once, or in mid-call", "transport/odd-servers/ends-at-once transport/odd-servers/refusals"},
	{"asks for its roots when it is told, when it is called, or never", "guard/lists/narrow guard/changes/switch-busy guard/changes/restart-accepted guard/changes/restart-narrowed"},

	// Servers over HTTP.
	{"breaks its streams, or cuts an answer", "streamable.TestABrokenStreamIsTakenUp streamable.TestABrokenCallIsNotMadeAgain streamable.TestOnlyWhatChangesNothingIsRepeated"},
	{"begins no session", "streamable.TestAServerWithoutASession"},
	{"forgets its session, and begins no other", "streamable.TestAForgottenSession streamable.TestASessionThatCannotBeBegunAgain"},
	{"refuses by status, with words or without", "streamable.TestErasOverHTTP streamable.TestClearErrors"},
	{"sends its clients elsewhere", "streamable.TestClearErrors streamable.TestAnOldServerThatSendsElsewhere"},
	{"never answers over HTTP, or without end", "streamable.TestAServerThatHangs streamable.TestStreamsWithOtherThings"},
	{"speaks the HTTP of 2024-11-05", "streamable.TestTheOldWay"},
	{"wants headers that say what the message says", "streamable.TestMirroredHeaders"},
	{"has people log in somewhere that is not safe", "oauth.TestLoginsThatAreRefused"},

	// Ids, methods and members.
	{"has ids of every form", "transport/ids/of-requests transport/ids/of-questions transport/ids/spelled-otherwise"},
	{"has ids that are none", "transport/ids/of-no-form transport/ids/of-no-form-questions"},
	{"has ids that are open already, or the same again and again", "transport/ids/open-already transport/ordinary/one-id"},
	{"asks while it is asked, under equal ids", "transport/ids/equal transport/odd-servers/odd-modern"},
	{"has methods that nobody knows", "transport/unknown/methods"},
	{"does not say which JSON-RPC it speaks", "transport/unknown/versions"},

	// Cancellation.
	{"cancels what was answered, what never was, and twice", "transport/cancellation/after-the-answer transport/cancellation/of-nothing transport/cancellation/stateless"},
	{"spells the id of what it cancels otherwise", "transport/cancellation/spelled-otherwise"},
	{"cancels its handshake", "transport/cancellation/of-the-handshake transport/cancellation/of-the-first-of-two"},
	{"cancels a call while it is asked", "guard/lists/cancel-while-asked guard/lists/withdrawn transport/cancellation/with-a-question"},
	{"withdraws a question that is answered meanwhile", "transport/cancellation/question-answered-first transport/cancellation/question-asked-again"},
	{"ends when it is asked to stop a call", "transport/cancellation/and-the-end"},
	{"cancels what it has back", "guard/modern/cancels-what-it-has-back"},

	// Clients.
	{"probes and shakes hands, in either order, at once, and twice", "transport/eras/at-once transport/eras/discover-after-handshake transport/eras/initialize-twice"},
	{"uses methods of the other era", "transport/eras/removed"},
	{"does not say what each request must", "transport/eras/unsound"},
	{"never shakes hands", "transport/odd-clients/no-handshake"},
	{"never retries", "transport/odd-clients/never-retries guard/modern/never-retries"},
	{"retries with another state, other arguments, or the same state twice", "transport/odd-clients/changed-state guard/modern/changed-state guard/modern/changed-seal"},
	{"retries without the answer, or with one that is none", "guard/modern/answers-badly"},
	{"answers roots/list with -32601", "guard/lists/refuses-roots"},
	{"answers roots/list with another error", "guard/lists/fails"},
	{"never answers roots/list", "guard.TestAClientThatNeverAnswersIsNotWaitedForTwice"},
	{"never answers, and leaves", "transport/odd-clients/never-answers guard/lists/leaves-while-asked"},
	{"answers what nobody asked, or twice", "transport/odd-clients/answers-nobody guard/lists/answers-twice"},
	{"has no roots, or none any more", "guard/lists/empty-first guard/lists/narrow"},
	{"has wider roots than are configured", "guard/lists/wider-and-parts"},
	{"has narrower roots", "guard/lists/narrow guard/lists/wider-and-parts"},
	{"has broken roots", "guard/lists/broken guard/lists/pinned-and-bad"},
	{"spells its roots in its own way", "guard/lists/spelled guard/lists/strict-uri"},
	{"speaks of roots that it did not declare", "guard/lists/not-declared"},
	{"changes its roots while it is asked", "guard/lists/changes-while-asked"},
	{"closes while it waits", "transport/odd-clients/leaves-in-mid-call transport/ordinary/listen-close"},
	{"sends no message at all, or one that two readers would read differently", "transport/odd-servers/refusals transport/odd-clients/blank-lines"},
	{"sends batches", "transport/ordinary/batch transport/odd-servers/refusals"},
	{"calls without an id", "guard/calls/no-id"},
}

// Each kind of odd peer is played by what the table says.
func TestCorpus(t *testing.T) {
	names := map[string][]string{}
	for _, c := range corpus {
		for _, played := range strings.Fields(c.played) {
			if !exists(t, names, played) {
				t.Errorf("a peer that %s: there is no %s", c.peer, played)
			}
		}
		if c.played == "" {
			t.Errorf("a peer that %s is not played", c.peer)
		}
	}
}

// exists reports whether there is a transcript or a test of this name. Names keeps what was read.
func exists(t *testing.T, names map[string][]string, played string) bool {
	if room, test, ok := strings.Cut(played, "."); ok {
		files, _ := filepath.Glob(filepath.Join("..", room, "*_test.go"))
		return slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), fmt.Sprintf("\nfunc %s(", test))
		})
	}
	archive, name := filepath.Split(played)
	if names[archive] == nil {
		room, base := filepath.Split(filepath.Clean(archive))
		list, err := Archive(filepath.Join("..", room, "testdata", base+".txtar"))
		if err != nil {
			t.Error(err)
		}
		names[archive] = []string{}
		for _, tr := range list {
			names[archive] = append(names[archive], tr.Name)
		}
	}
	return slices.Contains(names[archive], name)
}

var errorRow = regexp.MustCompile("^\\| (-32[0-9]{3}) \\| (?:`([a-z /-]+)`)? ?\\|")

// Each error that docs/protocol.md names is given to a client or a server, with its reason, by a transcript or a test.
func TestErrors(t *testing.T) {
	doc, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	var played []string
	for _, room := range []string{"guard", "transport", "streamable"} {
		for _, pattern := range []string{"testdata/*.txtar", "*_test.go"} {
			files, _ := filepath.Glob(filepath.Join("..", room, pattern))
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				played = append(played, strings.Split(string(text), "\n")...)
			}
		}
	}
	n := 0
	for line := range strings.Lines(string(doc)) {
		row := errorRow.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		n++
		code, reason := fmt.Sprintf(`"code":%s,"message":"`, row[1]), fmt.Sprintf(`"data":{"reason":%q`, row[2])
		if !slices.ContainsFunc(played, func(l string) bool {
			return strings.Contains(l, code) && (row[2] == "" || strings.Contains(l, reason))
		}) {
			t.Errorf("no transcript has the error %s %s", row[1], row[2])
		}
	}
	if n < 20 {
		t.Errorf("docs/protocol.md names %d errors", n)
	}
}

func TestArchive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.txtar")
	text := "About it.\n-- one.transcript --\n#! strict\n#!\n#! probe 1s\nC> a\n-- A/f --\ntext\n-- two.transcript --\nS> ${x}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := Archive(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Name != "one" || list[1].Name != "two" || list[1].Text != "S> ${x}\n" {
		t.Fatalf("got %+v", list)
	}
	if got := fmt.Sprint(list[0].Options()); got != "[[strict] [probe 1s]]" {
		t.Errorf("options %s", got)
	}
	for i, want := range []int{2, 9} { // as an editor counts the line before the first of each
		if list[i].line != want {
			t.Errorf("%s begins behind line %d, want %d", list[i].Name, list[i].line, want)
		}
		if tree := list[i].Tree; len(tree) != 1 || tree[0].Name != "A/f" || string(tree[0].Data) != "text\n" {
			t.Errorf("%s has the tree %v", list[i].Name, tree)
		}
	}
}
