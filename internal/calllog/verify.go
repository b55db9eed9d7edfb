package calllog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Report is what Verify found in one file.
type Report struct {
	Path   string
	Server string
	// Records is how many records hold, counted up to the first damage; First and Last are their times.
	Records     int
	First, Last time.Time
	// Head is the hash of the last of them. Noted elsewhere, it shows later that nothing before it was written anew.
	Head string
	// State is how the run stands.
	State State
	// Tail is the size of an incomplete last line: what a crash or a full disk leaves, or what is just being written.
	Tail int
	// Damage is the first thing wrong; nil when the chain holds.
	Damage *Damage
}

// State is how a run stands, by its file.
type State uint8

const (
	// Killed: there is no exit record, and nobody writes any more.
	Killed State = iota
	// Running: the file is being written.
	Running
	// Ended: the last record is an exit record.
	Ended
)

func (s State) String() string { return [...]string{"killed", "running", "ended"}[s] }

// Damage is where a chain does not hold.
type Damage struct {
	// Line and Offset say where the bad line begins: lines count from 1, bytes from 0.
	Line   int
	Offset int64
	// Seq is the number of the record that should be there.
	Seq  uint64
	Kind DamageKind
	// Detail says it in a sentence.
	Detail string
}

// DamageKind is what is wrong with a line.
type DamageKind string

const (
	// Unreadable: the line is not a record.
	Unreadable DamageKind = "unreadable"
	// Changed: the record does not have the hash that it carries.
	Changed DamageKind = "changed"
	// Missing: records before this one are gone.
	Missing DamageKind = "missing"
	// Misplaced: the record is sound, and was moved, repeated or put in here.
	Misplaced DamageKind = "misplaced"
	// Foreign: the record is sound and has the right number, but does not continue the record before: either that one
	// was written anew, or this one is from elsewhere.
	Foreign DamageKind = "foreign"
)

// Verify checks the chain of one file. The error is for a file that cannot be read; what is wrong with its contents is in
// the report.
func Verify(path string) (Report, error) { return new(Proven).Verify(path) }

// Proven is how far the chain of a file was found to hold, for who verifies it again and again. The zero value is its beginning.
//
// What was read once is read again where the file is another one, shrank, was written to without growing, or does not have the
// last record of then in its place. Who changes an earlier record of a file that also grows is found by Verify, and not by this.
type Proven struct {
	file      fs.FileInfo // as it was
	report    Report      // of the records up to end
	lines     int
	last, end int64 // where the last of them begins, and ends
}

// Verify is the function Verify from there on.
func (p *Proven) Verify(path string) (Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("verifying the log: %w", err)
	}
	defer f.Close()
	running := locked(f) // asked first: what ends meanwhile is only called running
	info, err := f.Stat()
	if err != nil {
		return Report{}, fmt.Errorf("verifying the log: %w", err)
	}
	if !p.holds(f, info) {
		*p = Proven{}
	}
	p.file = info
	if _, err = f.Seek(p.end, io.SeekStart); err != nil {
		return Report{}, fmt.Errorf("verifying the log: %w", err)
	}
	r, err := p.verify(f)
	if err != nil {
		*p = Proven{}
		return Report{}, fmt.Errorf("verifying the log: %w", err)
	}
	r.Path = path
	if running && r.State == Killed {
		r.State = Running
	}
	return r, nil
}

// holds reports whether a file is still the one that was read up to end.
func (p *Proven) holds(f io.ReaderAt, info fs.FileInfo) bool {
	if p.end == 0 || !os.SameFile(p.file, info) || info.Size() < p.end ||
		info.Size() <= p.file.Size() && !(info.Size() == p.file.Size() && info.ModTime().Equal(p.file.ModTime())) {
		return false
	}
	line := make([]byte, p.end-p.last)
	if _, err := f.ReadAt(line, p.last); err != nil || line[len(line)-1] != '\n' {
		return false
	}
	l, sound := parse(line[:len(line)-1])
	return sound && l.Hash == p.report.Head
}

