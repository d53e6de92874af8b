package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/rfql"
)

// buyingTime is how long a purchase takes at most before its job could start.
const buyingTime = 10 * time.Second

// ReadRequest reads an RFQL document that can be bought now. If a request has neither wall time
// nor start, the current time is written in as its start, so that all sites read the same slot.
func ReadRequest(c *cobra.Command, path string) (b []byte, doc rfql.Document, startNow bool, err error) {
	if b, err = words.ReadInput(c.Context(), c.InOrStdin(), path, protocol.MaxDocument); err != nil {
		return nil, doc, false, err
	}
	return CheckRequest(b, path)
}

// CheckRequest is ReadRequest for a text that was read already.
func CheckRequest(text []byte, path string) (b []byte, doc rfql.Document, startNow bool, err error) {
	draft, _, err := rfql.Read(text)
	if err != nil {
		return nil, doc, false, RfqlError(path, err)
	}
	doc, err = rfql.Check(draft, time.Now().Add(buyingTime))
	if err != nil {
		return nil, doc, false, RfqlError(path, err)
	}
	for _, q := range draft.Requests {
		if q.Wall == 0 && q.NotBefore.IsZero() {
			return doc.XML(), doc, true, nil
		}
	}
	return text, doc, false, nil
}

// RfqlError is an error with one line per fault of a file.
func RfqlError(path string, err error) error {
	var faults rfql.Faults
	if errors.As(err, &faults) {
		hint := "'ramp rfql show " + words.ShellWord(path) + "' prints how it was read"
		if len(faults.Of(rfql.Form)) > 0 { // it could not be read
			hint = "'ramp rfql new --help' shows how to make a document from flags; docs/RFQL.md lists the terms"
		}
		return &exit.Error{Code: exit.Usage, Err: faultsIn{faults, path}, Hint: hint}
	}
	return exit.Fail(exit.Usage, "", "%s: %w", path, err)
}

// faultsIn are the faults of a document in a file.
type faultsIn struct {
	faults rfql.Faults
	path   string
}

func (f faultsIn) Error() string { return f.faults.In(f.path) }

func (f faultsIn) Unwrap() error { return f.faults }
