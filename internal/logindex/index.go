package logindex

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

const (
	application = 0x52424c49 // "RBLI", in the database's head
	version     = 1          // of the tables

	// patience is how long is waited for another process to finish its batch.
	patience = 10 * time.Second
	// keep is how many connections for searches stay open.
	keep = 2
)

const tables = `
CREATE TABLE file (
	id    INTEGER PRIMARY KEY AUTOINCREMENT, -- of a file that is looked at anew, a new one
	name  TEXT NOT NULL UNIQUE,
	done  INTEGER NOT NULL, -- bytes that are indexed
	size  INTEGER NOT NULL, -- as it was once, and
	stamp INTEGER NOT NULL, -- its time of change then
	tail  BLOB NOT NULL,    -- the last of those bytes
	clock INTEGER NOT NULL, -- the time of the last record, which never goes back
	first INTEGER NOT NULL, -- the keys of its records are between these
	last  INTEGER NOT NULL,
	ended INTEGER NOT NULL  -- nobody writes to it any more
);
CREATE TABLE word (
	id   INTEGER PRIMARY KEY,
	role INTEGER NOT NULL,
	text TEXT NOT NULL,
	UNIQUE (role, text)
);
CREATE TABLE place (
	id   INTEGER PRIMARY KEY,
	path TEXT NOT NULL UNIQUE
);
CREATE TABLE entry (
	key     INTEGER PRIMARY KEY, -- microseconds, and a number among those of one
	file    INTEGER NOT NULL,
	at      INTEGER NOT NULL,    -- where in the file
	size    INTEGER NOT NULL,    -- of the line
	kind    INTEGER NOT NULL,
	server  INTEGER NOT NULL,
	subject INTEGER NOT NULL,
	verdict INTEGER NOT NULL,
	places  BLOB,                -- ids, as varints
	call    TEXT,
	outcome INTEGER NOT NULL,    -- these of a call are of its end
	ms      REAL,
	bytes   INTEGER
);
CREATE INDEX entry_call ON entry (call) WHERE call IS NOT NULL;
`

// Path returns where the index of the log in dir lies in a state directory.
func Path(state, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(state, "index", hex.EncodeToString(sum[:8])+".sqlite")
}

// Index is an index of a log. It is safe for use by any goroutine. Whoever opened it closes it.
type Index struct {
	path, dir string
	note      func(string)

	following sync.Mutex // held by who follows the files
	f         *follower  // nil when there is no connection

	mu      sync.Mutex
	idle    []*conn
	suspect map[string]bool // names of files that do not have what the index says
	state   State
	builds  int // how often it was built anew
	closed  bool
}

// conn is a connection to the database, and which file that was.
type conn struct {
	*database
	info fs.FileInfo
}

// Open opens the index at path of the log in dir, and makes it, and its directory, where it is missing (modes 0600 and 0700). The log
// need not be there yet. Nothing is read from it before Update or Follow. Note is told in a line when the index was built anew.
func Open(path, dir string, note func(string)) (*Index, error) {
	x := &Index{path: path, dir: dir, note: note, suspect: map[string]bool{}}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the log's index: %w", err)
	}
	c, err := x.open()
	if isDamage(err) {
		err = x.rebuild(err)
	} else if err == nil {
		x.idle = append(x.idle, c)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the log's index: %w", err)
	}
	return x, nil
}

// Close closes the index, when an update that goes on is done. A search that goes on is not waited for: it comes to its end, and closes
// what it uses.
func (x *Index) Close() error {
	x.following.Lock()
	defer x.following.Unlock()
	err := x.f.close()
	x.f = nil
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for _, c := range x.idle {
		err = errors.Join(err, c.database.close())
	}
	x.idle = nil
	return err
}

