package fsserver

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// maxMedia is the longest file of an answer that carries it twice as base64, in bytes.
const maxMedia = (maxAnswer/2 - 16<<10) / 4 * 3

var readMediaFile = tool{
	name:  "read_media_file",
	title: "Read Media File",
	description: "Read an image or an audio file, as base64 with its media type, which its name tells: png, jpg, gif, webp, bmp, svg, mp3, " +
		"wav, ogg or flac. Any other file comes as an embedded resource. " + onlyWithin,
	params:      []param{aPath},
	annotations: readOnly,
	output: `"type":"object","properties":{"content":{"type":"array","items":{"anyOf":[{"type":"object","properties":{` +
		`"type":{"type":"string","enum":["image","audio"]},"data":{"type":"string"},"mimeType":{"type":"string"}},` +
		`"required":["type","data","mimeType"],"additionalProperties":false},{"type":"object","properties":{` +
		`"type":{"type":"string","const":"resource"},"resource":{"type":"object","properties":{"uri":{"type":"string"},` +
		`"mimeType":{"type":"string"},"blob":{"type":"string"}},"required":["uri","blob"],"additionalProperties":false}},` +
		`"required":["type","resource"],"additionalProperties":false}]}}},"required":["content"],"additionalProperties":false}`,
	run: func(c *call) (answer, error) {
		content, err := c.readMedia(c.args.text("path"))
		return answer{content: content}, err
	},
}

// embedded are the media that a block of their own carries, by the ending of their name. They are the reference server's.
var embedded = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".bmp": "image/bmp",
	".svg": "image/svg+xml", ".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".flac": "audio/flac",
}

// readMedia returns the content blocks of a file, JSON.
func (c *call) readMedia(arg string) ([]byte, error) {
	var f *os.File
	var info fs.FileInfo
	path, err := c.at(opOpen, arg, func(path string) (err error) {
		f, info, err = c.opened(func() (*os.File, error) { return c.fs.Open(path) })
		return err
	})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	path = c.real(path)
	var data []byte
	if err = errTooLong; info.Size() <= maxMedia {
		data, err = readAll(c.ctx, f, c.lent.take(int(info.Size())+1))
	}
	if err == errTooLong || len(data) > maxMedia {
		return nil, refuse(codeTooLarge, "EFBIG: file too large, read '%s': it has %d bytes, and one answer carries at most %d of such a file. "+
			"Make a smaller copy of it, and read that.", show(path), max(info.Size(), int64(len(data))), maxMedia)
	}
	if err != nil {
		return nil, c.explain(opRead, path, err)
	}
	kind, known := embedded[strings.ToLower(filepath.Ext(filepath.Base(path)[1:]))] // ".png" is a name without an ending
	b := make([]byte, 0, base64.StdEncoding.EncodedLen(len(data))+3*len(path)+200)
	if known {
		form, _, _ := strings.Cut(kind, "/")
		b = append(append(append(b, `[{"type":"`...), form...), `","data":"`...)
		b = base64.StdEncoding.AppendEncode(b, data)
		b = append(append(b, `","mimeType":"`...), kind...)
		return append(b, `"}]`...), nil
	}
	b = wire.AppendQuote(append(b, `[{"type":"resource","resource":{"uri":`...), roots.FileURI(path))
	b = append(append(append(b, `,"mimeType":"`...), unknownType...), `","blob":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, `"}}]`...), nil
}
