package contract

import "math/big"

// value writes a DER value with the given identifier octet, whose content is the
// parts one after another.
func value(tag byte, parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	b := appendLength(append(make([]byte, 0, size+6), tag), size)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// appendLength writes a length in as few octets as can be.
func appendLength(b []byte, n int) []byte {
	if n < 0x80 {
		return append(b, byte(n))
	}
	octets := 1
	for rest := n >> 8; rest > 0; rest >>= 8 {
		octets++
	}
	b = append(b, 0x80|byte(octets))
	for shift := 8 * (octets - 1); shift >= 0; shift -= 8 {
		b = append(b, byte(n>>shift))
	}
	return b
}

// object writes an object identifier.
func object(id objectID) []byte { return value(tagOID, []byte(id)) }

// integer writes a number that is not negative.
func integer(n *big.Int) []byte {
	b := n.Bytes()
	if len(b) == 0 || b[0] >= 0x80 {
		b = append([]byte{0}, b...) // without it: negative
	}
	return value(tagInteger, b)
}

// identifier writes an AlgorithmIdentifier; parameters may be nil, for none.
func identifier(id objectID, parameters []byte) []byte {
	return value(tagSequence, object(id), parameters)
}
