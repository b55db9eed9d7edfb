package peers

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// attribute is an extended attribute of one file of the tree.
const attribute = "user.peers"

// What stands at the beginning of an entry's text says what it is; else it is a file with that text. "$W" is the directory
// with the roots.
const (
	link    = "-> "
	fifo    = "<fifo>"
	socket  = "<socket>"
	dirText = "<dir>"
)

// entry is one entry of a tree.
type entry struct {
	path, text string
	mode       os.FileMode // 0: 0644, or 0755 for a directory
}

// dropInTree is two roots with a bit of everything, a third in a home directory, and what lies beside them.
var dropInTree = []entry{
	// Texts.
	{path: "R/a.txt", text: "l1\nl2\nl3\n"},
	{path: "R/crlf.txt", text: "a\r\nb\r\nc"},
	{path: "R/mixed.txt", text: "a\nb\r\nc\rd\n"},
	{path: "R/cr.txt", text: "a\rb\rc"},
	{path: "R/empty"},
	{path: "R/newlines", text: "\n\n"},
	{path: "R/one line", text: "only"},
	{path: "R/bom.txt", text: "\ufeffx\ny\n"},
	{path: "R/latin1", text: "caf\xe9\n\xe2\x82A\nend\n"},
	{path: "R/utf16", text: "\xff\xfea\x00\n\x00b\x00"},
	{path: "R/nul", text: "a\x00b\nc\n"},
	{path: "R/wide.txt", text: strings.Repeat("é", 3000) + "\n" + strings.Repeat("😀x", 2000) + "\nend"},
	{path: "R/long.txt", text: strings.Repeat("0123456789abcdef\n", 12000)},
	{path: "R/no end", text: strings.Repeat("x", 70000)},
	{path: "R/same.txt", text: "same\nother\nsame\nlast\n"},
	{path: "R/tabs.go", text: "func f() {\n\tif x {\n\t\tone()\n\t\ttwo()\n\t}\n}\n"},
	{path: "R/blanks.py", text: "def f():\n    if x:\n        one()\n        two()\n"},
	{path: "R/fence.md", text: "# Title\n```go\ncode\n````\nend\n"},
	{path: "R/money", text: "a $1 $& b\n"},
	{path: "R/ten", text: "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n23\n24\n25\n26\n27\n28\n29\n30\n"},

	// Names.
	{path: "R/names/quo'te", text: "q"},
	{path: "R/names/dou\"ble", text: "q"},
	{path: "R/names/back\\slash", text: "q"},
	{path: "R/names/new\nline", text: "q"},
	{path: "R/names/tab\t", text: "q"},
	{path: "R/names/ lead", text: "q"},
	{path: "R/names/trail ", text: "q"},
	{path: "R/names/-dash", text: "q"},
	{path: "R/names/#hash", text: "q"},
	{path: "R/names/[id]", text: "q"},
	{path: "R/names/i", text: "q"},
	{path: "R/names/{a,b}", text: "q"},
	{path: "R/names/!bang", text: "q"},
	{path: "R/names/a*b", text: "q"},
	{path: "R/names/100%", text: "q"},
	{path: "R/names/%41", text: "q"},
	{path: "R/names/😀", text: "q"},
	{path: "R/names/... ", text: "q"},
	{path: "R/names/..x", text: "q"},
	{path: "R/names/" + strings.Repeat("n", 200), text: "q"},
	{path: "R/file:", text: "a file with a colon"},
	{path: "R/unicode/caf\u00e9", text: "composed"},
	{path: "R/unicode/re\u0301sume", text: "decomposed"},
	{path: "R/unicode/\u1ed9", text: "one of two"},
	{path: "R/unicode/\u1ecd\u0302", text: "two of two"},
	{path: "R/unicode/di\u0301r/x", text: "in a decomposed directory"},
	{path: "R/bytes/bad\xffname", text: "not UTF-8"},

	// Directories, links, and what is neither.
	{path: "R/sub/deep.txt", text: "deep"},
	{path: "R/sub/.hidden", text: "h"},
	{path: "R/sub/z", text: dirText},
	{path: "R/none", text: dirText},
	{path: "R/in.txt", text: link + "$W/R/sub/deep.txt"},
	{path: "R/chain", text: link + "in.txt"},
	{path: "R/across", text: link + "../S/b.txt"},
	{path: "R/dir", text: link + "sub"},
	{path: "R/out", text: link + "$W/canary"},
	{path: "R/outdir", text: link + "../outside"},
	{path: "R/dangling", text: link + "$W/R/gone"},
	{path: "R/dangling far", text: link + "no/such/gone"},
	{path: "R/dangling out", text: link + "$W/gone"},
	{path: "R/loop", text: link + "loop"},
	{path: "R/ring", text: link + "S/../ring"},
	{path: "R/fifo", text: fifo},
	{path: "R/socket", text: socket},

	// Rights.
	{path: "R/read only", text: "r\n", mode: 0o444},
	{path: "R/program", text: "#!/bin/sh\n", mode: 0o755},
	{path: "R/private", text: "p\n", mode: 0o600},
	{path: "R/setuid", text: "s\n", mode: 0o755 | os.ModeSetuid},
	{path: "R/attributed", text: "x\n"},
	{path: "R/.env", text: "KEY=1\n"},
	{path: "R/.env.example", text: "KEY=\n"},

	// A second root, a third, and what is outside.
	{path: "S/a.txt", text: "of S"},
	{path: "S/b.txt", text: "b"},
	{path: "S/only/here", text: "here\n"},
	{path: "home/project/notes", text: "notes\n"},
	{path: "home/secret", text: "secret\n"},
	{path: "R-evil/x", text: "evil\n"},
	{path: "canary", text: "canary\n"},
	{path: "outside/canary", text: "canary\n"},
}

