package ledgerdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt's description of a file stands twice, on its first two pages, and the
// valid one with the higher transaction counts. So a fault in the newer one
// takes the last transaction back without a word, though it was confirmed.
// Such a fault is damage and no trace of a crash: what matters of the page lies
// in one sector, and disks write sectors whole.
const (
	pageHeader  = 16
	metaSize    = 64
	metaSum     = metaSize - 8 // FNV-1a of what stands before
	metaTx      = metaSum - 8
	metaPage    = 8 // size of a page
	leastPage   = 1 << 10
	mostPage    = 1 << 16
	flagsOf     = 8 // in the page's header
	metaFlag    = 4
	metaMagic   = 0xED0CDAED
	metaVersion = 2
)

// checkMetas holds that both descriptions of the file at path are whole, and of
// neighbouring transactions. The caller has the lock, and bbolt not yet the file.
func checkMetas(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	first, err := readMeta(f, 0)
	if err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(first[metaPage:])
	if size < leastPage || size > mostPage {
		return fmt.Errorf("damaged: pages of %d bytes", size)
	}
	second, err := readMeta(f, int64(size))
	if err != nil {
		return err
	}
	a, b := binary.LittleEndian.Uint64(first[metaTx:]), binary.LittleEndian.Uint64(second[metaTx:])
	if a+1 != b && b+1 != a {
		return fmt.Errorf("damaged: its two descriptions are of transactions %d and %d", a, b)
	}
	return nil
}

func readMeta(f *os.File, at int64) ([]byte, error) {
	page := make([]byte, pageHeader+metaSize)
	if _, err := f.ReadAt(page, at); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("damaged: it ends before byte %d", at+int64(len(page)))
	} else if err != nil {
		return nil, err
	}
	m := page[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(m[:metaSum]) // never fails
	switch {
	case binary.LittleEndian.Uint32(m) != metaMagic || binary.LittleEndian.Uint32(m[4:]) != metaVersion:
		return nil, errors.New("not a ledger of ramp, or damaged: it does not begin as a file of bbolt does")
	case binary.LittleEndian.Uint16(page[flagsOf:]) != metaFlag, binary.LittleEndian.Uint64(m[metaSum:]) != sum.Sum64():
		return nil, fmt.Errorf("damaged: the description at byte %d does not add up", at)
	}
	return m, nil
}
