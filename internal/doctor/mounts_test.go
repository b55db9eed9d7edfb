package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/launch"
)

func TestMounts(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"docker run -i -v /a:/b image", "/a rw 3"},
		{"docker run -v /a:/b:ro,z --volume=./c:/d image -v /x:/y", "/a ro 2, ./c rw 3"},
		{"docker run --mount type=bind,source=/a,target=/b,readonly --mount type=volume,source=data,target=/d image", "/a ro 2"},
		{`docker run -v C:\a:/b image`, `C:\a rw 2`},
		{"docker run -v name:/b -v /anonymous image", ""},
		{"podman run -v", ""},
	} {
		words := strings.Fields(tt.line)
		c := launch.Command{Path: words[0], Args: words[1:]}
		var got []string
		for _, d := range mounts(c, launch.Identify(c)) {
			got = append(got, fmt.Sprint(d.Path, " ", accessWord(d.Access), " ", d.Arg))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("mounts(%s) (-want +got):\n%s", tt.line, diff)
		}
	}
}
