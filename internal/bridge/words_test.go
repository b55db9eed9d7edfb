package bridge

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/wire"
)

// The table in docs/protocol.md is what happens to codes between eras: those in it become what it says, with their data, and all
// others stay.
func TestErrorsBecomeWhatThePageSays(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| code of the server | becomes | for a client of |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	digits := regexp.MustCompile(`-32\d\d\d`)
	down, up := map[int]int{}, map[int]int{}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) != 5 || !digits.MatchString(cells[1]) {
			continue // what is no code, and is played by transcripts
		}
		to, err := strconv.Atoi(digits.FindString(cells[2]))
		if err != nil {
			t.Fatalf("the row %q says no code", row)
		}
		into := up
		if strings.Contains(cells[3], "2026-07-28") {
			into = down
		}
		for _, from := range digits.FindAllString(cells[1], -1) {
			n, _ := strconv.Atoi(from)
			into[n] = to
		}
	}
	if len(down) != 2 || len(up) != 3 {
		t.Fatalf("read %v for clients of 2026-07-28 and %v for those of the handshake revisions", down, up)
	}
	for n := -33000; n <= 1000; n++ {
		m := wire.NewError([]byte("1"), n, "what happened", []byte(`{"more":1}`))
		for name, tt := range map[string]struct {
			says map[int]int
			got  *wire.Message
		}{"2026-07-28": {down, errorDown(m)}, "the handshake revisions": {up, errorUp(m)}} {
			want, ok := tt.says[n]
			if !ok {
				want = n
			}
			more, _ := wire.Get(tt.got.Error(), "data", "more")
			if code(tt.got.Error()) != want || string(more) != "1" || wire.GetString(tt.got.Error(), "message") != "what happened" {
				t.Fatalf("for a client of %s, %d becomes %s, and the page says %d", name, n, tt.got.Bytes(), want)
			}
		}
	}
}

// A peer may say very much that is reserved: it is looked at once, and this test is over at once.
func TestVeryManyReservedMembers(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		b.WriteString(`"` + reserved + strconv.Itoa(i) + `":1,`)
	}
	got := withoutReserved([]byte(`{"_meta":{` + b.String() + `"mine":2}}`))
	if string(got) != `{"_meta":{"mine":2}}` {
		t.Errorf("got %.200s", got)
	}
}
