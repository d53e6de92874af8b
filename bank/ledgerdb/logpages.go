package ledgerdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// pageWalk reads the pages of a bbolt file by itself, each once, and believes
// nothing that they say: bbolt's own check follows damaged pages out of the file.
type pageWalk struct {
	f    io.ReaderAt
	size uint64 // of a page
	high uint64 // pages of the file
	seen []byte // bit i: page i was met
}

// Parts of bbolt's pages, beside those in logmeta.go.
const (
	branchFlag   = 1
	leafFlag     = 2
	freeFlag     = 0x10
	elementSize  = 16
	bucketHeader = 16
	bucketFlag   = 1
	manyFree     = 0xffff  // the count of free pages stands in the first number
	mostDepth    = 64      // levels of pages and of buckets together
	mostOverflow = 1 << 18 // pages of one row's value, or of the free list
	metaRoot     = 16
	metaFree     = 32
	metaHigh     = 40
)

// walkPages holds that every page of the file at path is either reached once,
// with its keys in order and within its bounds, or free. Nobody may write.
func walkPages(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	meta, err := newestMeta(f)
	if err != nil {
		return err
	}
	w := &pageWalk{f: f, size: uint64(binary.LittleEndian.Uint32(meta[metaPage:])), high: binary.LittleEndian.Uint64(meta[metaHigh:])}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if w.high*w.size > uint64(info.Size()) {
		return fmt.Errorf("the file has %d bytes, want %d pages of %d", info.Size(), w.high, w.size)
	}
	w.seen = make([]byte, w.high/8+1)
	w.seen[0] = 3 // the two descriptions
	if err := w.tree(binary.LittleEndian.Uint64(meta[metaRoot:]), bounds{}, 0); err != nil {
		return err
	}
	return w.free(binary.LittleEndian.Uint64(meta[metaFree:]))
}

// newestMeta is the description that counts.
func newestMeta(f *os.File) ([]byte, error) {
	a, err := readMeta(f, 0)
	if err != nil {
		return nil, err
	}
	b, err := readMeta(f, int64(binary.LittleEndian.Uint32(a[metaPage:])))
	if err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint64(a[metaTx:]) > binary.LittleEndian.Uint64(b[metaTx:]) {
		return a, nil
	}
	return b, nil
}

// page reads a page with its overflow and marks it.
func (w *pageWalk) page(id uint64) ([]byte, error) {
	if id < 2 || id >= w.high {
		return nil, fmt.Errorf("page %d: there are pages 2..%d", id, w.high-1)
	}
	var head [pageHeader]byte
	if _, err := w.f.ReadAt(head[:], int64(id*w.size)); err != nil {
		return nil, err
	}
	more := uint64(binary.LittleEndian.Uint32(head[12:]))
	if got := binary.LittleEndian.Uint64(head[:]); got != id || more > mostOverflow || id+more >= w.high {
		return nil, fmt.Errorf("page %d says that it is page %d with %d more", id, got, more)
	}
	for i := id; i <= id+more; i++ {
		if err := w.mark(i); err != nil {
			return nil, err
		}
	}
	b := make([]byte, (more+1)*w.size)
	_, err := w.f.ReadAt(b, int64(id*w.size))
	return b, err
}

func (w *pageWalk) mark(id uint64) error {
	if w.seen[id/8]&(1<<(id%8)) != 0 {
		return fmt.Errorf("page %d is reached twice, or free and reached", id)
	}
	w.seen[id/8] |= 1 << (id % 8)
	return nil
}

// bounds are those of the keys below a branch: from inclusive, to exclusive; nil: none.
type bounds struct{ from, to []byte }

func (b bounds) hold(key []byte) bool {
	return (b.from == nil || bytes.Compare(b.from, key) <= 0) && (b.to == nil || bytes.Compare(key, b.to) < 0)
}

