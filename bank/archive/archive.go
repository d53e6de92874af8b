// Package archive keeps the values of rows in memory, oldest first, in their stored form. Hundreds
// of thousands of values with pointers would keep the garbage collector busier than a ledger is.
package archive

import "encoding/binary"

// chunkSize is the size of a piece of an archive; every value is far below it.
const chunkSize = 64 << 10

// Key names a value.
type Key [32]byte

// Archive is a queue of values that are found by their keys. Each has a number.
type Archive struct {
	chunks [][]byte
	base   uint64 // number of the first chunk
	front  int    // offset of the oldest value in the first chunk
	index  map[Key]uint64
}

// New is empty.
func New() *Archive { return &Archive{index: map[Key]uint64{}} }

// Add files a value as the newest, and replaces an earlier one of its key.
func (a *Archive) Add(k Key, number uint64, value []byte) {
	need := 12 + len(value)
	last := len(a.chunks) - 1
	if last < 0 || len(a.chunks[last])+need > chunkSize {
		a.chunks = append(a.chunks, make([]byte, 0, chunkSize))
		last++
	}
	c := a.chunks[last]
	a.index[k] = (a.base+uint64(last))*chunkSize + uint64(len(c))
	c = binary.BigEndian.AppendUint64(c, number)
	c = binary.BigEndian.AppendUint32(c, uint32(len(value)))
	a.chunks[last] = append(c, value...)
}

// Get is a value and its number, if it is there.
func (a *Archive) Get(k Key) (number uint64, value []byte, ok bool) {
	at, ok := a.index[k]
	if !ok {
		return 0, nil, false
	}
	c := a.chunks[at/chunkSize-a.base][at%chunkSize:]
	return binary.BigEndian.Uint64(c), c[12:][:binary.BigEndian.Uint32(c[8:])], true
}

// Oldest is the oldest value, whose key and time peek reads. The archive must not be empty.
func (a *Archive) Oldest(peek func(value []byte) (Key, int64)) (Key, int64) {
	for {
		if a.front == len(a.chunks[0]) {
			a.chunks, a.front, a.base = a.chunks[1:], 0, a.base+1
			continue
		}
		c := a.chunks[0][a.front:]
		k, time := peek(c[12:])
		if at, ok := a.index[k]; ok && at == a.base*chunkSize+uint64(a.front) {
			return k, time
		}
		a.front += 12 + int(binary.BigEndian.Uint32(c[8:])) // dropped, or filed anew since
	}
}

// Drop removes a value.
func (a *Archive) Drop(k Key) { delete(a.index, k) }

// Len is the number of values.
func (a *Archive) Len() int { return len(a.index) }
