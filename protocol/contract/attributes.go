package contract

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// Bounds of the signed attributes. OpenSSL writes four, in about 220 bytes.
const (
	maxAttributes     = 16
	maxAttributeBytes = 2 << 10
)

// attributes are the relevant signed attributes. Others are ignored.
type attributes struct {
	seen        []objectID
	contentType objectID
	digest      []byte
	signed      time.Time
}

// checkAttributes checks that a set of signed attributes belongs to content with this digest, and
// that each attribute comes once and has one value. It returns the signing time or zero.
func checkAttributes(set, digest []byte) (signed time.Time, err error) {
	if len(set) > maxAttributeBytes { // they are signed and cannot be dropped
		return signed, fmt.Errorf("%w: signed attributes of %d bytes, at most %d", ErrMalformed, len(set), maxAttributeBytes)
	}
	a := attributes{seen: make([]objectID, 0, 4)}
	f := fields{rest: set}
	for _, der := range f.set(tagSet, maxAttributes) {
		one := fields{rest: der}
		one.within(tagSequence, a.read)
		if f.err == nil {
			f.err = one.end()
		}
	}
	switch {
	case f.end() != nil:
		return signed, fmt.Errorf("%w: signed attributes: %w", ErrMalformed, f.err)
	case a.contentType != oidData:
		return signed, fmt.Errorf("%w: signed content type is not data", ErrMalformed)
	case !bytes.Equal(a.digest, digest):
		return signed, fmt.Errorf("%w: the signed digest is not the content's", ErrSignature)
	}
	return a.signed, nil
}

func (a *attributes) read(f *fields) {
	id := f.oid()
	if slices.Contains(a.seen, id) {
		f.err = fmt.Errorf("attribute %s twice", id)
	}
	a.seen = append(a.seen, id)
	f.within(tagSet, func(f *fields) { a.readValue(id, f) })
}

func (a *attributes) readValue(id objectID, f *fields) {
	switch {
	case len(f.rest) == 0:
		f.err = fmt.Errorf("attribute %s without value", id)
	case id == oidContentType:
		a.contentType = f.oid()
	case id == oidMessageDigest:
		_, a.digest = f.next(tagOctets)
	case id == oidSigningTime:
		a.signed = f.time()
	default:
		f.next(f.rest[0])
	}
}
