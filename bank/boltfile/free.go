package boltfile

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// free marks the free pages, and fails if a page is neither free nor reached.
func (w *pageWalk) free(id uint64) error {
	list, behind, err := w.freeList(id)
	if err != nil {
		return err
	}
	if !allZero(behind) {
		return errors.New("list of free pages: there are octets behind its end")
	}
	if err := w.eachFree(list, w.mark); err != nil {
		return err
	}
	for p := range w.high {
		if !w.seen.has(p) {
			return fmt.Errorf("page %d is neither reached nor free", p)
		}
	}
	return nil
}

// freeList reads the list of free pages, 8 bytes for each, and the octets behind it.
func (w *pageWalk) freeList(id uint64) (list, behind []byte, err error) {
	b, err := w.page(id)
	if err != nil {
		return nil, nil, fmt.Errorf("list of free pages: %w", err)
	}
	count, at := uint64(binary.LittleEndian.Uint16(b[countOf:])), uint64(pageHeader)
	if count == manyFree {
		count, at = binary.LittleEndian.Uint64(b[at:]), at+8
	}
	if binary.LittleEndian.Uint16(b[flagsOf:]) != freeFlag || count > (uint64(len(b))-at)/8 {
		return nil, nil, fmt.Errorf("list of free pages: %d entries on page %d, which is too small or of another kind", count, id)
	}
	return b[at : at+8*count], b[at+8*count:], nil
}

// eachFree calls f with the pages of a list, which are in order.
func (w *pageWalk) eachFree(list []byte, f func(page uint64) error) error {
	last := uint64(1)
	for at := 0; at < len(list); at += 8 {
		p := binary.LittleEndian.Uint64(list[at:])
		if p <= last || p >= w.high {
			return fmt.Errorf("list of free pages: page %d after %d, there are 2..%d", p, last, w.high-1)
		}
		last = p
		if err := f(p); err != nil {
			return fmt.Errorf("list of free pages: %w", err)
		}
	}
	return nil
}
