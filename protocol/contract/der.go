package contract

import (
	"bytes"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// The identifier octets in a SignedData.
const (
	tagInteger         = 0x02
	tagOctets          = 0x04
	tagNull            = 0x05
	tagOID             = 0x06
	tagUTCTime         = 0x17
	tagGeneralizedTime = 0x18
	tagSequence        = 0x30
	tagSet             = 0x31
	tagContext0        = 0xa0 // [0], constructed
)

// fields reads the members of a DER value one after another. It keeps the first error;
// after it all reads return nothing. Results share memory with the value.
type fields struct {
	rest []byte
	err  error
}

// next reads a member with the given identifier octet: all its octets and its content.
func (f *fields) next(tag byte) (full, content []byte) {
	if f.err != nil {
		return nil, nil
	}
	if !f.is(tag) {
		f.err = fmt.Errorf("want a member with tag %#02x, have % .1x", tag, f.rest[:min(len(f.rest), 1)])
		return nil, nil
	}
	head, size, err := measure(f.rest)
	if err != nil {
		f.err = err
		return nil, nil
	}
	full = f.rest[: head+size : head+size]
	f.rest = f.rest[head+size:]
	return full, full[head:]
}

// highTag in an identifier octet means that the tag's number follows in further octets.
const highTag = 0x1f

// measure returns the number of octets before and in the content of the first value of
// b. It accepts the same values as encoding/asn1, which refuses indefinite and needlessly
// long lengths, but reads the common ones without it.
func measure(b []byte) (head, size int, err error) {
	if len(b) < 2 || b[0]&highTag == highTag || b[1] > 0x82 {
		var v asn1.RawValue
		_, err := asn1.Unmarshal(b, &v)
		return len(v.FullBytes) - len(v.Bytes), len(v.Bytes), err
	}
	head, size, least := 2, int(b[1]), 0
	if size >= 0x80 { // the length takes several octets
		least = 0x80
		if size == 0x82 {
			least = 0x100
		}
		head += size - 0x80
		size = 0
		for _, c := range b[2:min(head, len(b))] {
			size = size<<8 | int(c)
		}
	}
	if head > len(b) || size < least || size > len(b)-head {
		return 0, 0, fmt.Errorf("a value with a length of %d, but only %d bytes are left", size, len(b))
	}
	return head, size, nil
}

// is reports whether a member with the given identifier octet follows.
func (f *fields) is(tag byte) bool { return f.err == nil && len(f.rest) > 0 && f.rest[0] == tag }

// within reads all members of the next member.
func (f *fields) within(tag byte, read func(*fields)) {
	_, content := f.next(tag)
	if f.err != nil {
		return
	}
	rest := f.rest
	f.rest = content
	read(f)
	_ = f.end() // it stays in f
	f.rest = rest
}

// end returns the first error. A remaining member is an error.
func (f *fields) end() error {
	if f.err == nil && len(f.rest) > 0 {
		f.err = fmt.Errorf("%d bytes too many", len(f.rest))
	}
	return f.err
}

// set reads the members of a SET OF, 1..most in their order, as whole values.
func (f *fields) set(tag byte, most int) (members [][]byte) {
	f.within(tag, func(f *fields) {
		for len(f.rest) > 0 && f.err == nil {
			if len(members) == most {
				f.err = fmt.Errorf("more than %d members in a set", most)
				return
			}
			full, _ := f.next(f.rest[0])
			if n := len(members); n > 0 && bytes.Compare(members[n-1], full) > 0 {
				f.err = errors.New("set out of order")
			}
			members = append(members, full)
		}
	})
	if f.err == nil && len(members) == 0 {
		f.err = errors.New("empty set")
	}
	return members
}

func (f *fields) oid() objectID {
	full, content := f.next(tagOID)
	if f.err != nil {
		return ""
	}
	for _, id := range knownObjects {
		if string(content) == string(id) {
			return id
		}
	}
	var numbers asn1.ObjectIdentifier
	_, f.err = asn1.Unmarshal(full, &numbers) // only to check the form
	return objectID(content)
}

func (f *fields) integer() *big.Int {
	full, content := f.next(tagInteger)
	n := new(big.Int)
	if f.err != nil {
		return n
	}
	if len(content) > 0 && content[0] > 0 && content[0] < 0x80 { // shortest form, not negative
		return n.SetBytes(content)
	}
	_, f.err = asn1.Unmarshal(full, &n)
	return n
}

// version reads a version number, which must be cmsVersion.
func (f *fields) version() {
	if _, n := f.next(tagInteger); f.err == nil && (len(n) != 1 || n[0] != cmsVersion) {
		f.err = fmt.Errorf("version %x, want %d", n, cmsVersion)
	}
}

// algorithm reads an AlgorithmIdentifier whose parameters are absent or NULL.
func (f *fields) algorithm() (id objectID) {
	f.within(tagSequence, func(f *fields) {
		id = f.oid()
		if f.is(tagNull) {
			f.next(tagNull)
		}
	})
	return id
}

// time reads a member with encoding/asn1, unless it has the usual form YYMMDDhhmmssZ.
func (f *fields) time() (t time.Time) {
	full, content := f.next(f.rest[0])
	if f.err != nil {
		return t
	}
	if full[0] == tagUTCTime && len(content) == len(utcTime) && len(bytes.Trim(content, "0123456789")) == 1 {
		if t, err := time.Parse(utcTime, string(content)); err == nil && t.Year() < 2050 {
			return t
		}
	}
	_, f.err = asn1.Unmarshal(full, &t)
	return t
}
