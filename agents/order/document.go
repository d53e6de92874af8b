package order

import (
	"errors"
	"time"

	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/rfql"
)

// BuyingTime is how long a purchase takes at most before its job could start.
const BuyingTime = 10 * time.Second

// Document reads an RFQL document that can be bought now. If a request has neither wall time nor
// start, the current time is written in as its start, so that all sites read the same slot.
func Document(text []byte, path string) (b []byte, doc rfql.Document, startNow bool, err error) {
	draft, _, err := rfql.Read(text)
	if err != nil {
		return nil, doc, false, DocumentError(path, err)
	}
	doc, err = rfql.Check(draft, time.Now().Add(BuyingTime))
	if err != nil {
		return nil, doc, false, DocumentError(path, err)
	}
	for _, q := range draft.Requests {
		if q.Wall == 0 && q.NotBefore.IsZero() {
			return doc.XML(), doc, true, nil
		}
	}
	return text, doc, false, nil
}

// DocumentError is an error with one line per fault of a file.
func DocumentError(path string, err error) error {
	var faults rfql.Faults
	if errors.As(err, &faults) {
		hint := "'ramp rfql show " + words.ShellWord(path) + "' prints how it was read"
		if len(faults.Of(rfql.Form)) > 0 { // it could not be read
			hint = "'ramp rfql new --help' shows how to make a document from flags; docs/RFQL.md lists the terms"
		}
		return &exit.Error{Code: exit.Usage, Err: faultsIn{faults, path}, Hint: hint, InRun: exit.RunData}
	}
	return exit.Fail(exit.Usage, "", "%s: %w", path, err)
}

type faultsIn struct {
	faults interface {
		error
		In(path string) string
	}
	path string
}

func (f faultsIn) Error() string { return f.faults.In(f.path) }

func (f faultsIn) Unwrap() error { return f.faults }
