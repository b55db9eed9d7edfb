package launch

import (
	"slices"
	"strings"

	"github.com/rootbound/rootbound/roots"
)

// effects is what the tools of a package do, as its code says in the versions that were read.
type effects struct {
	versions string // with blanks between them
	tools    map[string]effect
}

// effect is what a tool does at most.
type effect struct {
	access roots.Access
	// definitions are how the prints of its definition begin in these versions: with another one it is another tool.
	definitions string
}

// printed is how much of a print is kept.
const printed = 32

// Effect returns what a tool does at most, and whether that is known: of a tool with a definition of this print, in a version whose
// code was read. Roots.ReadWrite also takes things away or moves them.
func (p Profile) Effect(version, tool, definition string) (roots.Access, bool) {
	if p.effects == nil || len(definition) < printed || !slices.Contains(strings.Fields(p.effects.versions), strings.TrimPrefix(version, "v")) {
		return 0, false
	}
	e, ok := p.effects.tools[tool]
	return e.access, ok && slices.Contains(strings.Fields(e.definitions), definition[:printed])
}

// Versions are those of which it is known what their tools do, oldest first.
func (p Profile) Versions() []string {
	if p.effects == nil {
		return nil
	}
	return strings.Fields(p.effects.versions)
}

// HasEffects reports whether it is known of any version what the tools do.
func (p Profile) HasEffects() bool { return p.effects != nil }

const (
	reads   = roots.Read
	writes  = roots.Read | roots.Write
	deletes = roots.ReadWrite
)

var filesystemEffects = effects{
	versions: "2025.7.1 2025.7.29 2025.8.18 2025.8.21 2025.11.25 2025.12.18 2026.1.14 2026.7.4 2026.7.10 2026.8.31",
	tools: map[string]effect{
		"read_file": {reads, "77fe503288fbbff6906eca188b1133fc 53a2d9ff4068866e9b09999a84b5bf7d f9dad472c31bc12ae4c94d60e4c35584 " +
			"3487f03b37f4ff7938e9134e01b69bbd"},
		"read_text_file":            {reads, "0253937a738bf71e7a9fd500507d823f 831bc081171218f558019ceaf57d6796 9e7657bb86ebbf34558ab89ef9a4b4e9"},
		"read_media_file":           {reads, "56c75e7bb98a82e6d7f837c39ae44cfd a66c810b4ec3a7e54700b0513654e3ae 25791b7b973f4bf1a6e923c07169b082"},
		"read_multiple_files":       {reads, "0e75a4e9af1643a2ac29964483d69ed0 d18d8e85508e413c5f84cf6da8ff75e4 d101af3456aecf64d7854f1d2e38a0f1"},
		"list_directory":            {reads, "f7ba9f32c159f9451403a7036d26afaf 42f08d3fcee3fbaa33c4efe4e7bbb7a1 ee1b45eee2a00d45107d3462250fc523"},
		"list_directory_with_sizes": {reads, "6c7677b224cfa2632cf688b22cb021cf 5319a3c2957fa2c64397c0ac00149e37 b175be53660720f42f6c80242dc32e64"},
		"directory_tree":            {reads, "bcb4951683a8fe146c660b2a504b3641 051fcf5329e059218d5083e64aafbf81 937d6aacc7ca1f4d08dc78099797cabb"},
		"search_files":              {reads, "f48d36f8e4a30952a86e6ea719394a63 5b47480ba4e4e78192ff0a709d51c218 bbdf814e1878f506e6021179411543d3"},
		"get_file_info":             {reads, "0cbe6e6a633d4be028fc59a8c753e28d 0f43db0797391a9529d4e19bd551d025 8350e8fdae61c8f0da720b54346f55da"},
		"list_allowed_directories": {reads, "0814ed5ef804fd884ae63a74c25a0e71 d37d06970c00581859b9e42946f4f96b 764f04afa3ef86f7d393a48915a235f2 " +
			"98d6558e2b087c7ecd71dd64490d816e c7b0d0af3125628489cda4e7de6bd58e"},
		"write_file":       {writes, "38f119debdb9bd89aee84f3471ac0574 2f58a346608681e05113b4e8c4739022 a9f64e99e12e9598d55255f8fd79ebf0"},
		"edit_file":        {writes, "d654d6c180e1d5704f47a4fcfd096641 11e3a99b0d06e2def7aaa0abe841d16e 78ddb025fd7d21f6210f627e7ab8a12d"},
		"create_directory": {writes, "a931ad2f66ca3915a602cf8ce26ff271 6e1bffe5e5b4e42e60edd4eb29442a8f 5b98b902c664a2c1afc062cb2685e758"},
		"move_file": {deletes, "492bd9f1fbb7c15be29146efb1718827 3e0d99904fbc38898b860aca32ac6184 7013fb791765682956a4011bb2778663 " +
			"3c11aa9f427064e168a8f9606d642d2b"},
	},
}

