package contract

import (
	"encoding/asn1"
	"math/big"
	"time"

	"ramp/protocol"
)

// What the tests of package contract_test see of the inside.

// DecodeSlowly is Decode by way of encoding/json alone.
func DecodeSlowly(octets []byte) (protocol.Bundle, error) {
	b, err := decode[bundle](octets)
	return protocol.Bundle(b), err
}

// EncodeSlowly is Encode without its rules, likewise.
func EncodeSlowly(b protocol.Bundle) ([]byte, error) { return marshalSlowly(bundle(b)) }

// EncodeQuickly is how a bundle is written without encoding/json, if it can be.
func EncodeQuickly(b protocol.Bundle) ([]byte, bool) { return appendBundle(nil, bundle(b)) }

// Quickly reports whether octets are read without encoding/json.
func Quickly(octets []byte) bool { _, ok := quickBundle(octets); return ok }

func ReadTime(b []byte) (t time.Time, err error) {
	f := fields{rest: b}
	if len(b) > 0 {
		t = f.time()
	}
	return t, f.end()
}

func Measure(b []byte) (head, size int, err error) { return measure(b) }

func ReadOID(b []byte) (asn1.ObjectIdentifier, error) {
	f := fields{rest: b}
	return f.oid(), f.end()
}

func ReadInteger(b []byte) (*big.Int, error) {
	f := fields{rest: b}
	return f.integer(), f.end()
}
