package boltfile

import (
	"encoding/binary"
	"fmt"
)

// rows are the elements of a page, and behind them their keys and values in the
// same order, without a gap.
type rows struct {
	b     []byte
	count int
	next  int // where the next row must begin
}

func rowsOf(b []byte) *rows {
	count := int(binary.LittleEndian.Uint16(b[countOf:]))
	return &rows{b, count, pageHeader + count*elementSize}
}

// element i: its four numbers, and its position.
func (r *rows) element(i int) (at int, n [4]uint32, err error) {
	at = pageHeader + i*elementSize
	if at+elementSize > len(r.b) {
		return 0, n, fmt.Errorf("row %d lies outside", i)
	}
	for j := range n {
		n[j] = binary.LittleEndian.Uint32(r.b[at+4*j:])
	}
	return at, n, nil
}

// take returns the next octets, which should begin pos bytes behind the element at at.
func (r *rows) take(at int, pos, size uint32) ([]byte, error) {
	from := at + int(pos)
	to := from + int(size)
	if from != r.next || to > len(r.b) {
		return nil, fmt.Errorf("%d bytes at %d lie outside, or not where the last ones end, %d", size, from, r.next)
	}
	r.next = to
	return r.b[from:to], nil
}

// end checks that nothing follows.
func (r *rows) end() error {
	if r.next > len(r.b) || !allZero(r.b[r.next:]) {
		return fmt.Errorf("there are octets behind the last row, which ends at %d", r.next)
	}
	return nil
}