// tree walks what is below a page.
func (w *pageWalk) tree(id uint64, in bounds, depth int) error {
	if depth > mostDepth {
		return fmt.Errorf("page %d lies deeper than %d pages", id, mostDepth)
	}
	b, err := w.page(id)
	if err != nil {
		return err
	}
	switch binary.LittleEndian.Uint16(b[flagsOf:]) {
	case branchFlag:
		err = w.branch(b, in, depth)
	case leafFlag:
		err = w.leaf(b, in, depth)
	default:
		err = errors.New("it is neither branch nor leaf")
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// element i of a page: its four numbers, and where it stands.
func element(b []byte, i int) (at int, n [4]uint32, err error) {
	at = pageHeader + i*elementSize
	if at+elementSize > len(b) {
		return 0, n, fmt.Errorf("row %d lies outside", i)
	}
	for j := range n {
		n[j] = binary.LittleEndian.Uint32(b[at+4*j:])
	}
	return at, n, nil
}

// part is a stretch of a page.
func part(b []byte, at int, pos, size uint32) ([]byte, error) {
	from := uint64(at) + uint64(pos)
	if from+uint64(size) > uint64(len(b)) {
		return nil, fmt.Errorf("%d bytes at %d lie outside", size, from)
	}
	return b[from : from+uint64(size)], nil
}

func (w *pageWalk) branch(b []byte, in bounds, depth int) error {
	count := int(binary.LittleEndian.Uint16(b[10:]))
	if count == 0 {
		return errors.New("a branch of nothing")
	}
	keys, pages := make([][]byte, count), make([]uint64, count)
	for i := range count {
		at, n, err := element(b, i)
		if err != nil {
			return err
		}
		if keys[i], err = part(b, at, n[0], n[1]); err != nil {
			return err
		}
		pages[i] = uint64(n[3])<<32 | uint64(n[2])
		if !in.hold(keys[i]) || i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 {
			return fmt.Errorf("key %x is out of order", keys[i])
		}
	}
	for i, id := range pages {
		below := bounds{keys[i], in.to}
		if i+1 < count {
			below.to = keys[i+1]
		}
		if err := w.tree(id, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *pageWalk) leaf(b []byte, in bounds, depth int) error {
	var last []byte
	for i := range int(binary.LittleEndian.Uint16(b[10:])) {
		at, n, err := element(b, i)
		if err != nil {
			return err
		}
		key, err := part(b, at, n[1], n[2])
		if err != nil {
			return err
		}
		if !in.hold(key) || i > 0 && bytes.Compare(last, key) >= 0 || n[0] > bucketFlag {
			return fmt.Errorf("key %x is out of order, or of no kind", key)
		}
		last = key
		value, err := part(b, at, n[1]+n[2], n[3])
		if err == nil && n[0] == bucketFlag {
			err = w.bucket(value, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket walks a table: its own pages, or a leaf that stands in the row itself.
func (w *pageWalk) bucket(value []byte, depth int) error {
	if len(value) < bucketHeader {
		return fmt.Errorf("a table of %d bytes", len(value))
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return w.tree(root, bounds{}, depth)
	}
	inline := value[bucketHeader:]
	if len(inline) < pageHeader || binary.LittleEndian.Uint16(inline[flagsOf:]) != leafFlag {
		return errors.New("a table within a row is no leaf")
	}
	return w.leaf(inline, bounds{}, depth)
}

// free marks the free pages; after them no page must be left.
func (w *pageWalk) free(id uint64) error {
	b, err := w.page(id)
	if err != nil {
		return fmt.Errorf("list of free pages: %w", err)
	}
	count, at := uint64(binary.LittleEndian.Uint16(b[10:])), uint64(pageHeader)
	if count == manyFree {
		count, at = binary.LittleEndian.Uint64(b[at:]), at+8
	}
	if binary.LittleEndian.Uint16(b[flagsOf:]) != freeFlag || count > (uint64(len(b))-at)/8 {
		return fmt.Errorf("list of free pages: %d on page %d, which is none or too small", count, id)
	}
	for i := range count {
		p := binary.LittleEndian.Uint64(b[at+8*i:])
		if p < 2 || p >= w.high {
			return fmt.Errorf("list of free pages: page %d, there are 2..%d", p, w.high-1)
		}
		if err := w.mark(p); err != nil {
			return fmt.Errorf("list of free pages: %w", err)
		}
	}
	for p := range w.high {
		if w.seen[p/8]&(1<<(p%8)) == 0 {
			return fmt.Errorf("page %d is neither reached nor free", p)
		}
	}
	return nil
}
