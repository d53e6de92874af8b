package boltfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt keeps two descriptions of a file, on its first two pages, and uses the valid one
// with the higher transaction. So a fault in the newer one silently reverts the last
// transaction, though it was confirmed. Such a fault is damage, not the trace of a crash:
// the relevant part of the page lies in one sector, and disks write whole sectors.
const (
	pageHeader  = 16
	metaSize    = 64
	metaSum     = metaSize - 8 // FNV-1a of the octets before it
	metaTx      = metaSum - 8
	metaPage    = 8 // size of a page
	leastPage   = 1 << 10
	mostPage    = 1 << 16
	flagsOf     = 8 // in the page's header
	metaFlag    = 4
	metaMagic   = 0xED0CDAED
	metaVersion = 2
)

// CheckMetas checks that both descriptions of the file at path are whole, and belong to
// neighbouring transactions.
func CheckMetas(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	first, second, err := readMetas(f)
	if err != nil {
		return err
	}
	a, b := binary.LittleEndian.Uint64(first[metaTx:]), binary.LittleEndian.Uint64(second[metaTx:])
	if a+1 != b && b+1 != a {
		return fmt.Errorf("%w: its two descriptions are of transactions %d and %d", ErrDamaged, a, b)
	}
	return nil
}

// readMetas reads both descriptions, which must be whole.
func readMetas(f *os.File) (first, second []byte, err error) {
	if first, err = readMeta(f, 0); err != nil {
		return nil, nil, err
	}
	size, err := pageSize(first)
	if err != nil {
		return nil, nil, err
	}
	second, err = readMeta(f, size)
	return first, second, err
}

// newestMeta is the description that bbolt uses: the whole one with the later transaction.
func newestMeta(f *os.File) ([]byte, error) {
	first, err := readMeta(f, 0)
	if err != nil {
		return anyMeta(f, err)
	}
	size, err := pageSize(first)
	if err != nil {
		return nil, err
	}
	second, err := readMeta(f, size)
	if err != nil || binary.LittleEndian.Uint64(first[metaTx:]) >= binary.LittleEndian.Uint64(second[metaTx:]) {
		return first, nil
	}
	if other, err := pageSize(second); err != nil || other != size {
		return nil, fmt.Errorf("%w: pages of %d bytes, and of %d", ErrDamaged, size, other)
	}
	return second, nil
}

// anyMeta finds the second description without the first, which would have the length of a page.
func anyMeta(f *os.File, first error) ([]byte, error) {
	for size := int64(leastPage); size <= mostPage; size *= 2 {
		m, err := readMeta(f, size)
		if err != nil {
			continue
		}
		if got, err := pageSize(m); err != nil || got != size {
			return nil, first
		}
		return m, nil
	}
	return nil, first
}

func pageSize(meta []byte) (int64, error) {
	size := binary.LittleEndian.Uint32(meta[metaPage:])
	if size < leastPage || size > mostPage {
		return 0, fmt.Errorf("%w: pages of %d bytes", ErrDamaged, size)
	}
	return int64(size), nil
}

// SwapMetas exchanges the two descriptions of a file with pages of size bytes.
func SwapMetas(f *os.File, size int) error {
	var metas [2][metaSize]byte
	for i := range metas {
		if _, err := f.ReadAt(metas[i][:], int64(i*size+pageHeader)); err != nil {
			return err
		}
	}
	for i := range metas {
		if _, err := f.WriteAt(metas[1-i][:], int64(i*size+pageHeader)); err != nil {
			return err
		}
	}
	return nil
}

func readMeta(f *os.File, at int64) ([]byte, error) {
	page := make([]byte, pageHeader+metaSize)
	if _, err := f.ReadAt(page, at); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: it ends before byte %d", ErrDamaged, at+int64(len(page)))
	} else if err != nil {
		return nil, err
	}
	m := page[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(m[:metaSum]) // never fails
	switch {
	case binary.LittleEndian.Uint32(m) != metaMagic || binary.LittleEndian.Uint32(m[4:]) != metaVersion:
		return nil, fmt.Errorf("%w, or not a file of ramp: it does not begin as a bbolt file does", ErrDamaged)
	case binary.LittleEndian.Uint64(m[metaSum:]) != sum.Sum64():
		return nil, fmt.Errorf("%w: the description at byte %d does not add up", ErrDamaged, at)
	}
	return m, nil
}
