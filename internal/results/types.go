package results

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
)

// signature is how data of a type begins.
type signature struct {
	mime   string
	at     int
	prefix string
}

var signatures = []signature{
	{"image/png", 0, "\x89PNG\r\n\x1a\n"},
	{"image/jpeg", 0, "\xff\xd8\xff"},
	{"image/gif", 0, "GIF87a"},
	{"image/gif", 0, "GIF89a"},
	{"image/webp", 8, "WEBP"},
	{"image/bmp", 0, "BM"},
	{"image/tiff", 0, "II*\x00"},
	{"image/tiff", 0, "MM\x00*"},
	{"image/x-icon", 0, "\x00\x00\x01\x00"},
	{"image/avif", 4, "ftypavif"},
	{"image/avif", 4, "ftypavis"},
	{"image/heic", 4, "ftyphei"},
	{"image/heic", 4, "ftyphev"},
	{"image/heic", 4, "ftypmif1"},
	{"audio/wav", 8, "WAVE"},
	{"audio/mpeg", 0, "ID3"},
	{"audio/mpeg", 0, "\xff\xfb"},
	{"audio/mpeg", 0, "\xff\xfa"},
	{"audio/mpeg", 0, "\xff\xf3"},
	{"audio/mpeg", 0, "\xff\xf2"},
	{"audio/ogg", 0, "OggS"},
	{"audio/flac", 0, "fLaC"},
	{"audio/mp4", 4, "ftyp"},
	{"audio/webm", 0, "\x1aE\xdf\xa3"},
	{"application/pdf", 0, "%PDF-"},
	{"application/zip", 0, "PK\x03\x04"},
	{"application/zip", 0, "PK\x05\x06"},
	{"application/gzip", 0, "\x1f\x8b"},
	{"a program", 0, "\x7fELF"},
	{"a program", 0, "MZ"},
	{"a program", 0, "\xcf\xfa\xed\xfe"},
	{"a program", 0, "#!"},
	{"text/html", 0, "<!DOCTYPE html"},
	{"text/html", 0, "<html"},
	{"image/svg+xml", 0, "<svg"},
}

// aliases are other names of the types above.
var aliases = map[string]string{
	"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png", "image/x-ms-bmp": "image/bmp",
	"image/vnd.microsoft.icon": "image/x-icon", "image/heif": "image/heic", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav",
	"audio/vnd.wave": "audio/wav", "audio/mp3": "audio/mpeg", "audio/x-flac": "audio/flac", "audio/m4a": "audio/mp4",
	"audio/x-m4a": "audio/mp4", "audio/opus": "audio/ogg", "audio/vorbis": "audio/ogg", "application/ogg": "audio/ogg",
	"video/mp4": "audio/mp4", "video/webm": "audio/webm", "audio/x-matroska": "audio/webm", "video/x-matroska": "audio/webm",
	"application/x-zip-compressed": "application/zip", "application/x-gzip": "application/gzip",
}

// head is how many bytes of data are looked at.
const head = 48

// mistyped says how the type of data differs from what it begins with, or nothing. Data of a type that is not known is only
// looked at when it claims to be an image or sound.
func mistyped(v []byte) string {
	var data, kind string
	mime := ""
	for name, v := range wire.Members(v) {
		switch name {
		case "data", "blob":
			if len(v) > 2 && v[0] == '"' {
				data, _ = wire.Unquote(append(bytes.Clone(v[:min(len(v)-1, 1+head/3*4)]), '"'))
			}
		case "mimeType":
			mime = textOf(v)
		case "type":
			kind = textOf(v)
		}
	}
	if data == "" {
		return ""
	}
	named, _, _ := strings.Cut(mime, ";")
	named = strings.ToLower(strings.TrimSpace(named))
	if other, ok := aliases[named]; ok {
		named = other
	}
	family, _, _ := strings.Cut(named, "/")
	media := kind == "image" || kind == "audio"
	if media && named != "" && family != kind && !(kind == "audio" && (strings.HasPrefix(named, "video/") || family == "audio")) {
		return fmt.Sprintf("data of the kind %s is called %.80q", kind, mime)
	}
	begin, err := base64.StdEncoding.DecodeString(data[:len(data)/4*4])
	if err != nil {
		return fmt.Sprintf("data that is called %.80q is not base64", mime)
	}
	is := identify(begin)
	known := slices.ContainsFunc(signatures, func(s signature) bool { return s.mime == named })
	switch {
	case len(begin) < 12, slices.Contains(is, named):
		return ""
	case known && len(is) == 0:
		return fmt.Sprintf("data that is called %.80q does not begin like it", mime)
	case len(is) > 0 && (known || media || family == "image" || family == "audio"):
		return fmt.Sprintf("data that is called %.80q is %s", mime, is[0])
	}
	return ""
}

// identify returns the types that data may be of.
func identify(b []byte) []string {
	var list []string
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	text := bytes.TrimLeft(b, " \t\r\n")
	for _, s := range signatures {
		from := b
		if s.prefix[0] == '<' {
			from = text
		}
		if end := s.at + len(s.prefix); len(from) >= end && strings.EqualFold(string(from[s.at:end]), s.prefix) && !slices.Contains(list, s.mime) {
			list = append(list, s.mime)
		}
	}
	if bytes.HasPrefix(text, []byte("<?xml")) {
		list = append(list, "image/svg+xml")
	}
	return list
}
