package auction

import (
	"fmt"
	"time"

	"ramp/rfql"
)

// Document is a buyer's document as parsed. It is read-only, so that several sellers may share one.
type Document struct {
	Hash      string // hex SHA-256 of the bytes, as in a bundle
	SameStart bool   // all units begin at the same second
	Requests  []rfql.Request
}

// Reader reads a buyer's document. The same bytes give the same Document.
type Reader func(document []byte) (Document, error)

// Read is a Reader that remembers nothing.
func Read(document []byte) (Document, error) {
	d, err := rfql.Parse(document, time.Time{})
	switch {
	case err != nil:
		return Document{}, err
	case !d.Priced():
		return Document{}, fmt.Errorf("a request without %s, the most that it pays", rfql.CPUHourCost)
	}
	return Document{Hash: documentHash(document), SameStart: d.SameStart(), Requests: d.Requests()}, nil
}

// Bounds of what NewReader remembers.
const (
	rememberedDocuments = 64
	rememberedBytes     = 256 << 10 // of their text
)

// NewReader returns a Reader that remembers documents: those who ask for the same at once,
// or again, send the same bytes. It belongs to one goroutine.
func NewReader() Reader {
	known, bytes := map[string]Document{}, 0
	return func(document []byte) (Document, error) {
		if d, ok := known[string(document)]; ok {
			return d, nil
		}
		d, err := Read(document)
		if err != nil || len(document) > rememberedBytes {
			return d, err
		}
		if bytes += len(document); bytes > rememberedBytes || len(known) == rememberedDocuments {
			clear(known)
			bytes = len(document)
		}
		known[string(document)] = d
		return d, nil
	}
}