// lockedTree has what may not be read.
var lockedTree = []entry{
	{path: "R/a.txt", text: "a\n"},
	{path: "R/shut/x", text: "x\n"},
	{path: "R/shut.txt", text: "x\n", mode: 0o200},
	{path: "R/open/y", text: "y\n"},
	{path: "R/open/shut/x", text: "x\n"},
	{path: "R/unlisted/x", text: "x\n"},
	{path: "R/steady/x", text: "x\n"},
	{path: "R/shut", mode: 0o001, text: dirText},
	{path: "R/open/shut", mode: 0o001, text: dirText},
	{path: "R/unlisted", mode: 0o311, text: dirText},
	{path: "R/steady", mode: 0o555, text: dirText},
}

// globTree is for patterns.
var globTree = func() (list []entry) {
	for _, name := range []string{
		"a.js", "b.ts", "c.jsx", ".hidden.js", "Upper.JS", "é.js", "😀.js", "a b.js", "[id].js", "{x}.js", "a+b.js", "a.b.c", "1", "2", "10", "Makefile",
		"src/a.js", "src/b.test.js", "src/deep/a.js", "src/deep/er/a.ts", "src/.git/config", "src/node_modules/p/index.js",
		"node_modules/p/index.js", "node_modules/p/node_modules/q/index.js", "build/out.js", "build/build/x", "docs/a.md", "docs/x/a.md", ".git/HEAD", ".git/objects/aa",
		"app/[id]/page.tsx", "app/(group)/page.tsx", "app/@slot/page.tsx", "!neg/x.js", "#c/x.js", "\\b/x.js",
	} {
		list = append(list, entry{path: "R/" + name, text: name})
	}
	return append(list,
		entry{path: "R/none", text: dirText}, entry{path: "R/link.js", text: link + "a.js"}, entry{path: "R/linked", text: link + "src"}, entry{path: "R/out.js", text: link + "$W/out.js"},
		entry{path: "R/dangling.js", text: link + "gone"}, entry{path: "R/loop.js", text: link + "loop.js"}, entry{path: "out.js", text: "outside\n"}, entry{path: "S/s.js"})
}()

