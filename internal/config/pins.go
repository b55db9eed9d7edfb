package config

import "path/filepath"

// What the setting pins can be besides a file.
const (
	// PinsOn keeps pins in the state directory of the user.
	PinsOn = "on"
	// PinsOff keeps none, and compares nothing.
	PinsOff = "off"
)

// PinsFile is the file in which pins are kept, empty for that of the state directory.
func (p *Plan) PinsFile() string {
	if v := p.Pins.Value; v != PinsOn && v != PinsOff {
		return v
	}
	return ""
}

func pinsValue(dir, value string) string {
	if value == PinsOn || value == PinsOff || value == "" {
		return value
	}
	return filepath.Clean(absolute(dir, value))
}

// pins resolves where pins are kept: what the managed file says about it holds, whatever was typed.
func (r *resolver) pins() {
	var flagged Setting[string]
	if r.flags.Pins != "" {
		flagged = Setting[string]{pinsValue(r.sys.Dir, r.flags.Pins), Origin{Word: "--pins"}}
	}
	if r.managed.Pins.Given() && flagged.Given() {
		r.note("--pins has no effect: %s decides", r.managed.Pins.Origin)
	}
	r.p.Pins = first(r.managed.Pins, flagged, r.operator.Pins, usual(PinsOn))
}
