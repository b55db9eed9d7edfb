// Package pin remembers what a server says of itself: what a model reads and a client acts on. When a server says something
// else one day, the difference tells whether that is a matter of words or one of meaning.
//
//	for _, d := range pin.Definitions("tools/list", result) {
//		changes := pin.Compare(pinned[d.Key()], d)
//		if pin.Dangerous(changes) {
//			… // a person is to look at it
//		}
//	}
//
// A [Definition] is canonical: two spellings of one JSON value are one definition. A [Store] keeps definitions in a file that
// people can read, and those that wait for a person in another one. A [Pins] is a guard's view of them for one server.
//
// # Limits
//
// A pin is about what a server says, not about what it does: a tool can do something else under the same words. And what is
// pinned is what was seen first; whether that is good nobody has asked.
//
// Whether new text tells a model what to do is decided by words and by what the text speaks of, mostly in English. Much new
// text, and text in a script that was not there, counts as well. Text that is short, plain and wrong passes as a matter of
// words, and is logged.
//
// Resources are not pinned, since lists of them change with what they are of; their templates are.
package pin
