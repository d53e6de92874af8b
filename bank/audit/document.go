package audit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// DocumentVersion is the version of documents that this program writes and reads.
const DocumentVersion = 1

// Bounds of a document.
const (
	MaxDocument = 1 << 20               // octets
	maxEntries  = protocol.MaxUnits + 1 // a decision, and a refund of each unit
	maxRecord   = 64 << 10              // octets of one entry
	maxHead     = 64 << 10              // octets of one signed head
)

// Document is the proof that a bank answers with, and the content of the file proof.json: a signed
// head, entries with their paths to its root, and the proof that its log grew from an earlier one.
type Document struct {
	Version int      `json:"proof"`   // DocumentVersion
	Head    []byte   `json:"head"`    // DER, contract.OpenHead
	Entries []Proven `json:"entries"` // rising numbers
	From    uint64   `json:"from"`    // size of the earlier log; 0: no earlier log
	Growth  [][]byte `json:"growth"`  // hashes
}

// Proven is an entry and its path to the root.
type Proven struct {
	Number uint64   `json:"entry"`
	Record []byte   `json:"record"` // as the ledger stores it
	Path   [][]byte `json:"path"`   // hashes
}

// Encode writes a document.
func (d Document) Encode() ([]byte, error) {
	d.Version = DocumentVersion
	if d.Entries == nil {
		d.Entries = []Proven{}
	}
	if d.Growth == nil {
		d.Growth = [][]byte{}
	}
	if err := d.validate(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(d)
	if err == nil && len(b) > MaxDocument {
		err = fmt.Errorf("proof of %d bytes, at most %d", len(b), MaxDocument)
	}
	return b, err
}

// Decode reads a document, at most MaxDocument bytes. That it is well formed proves nothing yet.
func Decode(b []byte) (Document, error) {
	if len(b) > MaxDocument {
		return Document{}, fmt.Errorf("proof of %d bytes, at most %d", len(b), MaxDocument)
	}
	var d Document
	r := json.NewDecoder(bytes.NewReader(b))
	r.DisallowUnknownFields()
	if r.Decode(&d) != nil {
		return Document{}, fmt.Errorf("not a proof, or cut short")
	}
	if r.More() || d.Entries == nil || d.Growth == nil {
		return Document{}, fmt.Errorf("proof: a list is missing, or something follows it")
	}
	return d, d.validate()
}

func (d Document) validate() error {
	switch {
	case d.Version != DocumentVersion:
		return fmt.Errorf("proof has version %d, want %d", d.Version, DocumentVersion)
	case len(d.Head) == 0 || len(d.Head) > maxHead:
		return fmt.Errorf("proof with a head of %d bytes, want 1..%d", len(d.Head), maxHead)
	case len(d.Entries) > maxEntries:
		return fmt.Errorf("proof of %d entries, at most %d", len(d.Entries), maxEntries)
	}
	var last uint64
	for _, e := range d.Entries {
		if e.Number <= last || len(e.Record) > maxRecord {
			return fmt.Errorf("proof: entry %d with %d bytes after entry %d, want rising numbers and at most %d bytes", e.Number, len(e.Record), last, maxRecord)
		}
		last = e.Number
		if err := validPath(e.Path); err != nil {
			return err
		}
	}
	return validPath(d.Growth)
}

func validPath(path [][]byte) error {
	if len(path) > maxPath {
		return fmt.Errorf("proof: a path of %d hashes, at most %d", len(path), maxPath)
	}
	for _, h := range path {
		if len(h) != HashSize {
			return fmt.Errorf("proof: a hash of %d bytes, want %d", len(h), HashSize)
		}
	}
	return nil
}

// VerifyEntries checks every entry of the document against a head, which must be
// the document's, verified.
func (d Document) VerifyEntries(h contract.Head) error {
	for _, e := range d.Entries {
		if err := VerifyInclusion(h, e.Number, e.Record, e.Path); err != nil {
			return err
		}
	}
	return nil
}
