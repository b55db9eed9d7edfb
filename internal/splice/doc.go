// Package splice edits one value in a JSON, JSONC, TOML or YAML text and leaves every other byte as it is: comments, order,
// line ends, indentation, big numbers, a byte order mark.
//
//	doc, err := splice.Parse(text, splice.TOML)
//	if err != nil {
//		return err // a *splice.Error: it knows the line and the column
//	}
//	doc, err = doc.Insert(splice.Path{"server", "fs", "roots", splice.End}, splice.Object(
//		splice.Member{Name: "path", Value: splice.String("/srv/repo")},
//	))
//	os.Stdout.Write(doc.Bytes())
//
// A Doc is also the tree of what the text says, in the order of the text and with the place of every value, which is
// what a reader needs whose errors name a line and a column. Read makes the tree of a text that has faults, too.
//
// After each edit the new text is parsed again and every value but the edited one is compared with what it was: an edit
// that would change another value is an error, and there is no new text. Delete takes back what Insert put in, byte for
// byte, with one exception: a pair of brackets that held nothing but line breaks comes back as an empty pair.
//
// # Limits
//
// A text in which a name occurs twice in one object or table is refused: programs differ in which one they take. Numbers
// and dates are kept as they are written and never converted. A TOML table cannot be replaced whole, and no value can be
// put into a table that exists only because its sub-tables do. In YAML, scalars on one line are replaced, members go behind
// a scalar, and arrays are edited at their front: what is laid out otherwise, has a tag, or stands for an anchor is refused. Half of a surrogate pair in a JSON escape reads as U+FFFD.
// Nesting is limited to 10,000 levels.
package splice
