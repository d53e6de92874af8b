package index

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Class is the class of a machine's size: the logarithm of its cores to base 4.
func Class(cores int) int { return min((bits.Len64(uint64(max(cores, 1)))-1)/2, message.MaxClass) }

// Bits is by how many bits of the fingerprint a class with so many records is split.
func Bits(count int) int {
	b := 0
	for b < message.MaxShardBits && count > ShardSize<<b {
		b++
	}
	return b
}

// Prefix is the number that the first bits of a fingerprint write.
func Prefix(fingerprint string, n int) int {
	const digits = "abcdefghijklmnopqrstuvwxyz234567"
	p := 0
	for i := 0; i*5 < n && i < len(fingerprint); i++ {
		p = p<<5 | max(strings.IndexByte(digits, fingerprint[i]), 0)
	}
	return p >> (max(n+4, 0)/5*5 - n)
}

// Home is an agent that keeps an index, and the authority that certified it.
type Home struct {
	ID     protocol.AgentID
	Issuer string
}

// Place returns the n homes of a shard, best first: those with the highest weights
// (rendezvous hashing), no two of an issuer while there are other issuers. A home that
// comes takes over shards from all others alike; one that goes leaves its own to all.
func Place(shard message.Shard, homes []Home, n int) []protocol.AgentID {
	type weighed struct {
		Home
		weight uint64
	}
	list := make([]weighed, len(homes))
	for i, h := range homes {
		list[i] = weighed{h, weight(shard, h.ID)}
	}
	slices.SortFunc(list, func(a, b weighed) int { // equal weights: the smaller ID first
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.ID, b.ID))
	})
	var first, rest []protocol.AgentID
	issuers := map[string]bool{}
	for _, h := range list {
		if issuers[h.Issuer] {
			rest = append(rest, h.ID)
			continue
		}
		issuers[h.Issuer] = true
		first = append(first, h.ID)
	}
	first = append(first, rest...)
	return first[:min(n, len(first))]
}

func weight(s message.Shard, home protocol.AgentID) uint64 {
	b := make([]byte, 0, 128)
	b = append(b, s.Terms.Bank.Fingerprint()...)
	b = append(b, s.Terms.Currency...)
	b = append(b, 0, byte(s.Class), byte(s.Bits))
	b = binary.BigEndian.AppendUint32(b, uint32(s.Prefix))
	return hashed(append(b, home.Fingerprint()...))
}

// hashed is the first part of a SHA-256.
func hashed(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

// lot is a number that only the salt and the name decide.
func lot(salt uint64, name string) uint64 {
	return hashed(append(binary.BigEndian.AppendUint64(make([]byte, 0, 64), salt), name...))
}
