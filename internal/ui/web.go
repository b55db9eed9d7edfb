package ui

import (
	"embed"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed web
var web embed.FS

func serveIndex(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" { // the address of a link: the modules are to be ours, too, and not kept from another program
		w.Header().Set("Clear-Site-Data", `"cache"`)
	}
	serveFile(w, "web/index.html")
}

func serveModule(w http.ResponseWriter, r *http.Request) {
	serveFile(w, strings.TrimPrefix(path.Clean(r.URL.Path), "/"))
}

// workerGone is what a service worker becomes that another program has left for our origin, and whose script the browser asks
// for again: it goes.
const workerGone = `addEventListener("install", () => skipWaiting()); addEventListener("activate", (e) => e.waitUntil(registration.unregister()));
`

// isWorker reports whether a browser asks for the script of a service worker. We have none.
func isWorker(r *http.Request) bool { return r.Header.Get("Service-Worker") == "script" }

func serveWorker(w http.ResponseWriter) {
	w.Header().Set("Content-Type", types[".js"])
	w.Write([]byte(workerGone))
}

// style is the one style sheet of the page, with what each section has of its own: the browser paints when it has all of them.
var style = sync.OnceValue(func() []byte {
	text, err := web.ReadFile("web/style.css")
	if err != nil {
		panic("bug: " + err.Error())
	}
	entries, err := web.ReadDir("web/pages")
	if err != nil {
		panic("bug: " + err.Error())
	}
	for _, e := range entries {
		if path.Ext(e.Name()) == ".css" {
			more, _ := web.ReadFile("web/pages/" + e.Name())
			text = append(append(text, '\n'), more...)
		}
	}
	return text
})

// types are those of our files: the system may know others.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

func serveFile(w http.ResponseWriter, name string) {
	text, err := web.ReadFile(name)
	if name == "web/style.css" {
		text = style()
	}
	if err != nil {
		refuse(w, problem{http.StatusNotFound, "missing", "there is no such page"})
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Write(text)
}
