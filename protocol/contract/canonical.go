package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"ramp/protocol"
)

// MaxOctets bounds a document in bytes; a bundle of MaxUnits units with the
// longest names allowed takes about half of it.
const MaxOctets = 256 << 10

// usualOctets suffices for a document of one or two units, in bytes.
const usualOctets = 1 << 10

type document interface {
	// validate checks the rules that do not depend on signer and time.
	validate() error
}

// Encode writes the canonical octets of a bundle, or returns ErrTerms if the bundle
// breaks a rule. Times are written in UTC.
func Encode(b protocol.Bundle) ([]byte, error) { return encode(inUTC(b)) }

// Decode reads canonical octets, at most MaxOctets. It refuses octets that Encode would
// not write with ErrMalformed or ErrTerms.
func Decode(octets []byte) (protocol.Bundle, error) {
	b, plain := decodePlain(octets)
	if plain {
		return protocol.Bundle(b), b.validate()
	}
	b, err := decode[bundle](octets)
	return protocol.Bundle(b), err
}

// ID names the contract whose canonical octets are given.
func ID(octets []byte) protocol.ContractID {
	sum := sha256.Sum256(octets)
	return protocol.ContractID(hex.EncodeToString(sum[:]))
}

func encode(d document) ([]byte, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	octets, err := marshal(d, usualOctets)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if len(octets) > MaxOctets {
		return nil, fmt.Errorf("document of %d bytes, at most %d: %w", len(octets), MaxOctets, ErrTerms)
	}
	return octets, nil
}

// marshal writes <, > and & without the escapes of encoding/json. size is the expected
// number of bytes.
func marshal(d document, size int) ([]byte, error) {
	if b, is := d.(bundle); is {
		if octets, plain := b.appendPlain(size); plain {
			return octets, nil
		}
	}
	buf := bytes.NewBuffer(make([]byte, 0, size+1))
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// decode reads a document of type D and compares it with its canonical form. That
// refuses duplicate, unknown, missing and misspelt fields, space, other forms of a
// number or a time, and trailing bytes.
func decode[D document](octets []byte) (D, error) {
	var d, none D
	if len(octets) > MaxOctets {
		return none, fmt.Errorf("document of %d bytes, at most %d: %w", len(octets), MaxOctets, ErrMalformed)
	}
	if err := json.Unmarshal(octets, &d); err != nil {
		return none, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	again, err := marshal(d, len(octets))
	if err != nil {
		return none, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if !bytes.Equal(again, octets) {
		return none, fmt.Errorf("%w: not the canonical form", ErrMalformed)
	}
	return d, d.validate()
}
