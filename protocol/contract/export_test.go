package contract

import (
	"encoding/asn1"
	"math/big"
)

// What the tests of package contract_test see of the inside.

func Measure(b []byte) (head, size int, err error) { return measure(b) }

func ReadOID(b []byte) (asn1.ObjectIdentifier, error) {
	f := fields{rest: b}
	return f.oid(), f.end()
}

func ReadInteger(b []byte) (*big.Int, error) {
	f := fields{rest: b}
	return f.integer(), f.end()
}