// VerifyDir checks every file in dir, in the order of time.
func VerifyDir(dir string) ([]Report, error) {
	names, err := Files(dir)
	if err != nil {
		return nil, err
	}
	var reports []Report
	for _, name := range names {
		r, err := Verify(filepath.Join(dir, name))
		if err != nil {
			return reports, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// verify checks what can be read from file, and keeps how far it holds.
func (p *Proven) verify(file io.Reader) (Report, error) {
	r := p.report
	lines := bufio.NewReaderSize(file, 256<<10)
	head := noPrev
	if r.Records > 0 {
		head = digits([]byte(r.Head))
	}
	number, offset, last := p.lines, p.end, p.last
	for {
		line, n, err := readLine(lines)
		if err != nil && err != io.EOF {
			return r, err
		}
		number++
		next := uint64(r.Records) + 1
		if err == io.EOF {
			if len(bytes.TrimRight(line, "\x00")) > 0 && r.Damage == nil && !cutOff(line, next, head) {
				r.Damage = &Damage{number, offset, next, Unreadable, "the last line is not the beginning of a record"}
			}
			r.close(head)
			if r.Damage != nil {
				*p = Proven{}
				return r, nil
			}
			p.report, p.lines, p.last, p.end = r, number-1, last, offset
			r.Tail = len(line)
			return r, nil
		}
		l, sound := parse(line)
		switch {
		case r.Damage != nil: // does what should have followed come later?
			if sound && l.Prev == string(head[:]) {
				r.Damage.Kind = Misplaced
				r.Damage.Detail = fmt.Sprintf("the record that belongs here is in line %d", number)
			}
		case l == nil:
			r.Damage = &Damage{number, offset, next, Unreadable, "the line is not a record"}
		case !sound:
			r.Damage = &Damage{number, offset, next, Changed, "the record does not have the hash that it carries"}
		case l.Prev == string(head[:]) && l.Seq == next:
			r.Records++
			if r.Records == 1 {
				r.First, r.Server = l.Time, l.Server
			}
			r.Last = l.Time
			r.State = Killed
			if l.Kind == Exit {
				r.State = Ended
			}
			head, last = digits([]byte(l.Hash)), offset
		case l.Seq == next+1:
			r.Damage = &Damage{number, offset, next, Missing, fmt.Sprintf("record %d is missing", next)}
		case l.Seq > next:
			r.Damage = &Damage{number, offset, next, Missing, fmt.Sprintf("records %d to %d are missing", next, l.Seq-1)}
		case l.Seq < next:
			r.Damage = &Damage{number, offset, next, Misplaced, fmt.Sprintf("record %d does not belong here", l.Seq)}
		default:
			r.Damage = &Damage{number, offset, next, Foreign, "the record does not continue the one before"}
		}
		if r.Damage != nil && (r.Damage.Kind == Unreadable || r.Damage.Kind == Changed) {
			r.close(head)
			*p = Proven{}
			return r, nil
		}
		offset += n
	}
}

func (r *Report) close(head digits) {
	if r.Records > 0 {
		r.Head = string(head[:])
	}
}

// link is what Verify reads of a record.
type link struct {
	Seq    uint64    `json:"seq"`
	Time   time.Time `json:"time"`
	Kind   Kind      `json:"kind"`
	Server string    `json:"server"`
	Prev   string    `json:"prev"`
	Hash   string    `json:"hash"`
}

// parse reads a line. It returns nil for what is not a record; sound says whether it has the hash that it carries.
func parse(line []byte) (l *link, sound bool) {
	covered := len(line) - len(`,"hash":""}`) - len(digits{})
	if covered < 0 || !hasPrefix(line[covered:], `,"hash":"`) || !bytes.HasSuffix(line, []byte(`"}`)) {
		return nil, false
	}
	l = new(link)
	if json.Unmarshal(line, l) != nil || len(l.Hash) != len(digits{}) {
		return nil, false
	}
	hash := digest(line[:covered])
	return l, l.Hash == string(hash[:])
}

// cutOff reports whether line, which has no end, is the beginning of the record with number seq, or all of it. Zeros at
// its end are what a file system leaves after a loss of power.
func cutOff(line []byte, seq uint64, head digits) bool {
	line = bytes.TrimRight(line, "\x00")
	begin := fmt.Appendf(nil, `{"seq":%d,"time":"`, seq)
	if n := min(len(line), len(begin)); !bytes.Equal(line[:n], begin[:n]) {
		return false
	}
	if l, sound := parse(line); l != nil {
		return sound && l.Prev == string(head[:])
	}
	var v json.RawMessage
	return json.NewDecoder(bytes.NewReader(line)).Decode(&v) == io.ErrUnexpectedEOF
}
