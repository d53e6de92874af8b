package contract

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// maxAttributes bounds the signed attributes; OpenSSL writes four.
const maxAttributes = 16

// attributes are the signed attributes that matter. Others are let be.
type attributes struct {
	seen        []objectID
	contentType objectID
	digest      []byte
	signed      time.Time
}

// checkAttributes holds that a set of signed attributes is of content with this
// digest, each of one value and once. It returns the signing time, or zero.
func checkAttributes(set, digest []byte) (signed time.Time, err error) {
	var a attributes
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
		f.value(f.rest[0], &a.signed)
	default:
		f.next(f.rest[0])
	}
}
