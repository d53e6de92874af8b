package contract

import "encoding/asn1"

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

// object writes one of the object identifiers of this package.
func object(id asn1.ObjectIdentifier) []byte {
	content := make([]byte, 1, 16)
	content[0] = byte(id[0]*40 + id[1])
	for _, v := range id[2:] {
		shift := 0
		for v>>(shift+7) > 0 {
			shift += 7
		}
		for ; shift > 0; shift -= 7 {
			content = append(content, 0x80|byte(v>>shift))
		}
		content = append(content, byte(v&0x7f))
	}
	return value(tagOID, content)
}

// identifier writes an AlgorithmIdentifier; parameters may be nil, for none.
func identifier(id asn1.ObjectIdentifier, parameters []byte) []byte {
	return value(tagSequence, object(id), parameters)
}
