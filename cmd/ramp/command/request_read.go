package command

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol"
	"ramp/rfql"
)

// buyingTime is what a purchase takes at most before a job could start.
const buyingTime = 10 * time.Second

// readRequest reads an RFQL document that may be bought now. A request without
// wall time and start gets its start written in, so that all who read it mean
// the same slot.
func readRequest(c *cobra.Command, path string) (b []byte, doc rfql.Document, startNow bool, err error) {
	if b, err = readInput(c, path, protocol.MaxDocument); err != nil {
		return nil, doc, false, err
	}
	return checkRequest(b, path)
}

func checkRequest(text []byte, path string) (b []byte, doc rfql.Document, startNow bool, err error) {
	draft, _, err := rfql.Read(text)
	if err != nil {
		return nil, doc, false, rfqlError(path, err)
	}
	doc, err = rfql.Check(draft, time.Now().Add(buyingTime))
	if err != nil {
		return nil, doc, false, rfqlError(path, err)
	}
	for _, q := range draft.Requests {
		if q.Wall == 0 && q.NotBefore.IsZero() {
			return doc.XML(), doc, true, nil
		}
	}
	return text, doc, false, nil
}

// rfqlError is one line per fault, with the file.
func rfqlError(path string, err error) error {
	var faults rfql.Faults
	if errors.As(err, &faults) {
		hint := "'ramp rfql show " + shellWord(path) + "' prints what was understood"
		if len(faults.Of(rfql.Form)) > 0 { // nothing was
			hint = "'ramp rfql new --help' tells how flags make a document; docs/RFQL.md lists the terms"
		}
		return &exitError{code: exitUsage, err: faultsIn{faults, path}, hint: hint}
	}
	return fail(exitUsage, "", "%s: %w", path, err)
}

// faultsIn are the faults of a document in a file.
type faultsIn struct {
	faults rfql.Faults
	path   string
}

func (f faultsIn) Error() string { return f.faults.In(f.path) }
func (f faultsIn) Unwrap() error { return f.faults }

// readInput reads a file, or standard input for "-", up to a bound. An interrupt ends it:
// nobody may ever write to a pipe or a terminal that is read.
func readInput(c *cobra.Command, path string, most int64) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	read := make(chan result, 1)
	go func() { // it is left behind when the program ends
		b, err := readAll(c.InOrStdin(), path, most)
		read <- result{b, err}
	}()
	select {
	case r := <-read:
		return r.b, r.err
	case <-c.Context().Done():
		return nil, fail(exitFailed, "", "%s: interrupted, it was not read to its end", inputName(path))
	}
}

func inputName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

func readAll(in io.Reader, path string, most int64) ([]byte, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fail(exitUsage, "", "%w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	if int64(len(b)) > most {
		return nil, fail(exitUsage, "is it the right file?", "%s: more than %d bytes, the most that is read", path, most)
	}
	return b, nil
}
