package ledger

import (
	"encoding/binary"
)

// chunkSize is the size of a piece of an archive; the longest outcome, one with
// MaxUnits refunds, is far below it.
const chunkSize = 64 << 10

// archive keeps recent outcomes in memory, oldest first, as they are stored.
// Hundreds of thousands of them as values with pointers would keep the garbage
// collector busier than the ledger is.
type archive struct {
	chunks [][]byte
	base   uint64 // number of the first chunk
	front  int    // offset of the oldest outcome in the first chunk
	index  map[contractKey]uint64
}

// add files an outcome as the newest. One that was there already counts as new.
func (a *archive) add(k contractKey, entry uint64, value []byte) {
	need := 12 + len(value)
	last := len(a.chunks) - 1
	if last < 0 || len(a.chunks[last])+need > chunkSize {
		a.chunks = append(a.chunks, make([]byte, 0, chunkSize))
		last++
	}
	c := a.chunks[last]
	a.index[k] = (a.base+uint64(last))*chunkSize + uint64(len(c))
	c = binary.BigEndian.AppendUint64(c, entry)
	c = binary.BigEndian.AppendUint32(c, uint32(len(value)))
	a.chunks[last] = append(c, value...)
}

// get decodes an outcome; nil: it is not there.
func (a *archive) get(k contractKey) *outcome {
	at, ok := a.index[k]
	if !ok {
		return nil
	}
	c := a.chunks[at/chunkSize-a.base][at%chunkSize:]
	_, o, err := decodeOutcome(string(c[:8]), c[12:][:binary.BigEndian.Uint32(c[8:])])
	if err != nil {
		panic(err) // it was encoded or decoded here before
	}
	return o
}

// oldest is the outcome that has been there for longest, and its time. There
// must be one.
func (a *archive) oldest() (contractKey, int64) {
	for {
		if a.front == len(a.chunks[0]) {
			a.chunks, a.front, a.base = a.chunks[1:], 0, a.base+1
			continue
		}
		c := a.chunks[0][a.front:]
		k, time := peekOutcome(c[12:])
		if at, ok := a.index[k]; ok && at == a.base*chunkSize+uint64(a.front) {
			return k, time
		}
		a.front += 12 + int(binary.BigEndian.Uint32(c[8:])) // dropped, or filed anew since
	}
}

func (a *archive) drop(k contractKey) { delete(a.index, k) }

func (a *archive) len() int { return len(a.index) }
