package contract

import (
	"math/big"
	"time"
)

// The internals that package contract_test uses.

func Measure(b []byte) (head, size int, err error) { return measure(b) }

// ReadOID is the numbers with dots between.
func ReadOID(b []byte) (string, error) {
	f := fields{rest: b}
	return f.oid().String(), f.end()
}

func ReadInteger(b []byte) (*big.Int, error) {
	f := fields{rest: b}
	return f.integer(), f.end()
}

func ReadTime(b []byte) (time.Time, error) {
	f := fields{rest: b}
	return f.time(), f.end()
}

// KnownObjects are the object identifiers that are known, in DER and in numbers.
func KnownObjects() map[string][]byte {
	all := make(map[string][]byte)
	for _, id := range knownObjects {
		var w writer
		w.object(id)
		all[id.String()] = w.bytes()
	}
	return all
}
