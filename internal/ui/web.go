package ui

import (
	"embed"
	"net/http"
	"path"
	"strings"
)

//go:embed web
var web embed.FS

func serveIndex(w http.ResponseWriter, _ *http.Request) { serveFile(w, "web/index.html") }

func serveModule(w http.ResponseWriter, r *http.Request) {
	serveFile(w, strings.TrimPrefix(path.Clean(r.URL.Path), "/"))
}

// types are those of our files: the system may know others.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

func serveFile(w http.ResponseWriter, name string) {
	text, err := web.ReadFile(name)
	if err != nil {
		refuse(w, problem{http.StatusNotFound, "missing", "there is no such page"})
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Write(text)
}