// open connects to the database, which it makes where it is missing.
func (x *Index) open() (*conn, error) {
	if err := x.plain(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(x.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	f.Close()
	if err != nil {
		return nil, err
	}
	name := x.path
	if runtime.GOOS != "windows" { // the files beside it get its mode
		name = "file:" + (&url.URL{Path: x.path}).EscapedPath() + "?modeof=" + url.QueryEscape(x.path)
	}
	c := &conn{info: info}
	err = whole(func() error {
		if c.database, err = openDatabase(name); err != nil {
			return err
		}
		return prepare(c.database)
	})
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// suffixes are those of the database's files.
var suffixes = [...]string{"", "-wal", "-shm", "-journal"}

// plain sees whether what is in the place of the database is an ordinary file, or nothing. SQLite would write through a link into
// what is somebody else's, and a pipe or a device is no index.
func (x *Index) plain() error {
	for _, suffix := range suffixes {
		info, err := os.Lstat(x.path + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%q: %w", x.path+suffix, errKind)
		}
	}
	return nil
}

// prepare makes the tables where there are none, and sees whether those that are there are ours.
func prepare(c *database) (err error) {
	if err := c.exec("PRAGMA journal_mode = wal; PRAGMA synchronous = normal; PRAGMA temp_store = memory; PRAGMA trusted_schema = off"); err != nil {
		return err
	}
	if is, err := c.number("PRAGMA application_id"); err != nil || is != 0 {
		return errors.Join(err, ours(c))
	}
	end, err := c.begin()
	if err != nil {
		return err
	}
	defer end(&err)
	if n, err := c.number("SELECT count(*) FROM sqlite_schema"); err != nil || n > 0 { // another process was faster
		return errors.Join(err, ours(c))
	}
	return c.exec(tables + fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", application, version))
}

// ours reports whether the tables are those of this version.
func ours(c *database) error {
	app, err := c.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	v, err := c.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	if app != application || v != version {
		return errVersion
	}
	return nil
}

var (
	errVersion = errors.New("it is of another version")
	errKind    = errors.New("it is no ordinary file")
)

// close closes the connection, whatever it was doing.
func (c *conn) close() {
	if c != nil && c.database != nil {
		whole(c.database.close)
	}
}

// rebuild throws the database away. The next update fills a new one.
func (x *Index) rebuild(why error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed { // by a search that goes on, and nobody would close what it opens
		return os.ErrClosed
	}
	for _, c := range x.idle {
		c.close()
	}
	x.idle, x.suspect = nil, map[string]bool{}
	x.builds++
	for _, suffix := range suffixes {
		if err := os.Remove(x.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%v, and is not replaced: %w", why, err)
		}
	}
	c, err := x.open()
	if err != nil {
		return err
	}
	x.idle = append(x.idle, c)
	if !errors.Is(why, errTidy) {
		x.note(fmt.Sprintf("the log's index is built anew: %v", why))
	}
	return nil
}

// timesBuilt is how often the index was built anew.
func (x *Index) timesBuilt() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.builds
}

// read runs f with a connection, within one transaction, so that it sees one state. When the database turns out to be damaged it
// is thrown away, and f runs once more on an empty one.
func (x *Index) read(ctx context.Context, f func(c *database) error) error {
	for again := true; ; again = false {
		c, err := x.take()
		if err == nil {
			err = whole(func() (err error) {
				defer c.interruptible(ctx)()
				defer c.beginRead()(&err)
				return f(c.database)
			})
			x.give(c, err)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case again && isDamage(err):
			if err := x.rebuild(err); err != nil {
				return fmt.Errorf("building the log's index anew: %w", err)
			}
		case err != nil:
			return fmt.Errorf("reading the log's index: %w", err)
		default:
			return nil
		}
	}
}

// take returns a connection for one search.
func (x *Index) take() (*conn, error) {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return nil, os.ErrClosed
	}
	var c *conn
	if n := len(x.idle); n > 0 {
		c, x.idle = x.idle[n-1], x.idle[:n-1]
	}
	x.mu.Unlock()
	if c != nil && x.current(c) {
		return c, nil
	}
	c.close()
	return x.open()
}

func (x *Index) give(c *conn, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if isDamage(err) || x.closed || len(x.idle) >= keep {
		c.close()
		return
	}
	x.idle = append(x.idle, c)
}

// current reports whether the database of c still is the one at the index's place: another process may have thrown it away.
func (x *Index) current(c *conn) bool {
	info, err := os.Lstat(x.path)
	return err == nil && os.SameFile(info, c.info)
}
