package contract

import (
	"bytes"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
)

// The identifier octets of DER that are read here.
const (
	tagInteger  = 0x02
	tagOctets   = 0x04
	tagNull     = 0x05
	tagOID      = 0x06
	tagSequence = 0x30
	tagSet      = 0x31
	tagContext0 = 0xa0 // [0], constructed
)

// fields reads the members of a DER value one after another. The first error
// stays, and what is read after it is empty. What is read shares memory with the
// value.
type fields struct {
	rest []byte
	err  error
}

// next reads a member with the given identifier octet: all its octets and its
// content. encoding/asn1 refuses indefinite and needlessly long lengths.
func (f *fields) next(tag byte) (full, content []byte) {
	if f.err != nil {
		return nil, nil
	}
	if !f.is(tag) {
		f.err = fmt.Errorf("want a member with tag %#02x, have % .1x", tag, f.rest[:min(len(f.rest), 1)])
		return nil, nil
	}
	var v asn1.RawValue
	f.rest, f.err = asn1.Unmarshal(f.rest, &v)
	return v.FullBytes, v.Bytes
}

// is reports whether another member follows, and has the given identifier octet.
func (f *fields) is(tag byte) bool { return f.err == nil && len(f.rest) > 0 && f.rest[0] == tag }

// within reads the members of the next member, all of them.
func (f *fields) within(tag byte, read func(*fields)) {
	_, content := f.next(tag)
	if f.err != nil {
		return
	}
	members := fields{rest: content}
	read(&members)
	f.err = members.end()
}

// end is the first error; it is one if a member is left.
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

func (f *fields) oid() (id asn1.ObjectIdentifier) {
	f.value(tagOID, &id)
	return id
}

func (f *fields) integer() *big.Int {
	n := new(big.Int)
	f.value(tagInteger, &n)
	return n
}

// version reads a version number, which must be the one that is written here.
func (f *fields) version() {
	if n := f.integer(); f.err == nil && n.Cmp(big.NewInt(cmsVersion)) != 0 {
		f.err = fmt.Errorf("version %s, want %d", n, cmsVersion)
	}
}

// algorithm reads an AlgorithmIdentifier whose parameters are absent or NULL.
func (f *fields) algorithm() (id asn1.ObjectIdentifier) {
	f.within(tagSequence, func(f *fields) {
		id = f.oid()
		if f.is(tagNull) {
			f.next(tagNull)
		}
	})
	return id
}

// value reads a member into a Go value, as encoding/asn1 does.
func (f *fields) value(tag byte, v any) {
	if full, _ := f.next(tag); f.err == nil {
		_, f.err = asn1.Unmarshal(full, v)
	}
}
