package rootfs

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io/fs"
	"strings"
)

// Version makes a token of a file's state: which file it is, its size, and when it and its metadata changed. Two equal
// tokens say that it is the same file and has not changed, as far as its file system's clock tells: two changes within one
// tick (some milliseconds on older kernels) that keep the size are one. It is opaque, short, and made of [0-9a-z-].
func Version(info fs.FileInfo) string {
	sum := sha256.Sum256(fmt.Append(nil, info.Size(), info.ModTime().UnixNano(), identity(info)))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}
