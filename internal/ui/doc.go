// Package ui is the local page: one tab in which a person sees what runs behind Rootbound, answers questions, and finds what
// happened. It finds guards by their cards, as the commands do, and nothing needs it to run.
//
//	u, err := ui.New(ui.Options{Dir: dir, Version: version})
//	l, err := ui.Listen("127.0.0.1:0")
//	fmt.Println(u.Link(l.Addr()))       // good for one browser
//	err = u.Serve(ctx, l)
//
// # How a page is made
//
// The page is one static document, web/index.html, with modules that build everything else; no template is filled in. A
// section of it, such as Questions, is
//
//   - a Go file NAME.go with a value of type section in the list sections: its routes, and what runs beside them;
//   - a module web/pages/NAME.js, which exports mount(main, signal): it fills main, and stops what it began when signal is
//     aborted;
//   - a table web/pages/NAME.text.js: each text by its key, in English and in Chinese;
//   - a style sheet web/pages/NAME.css, if it needs one: all of them are sent as one;
//   - a line in web/pages.js, by which it is in the navigation.
//
// A route is registered with UI.handle, gets JSON and gives JSON. What a person should see without asking goes over the one
// stream of events: hub.set and hub.drop keep a value under a kind and a key, which every page that is open follows, and
// which a new one is told; hub.tell says something once. In a module, follow(kind, signal, f) of web/lib/events.js is the
// other end. What is to be fetched by the browser itself, such as a file that is saved, needs a link of api.link, which
// works once.
//
// Modules make elements with h() of web/lib/dom.js alone. It takes text as text, shows what a person does not see, and no
// module may use innerHTML or a style attribute; the browser refuses both (Content-Security-Policy).
//
// # Who may use it
//
// It listens on this machine alone. The link holds a token that is exchanged once: for a cookie that scripts cannot read and
// other sites do not send, and a key that the page keeps for its origin and shows with each request. A cookie alone would
// not do, as it goes to every port of the host. Requests must name our host, and come from our origin. On Linux a connection
// must be of our user.
//
// # Limits
//
// Whoever can read the browser's memory or profile, or the terminal in which the link stands, can answer as the person does:
// so can any program of the same user that is not confined. On systems other than Linux it is not known whose a connection is.
// What the page shows of a guard is what the guard says.
package ui
