package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	fast "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"ramp/protocol"
)

// MaxOctets bounds a document in bytes; a bundle of MaxUnits units with the
// longest names allowed takes about half of it.
const MaxOctets = 256 << 10

// usualOctets holds a document of a unit or two, in bytes.
const usualOctets = 1 << 10

// document is what can be signed.
type document interface {
	// validate holds the rules that do not depend on who signs, and when.
	validate() error
}

// Encode writes the canonical octets of a bundle; what breaks a rule of bundles
// is ErrTerms. Times are written in UTC.
func Encode(b protocol.Bundle) ([]byte, error) { return encode(inUTC(b)) }

// Decode reads canonical octets, at most MaxOctets. Whatever Encode would not
// write is refused: ErrMalformed or ErrTerms.
func Decode(octets []byte) (protocol.Bundle, error) {
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

// marshal writes <, > and & as themselves, where encoding/json would escape them
// for browsers. It expects about so many bytes.
func marshal(d document, size int) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, size+1))
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// decode reads a document of type D. Comparing with what would be written
// refuses at once double, unknown, missing and misspelt fields, space, other
// forms of a number or a time, and trailing bytes. It also makes it safe to read by
// another library than writes, in half the time of encoding/json.
func decode[D document](octets []byte) (D, error) {
	var d, none D
	if len(octets) > MaxOctets {
		return none, fmt.Errorf("document of %d bytes, at most %d: %w", len(octets), MaxOctets, ErrMalformed)
	}
	if err := fast.Unmarshal(octets, &d, jsonv1.FormatDurationAsNano(true)); err != nil {
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
