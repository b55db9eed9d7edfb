package sandbox

// oldOpens and oldChanges are calls that other architectures have besides.
var (
	oldOpens   map[uint32]pathCall
	oldChanges map[uint32][]pathCall
)

func oldFlags(uint32, [6]uint64) uint64 { return 0 }