// mediaTree has a file of each kind that is told by the end of its name, and of some others.
var mediaTree = func() (list []entry) {
	for _, end := range []string{
		".png", ".PNG", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".svg", ".mp3", ".wav", ".ogg", ".flac", ".mp4", ".pdf", ".txt", ".avif", ".tiff", ".m4a", ".ico", ".png.txt", "", ".",
	} {
		list = append(list, entry{path: "R/m" + end, text: "\x89PNG\r\n\x1a\n\x00" + end})
	}
	return append(list, entry{path: "R/empty.png"}, entry{path: "R/empty.bin"}, entry{path: "R/.png", text: "x"}, entry{path: "R/spa ce é.bin", text: "x"}, entry{path: "R/in.png", text: link + "m.mp3"})
}()

// deep leads to a directory with many names.
var deep = strings.Repeat("deep-down/", 60)

// largeTree is beyond what one answer carries.
var largeTree = func() (list []entry) {
	list = []entry{
		{path: "R/5M", text: strings.Repeat("0123456789abcde\n", 5<<16)},
		{path: "R/5M line", text: strings.Repeat("x", 5<<20)},
		{path: "R/3M", text: strings.Repeat("0123456789abcde\n", 3<<16)},
		{path: "R/4M.png", text: strings.Repeat("p", 4<<20)},
		{path: "R/17M", text: "first\n" + strings.Repeat(strings.Repeat("y", 1023)+"\n", 17<<10)},
		{path: "R/600K", text: "first\n" + strings.Repeat("z", 600<<10) + "\nlast\n"},
	}
	for i := range 4500 {
		list = append(list, entry{path: fmt.Sprintf("R/wide/%s%05d-%s", deep, i, strings.Repeat("w", 240))})
	}
	return list
}()

// when is the time of every file.
var when = time.Date(2024, 2, 29, 12, 34, 56, 789e6, time.UTC)

// makeTree makes the entries that are not there, in their order.
func makeTree(w string, list []entry) error {
	made := false
	for _, e := range list {
		if info, err := os.Lstat(filepath.Join(w, e.path)); err == nil && (e.mode == 0 || info.Mode().Perm() == e.mode.Perm()) {
			continue
		}
		if err := e.make(w); err != nil {
			return err
		}
		made = true
	}
	if !made {
		return nil
	}
	return filepath.WalkDir(w, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSymlink != 0 {
			return nil // what may not be read keeps its time
		}
		return os.Chtimes(path, when, when)
	})
}

func (e entry) make(w string) error {
	path, mode := filepath.Join(w, e.path), e.mode
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	to, isLink := strings.CutPrefix(e.text, link)
	switch {
	case isLink:
		return os.Symlink(strings.ReplaceAll(to, "$W", w), path)
	case e.text == fifo:
		return syscall.Mkfifo(path, 0o644)
	case e.text == socket:
		return syscall.Mknod(path, syscall.S_IFSOCK|0o644, 0)
	case e.text == dirText:
		if mode == 0 {
			mode = 0o755
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	default:
		if mode == 0 {
			mode = 0o644
		}
		if err := os.WriteFile(path, []byte(e.text), 0o644); err != nil {
			return err
		}
	}
	if e.path == "R/attributed" {
		if err := syscall.Setxattr(path, attribute, []byte("x"), 0); err != nil && err != syscall.ENOTSUP {
			return err
		}
	}
	return errors.Join(os.Chtimes(path, when, when), os.Chmod(path, mode))
}

// short is a text, or what is known of a long one.
func short(text string) string {
	if len(text) > 1000 {
		sum := sha256.Sum256([]byte(text))
		return fmt.Sprintf("%q… of %d bytes, sum %s", text[:20], len(text), base64.RawURLEncoding.EncodeToString(sum[:9]))
	}
	return fmt.Sprintf("%q", text)
}
