package policy

// Mode says who asks a person when a decision is Ask. The zero value is nobody.
type Mode uint8

const (
	// AskNobody makes a question a no.
	AskNobody Mode = iota
	// AskAlways never leaves a question to the client.
	AskAlways
	// AskAuto leaves a question to a client that is known to ask by itself for this kind of tool.
	AskAuto
	// AskClient leaves every question to the client.
	AskClient
)

// String returns the word as --ask has it.
func (m Mode) String() string {
	return [...]string{"deny", "always", "auto", "client"}[min(m, AskClient)]
}