var memoryEffects = effects{
	versions: "2025.8.4 2025.9.25 2025.11.25 2026.1.26 2026.7.4 2026.8.31",
	tools: map[string]effect{
		"read_graph": {reads, "c2a6a8f9ece24c6881fc6c1f71dc4228 64115e40bfb5e4834c786f9965554241 8821902ad22dd804691433ec50368a61 " +
			"8690af9492b76b2f2cc5fd003895d280"},
		"search_nodes": {reads, "7808fd70c606f62b0ac4768d790a5c47 6ef3c599386add3ecf4fde696bd9fe42 84ed76a2755619ae1184dcbdd4aaf3dc " +
			"bd7abd168ffc9052478c569fce593f8b"},
		"open_nodes": {reads, "ea760d72f3d36fd5419436b67a0c4744 3a6207cb8ad9a6994610f024edc53390 2069f9283eac80b9964623e04b7da263 " +
			"1e9879e1d4f07865bcab726463095071"},
		"create_entities": {writes, "e21cf632a78593ad42a130e5846e754b d8f51b21e98a7c7d65eba159dd2e011f e518e9c0655113c0acc066a64f50071e " +
			"88a4ebaf5b0bcb5d8f493b0bd60e63d1"},
		"create_relations": {writes, "4651a9b1e7c670d0bda0a56ccd93d535 c22dc27c011ae136264060b0e1cfc943 5c60ed7eed53aa401c441eebcb564fe6 " +
			"a5ad421855f623f6c0469727cfd2bd00"},
		"add_observations": {writes, "bd70af9258c9ad27c05b7f1c260d32d6 feda8e11b6d6fa7c314a58e0d1955c10 304e44c7431c148f60117c450db6f832 " +
			"126562b00689336be09fbc88d3b7e131"},
		"delete_entities": {deletes, "ae909b598cf32cc92032d2597e3faeac 98dfc20ddb6f0955145b308beadbe56a 060c6b0398c2c2a25d9176c76d8c3fa9 " +
			"704f96384d5c661e3b31fa5dc5e7d0bb"},
		"delete_relations": {deletes, "1deda4d1c3c10f13746f2a3c9706850e 9f781a271248aa3d970fca2177f01614 c69dfd07c2b3cb55a68a01562111113e " +
			"f33188b55884741c302529c9c1fe97d9"},
		"delete_observations": {deletes, "5b4e816017267862f5ac3457ce579084 0bc900cf4638eeb15aba8d50731f9f79 0cd64a387244db2c97eead5861d94bac " +
			"a795791e9c93ae68e41f79dc53d8c687"},
	},
}

var thinkingEffects = effects{
	versions: "2025.7.1 2025.11.25 2025.12.18 2026.7.4 2026.8.31",
	tools: map[string]effect{
		"sequentialthinking": {reads, "070d3746130590f5c4b9bb8ca4b7840d 069c7443524f3b54cf34335ea9bf5ecb c1e7bf81e63922a233b732e0d2504fda " +
			"de2ebd200db9c7469b75cfe671c1c24e ddf453dcd86bd69e4393b3a3b54d1ad2"},
	},
}
