//go:build unix

package fsserver

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// https://github.com/modelcontextprotocol/servers/issues/4029: what is no image and no sound comes as a valid block too.
func TestReadMediaFile(t *testing.T) {
	w := tree(t, map[string]string{
		"R/p.png": "xyz", "R/p.PNG": "xyz", "R/s.mp3": "xyz", "R/v.svg": "xyz", "R/empty.gif": "", "R/p q#é.bin": "xyz", "R/a": "xyz", "R/.png": "xyz",
		"R/link.png": "-> a", "R/sub/": "", "R/out.png": "-> ../canary", "canary": canary,
	})
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))
	resource := func(path string) string {
		return `[{"type":"resource","resource":{"uri":"file://` + w + "/R/" + path + `","mimeType":"application/octet-stream","blob":"eHl6"}}]`
	}
	for path, want := range map[string]string{
		"p.png":     `[{"type":"image","data":"eHl6","mimeType":"image/png"}]`,
		"p.PNG":     `[{"type":"image","data":"eHl6","mimeType":"image/png"}]`,
		"s.mp3":     `[{"type":"audio","data":"eHl6","mimeType":"audio/mpeg"}]`,
		"v.svg":     `[{"type":"image","data":"eHl6","mimeType":"image/svg+xml"}]`,
		"empty.gif": `[{"type":"image","data":"","mimeType":"image/gif"}]`,
		"p q#é.bin": resource("p%20q%23%C3%A9.bin"),
		"a":         resource("a"),
		".png":      resource(".png"), // a name without an ending
		"link.png":  resource("a"),    // what counts is the name of what is read
		"sub":       `[{"type":"text","text":"EISDIR: illegal operation on a directory, read"}]`,
		"nope":      `[{"type":"text","text":"ENOENT: no such file or directory, open '` + w + `/R/nope'"}]`,
		"out.png":   `[{"type":"text","text":"Access denied - symlink target outside allowed directories, or missing: ` + w + `/R/out.png not in ` + w + `/R"}]`,
	} {
		for _, era := range eras {
			result := []byte(ask(t, newServer(t), request(era, "tools/call", `{"name":"read_media_file","arguments":{"path":`+quoteJSON(path)+`}}`, set)))
			got, _ := wire.Get(result, "content")
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("%v %s (-want +got):\n%s", era, path, diff)
			}
			structured, ok := wire.Get(result, "structuredContent", "content")
			if _, isError := wire.Get(result, "isError"); ok == isError || ok && string(structured) != want {
				t.Errorf("%v %s: structured %s", era, path, structured)
			}
		}
	}
}

// The largest file that is read fits into a line that clients take; a larger one is refused with what to do.
func TestMediaThatIsTooLarge(t *testing.T) {
	w := tree(t, nil)
	for name, size := range map[string]int{"most.png": maxMedia, "over.png": maxMedia + 1} {
		if err := os.WriteFile(w+"/"+name, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := roots.NewSet(resolve(t, w, roots.ReadOnly))
	answer := exchange.Do(t.Context(), newServer(t), request(exchange.Modern, "tools/call", `{"name":"read_media_file","arguments":{"path":"most.png"}}`, set)).Msg
	data := wire.GetString(answer.Result(), "structuredContent", "content")
	if n := len(answer.Bytes()); n > 10<<20 || n < 2*base64.StdEncoding.EncodedLen(maxMedia) || data != "" {
		t.Errorf("the answer has %d bytes", n)
	}
	got, isError := use(t, newServer(t), exchange.Legacy, set, "read_media_file", `{"path":"over.png"}`)
	if !isError || !strings.HasPrefix(got, "EFBIG: file too large, read '"+w+"/over.png': ") || !strings.Contains(got, "smaller copy") {
		t.Errorf("over: %q", got)
	}
}
