package logindex

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// database is a connection to SQLite. It is used by one goroutine at a time.
type database struct{ c *sqlite.Conn }

// openDatabase opens a database by its path or URI, and makes it where it is missing.
func openDatabase(name string) (*database, error) {
	c, err := sqlite.OpenConn(name, sqlite.OpenReadWrite, sqlite.OpenCreate, sqlite.OpenURI)
	if err != nil {
		return nil, fault(err)
	}
	c.SetBusyTimeout(patience)
	return &database{c}, nil
}

// close closes the connection. What was prepared on it is closed too, but for statements that are closed by themselves.
func (d *database) close() error { return fault(d.c.Close()) }

// exec runs statements that give nothing.
func (d *database) exec(sql string) error {
	for sql = strings.TrimSpace(sql); sql != ""; {
		s, rest, err := d.c.PrepareTransient(sql)
		if err != nil {
			return fault(err)
		}
		err = (&statement{s: s}).exec()
		if e := s.Finalize(); err == nil {
			err = fault(e)
		}
		if err != nil {
			return err
		}
		sql = strings.TrimSpace(sql[len(sql)-rest:])
	}
	return nil
}

// number is the one number that a statement gives.
func (d *database) number(sql string) (int64, error) {
	s, err := d.query(sql)
	if err != nil {
		return 0, err
	}
	defer s.close()
	s.step()
	return s.int(0), s.err
}

// query prepares a statement, which is closed.
func (d *database) query(sql string) (*statement, error) {
	s, _, err := d.c.PrepareTransient(sql)
	return &statement{s: s}, fault(err)
}

// prepare prepares a statement that lives as long as the connection.
func (d *database) prepare(sql string) (*statement, error) {
	s, err := d.c.Prepare(sql)
	return &statement{s: s}, fault(err)
}

// interruptible lets statements end with ctx, until the function that it returns is called.
func (d *database) interruptible(ctx context.Context) (end func()) {
	d.c.SetInterrupt(ctx.Done())
	return func() { d.c.SetInterrupt(nil) }
}

// begin begins a transaction that writes. End ends it: it is undone when there is an error.
func (d *database) begin() (end func(*error), err error) {
	end, err = sqlitex.ImmediateTransaction(d.c)
	return faults(end), fault(err)
}

// beginRead begins a transaction that sees one state.
func (d *database) beginRead() (end func(*error)) { return faults(sqlitex.Transaction(d.c)) }

// faults makes an end of a transaction, which is to be deferred, of one of the library.
func faults(end func(*error)) func(*error) {
	return func(err *error) {
		if p := recover(); p != nil {
			fell := errPanic
			end(&fell)
			panic(p)
		}
		failed := *err != nil
		if end(err); !failed {
			*err = fault(*err)
		}
	}
}

// statement is a prepared statement. After an error it gives nothing more.
type statement struct {
	s   *sqlite.Stmt
	err error
}

func (s *statement) close() error { return fault(s.s.Finalize()) }

// step goes to the next row. When there is none, or after an error, the statement is as before the first.
func (s *statement) step() bool {
	if s.err != nil {
		return false
	}
	row, err := s.s.Step()
	s.err = fault(err)
	return row
}

// reset goes back to before the first row, and forgets the error, which it returns.
func (s *statement) reset() error {
	err := s.err
	if s.err = nil; err == nil {
		err = fault(s.s.Reset())
	}
	return err
}

// exec runs a statement of which the rows do not matter.
func (s *statement) exec() error {
	for s.step() {
	}
	return s.reset()
}

// bind binds a parameter, the first of which is 1, to an int64, bool, float64, string or []byte, or to nil.
func (s *statement) bind(i int, value any) {
	switch v := value.(type) {
	case nil:
		s.s.BindNull(i)
	case int64:
		s.s.BindInt64(i, v)
	case bool:
		s.s.BindBool(i, v)
	case float64:
		s.s.BindFloat(i, v)
	case string:
		s.s.BindText(i, v)
	case []byte:
		s.s.BindBytes(i, v)
	default:
		panic(fmt.Sprintf("bug: binding a %T", v))
	}
}

// int, float and text are a column of the row, the first of which is 0.
func (s *statement) int(col int) int64     { return s.s.ColumnInt64(col) }
func (s *statement) float(col int) float64 { return s.s.ColumnFloat(col) }
func (s *statement) text(col int) string   { return s.s.ColumnText(col) }

// blob is a column of the row, in buf where it fits.
func (s *statement) blob(col int, buf []byte) []byte {
	n := s.s.ColumnLen(col)
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	return buf[:s.s.ColumnBytes(col, buf[:n])]
}

// sqliteError is an error of SQLite.
type sqliteError struct{ error }

func (e sqliteError) Unwrap() error { return e.error }

func fault(err error) error {
	if err == nil {
		return nil
	}
	return sqliteError{err}
}

// errPanic is a database on which SQLite fell.
var errPanic = errors.New("it cannot be read")

// whole runs f. What a damaged database makes f do is an error like others.
func whole(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return f()
}

// isDamage reports whether err says that the database is not what it should be. Our statements are fixed, so one that is wrong
// is a sign of that.
func isDamage(err error) bool {
	if e, ok := errors.AsType[sqliteError](err); ok {
		code := sqlite.ErrCode(e)
		if code == sqlite.ResultIOErrShortRead {
			return true
		}
		switch code.ToPrimary() {
		case sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultError, sqlite.ResultFormat, sqlite.ResultMismatch, sqlite.ResultConstraint:
			return true
		}
	}
	return errors.Is(err, errVersion) || errors.Is(err, errKind) || errors.Is(err, errPanic)
}
