package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// pageWalk reads each page of a bbolt file once, without bbolt, and trusts none: bbolt's own check
// follows damaged pages out of the file. It also checks that they are as bbolt writes them, without
// gaps and with zeros behind the last row, so that every byte of a page in use is checked.
type pageWalk struct {
	f    io.ReaderAt
	size uint64 // of a page
	high uint64 // pages of the file
	seen pageSet

	short  bool     // see CheckTrees
	deep   []string // with short: top-level tables that contain tables
	leaves int      // with short: the depth of leaves that are not read, or zero
}

// Parts of bbolt's pages, beside those in meta.go.
const (
	branchFlag   = 1
	leafFlag     = 2
	freeFlag     = 0x10
	countOf      = 10 // in the page's header
	overflowOf   = 12 // in the page's header
	elementSize  = 16
	bucketHeader = 16
	bucketFlag   = 1
	manyFree     = 0xffff  // the first number has the count of free pages
	mostDepth    = 64      // levels of pages and of buckets together
	mostOverflow = 1 << 18 // pages of one row's value, or of the free list
	metaRoot     = 16
	metaFree     = 32
	metaHigh     = 40
)

// readFile reads the valid description of a file, and prepares to read its pages.
func readFile(path string) (f *os.File, meta []byte, w *pageWalk, err error) {
	if f, err = os.Open(path); err != nil {
		return nil, nil, nil, err
	}
	if meta, err = newestMeta(f); err != nil {
		return nil, nil, nil, errors.Join(err, f.Close())
	}
	w = &pageWalk{f: f, size: uint64(binary.LittleEndian.Uint32(meta[metaPage:])), high: binary.LittleEndian.Uint64(meta[metaHigh:])}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, nil, errors.Join(err, f.Close())
	}
	if w.high > uint64(info.Size())/w.size {
		err = fmt.Errorf("%w: it has %d bytes and should have %d pages of %d", ErrDamaged, info.Size(), w.high, w.size)
		return nil, nil, nil, errors.Join(err, f.Close())
	}
	w.seen = make(pageSet, w.high/8+1)
	return f, meta, w, nil
}

// CheckPages checks that every page of the file at path is free or reached once, with its
// keys in order and within its bounds, and nothing besides.
func CheckPages(path string) error {
	f, meta, w, err := readFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := w.metas(); err != nil {
		return err
	}
	if _, err := w.tree(binary.LittleEndian.Uint64(meta[metaRoot:]), bounds{}, 0); err != nil {
		return err
	}
	return w.free(binary.LittleEndian.Uint64(meta[metaFree:]))
}

// CheckTrees finds the damage that bbolt does not survive, without reading all of the file at path:
// branches that lead back to a page above them, which bbolt would follow until memory is exhausted,
// and a list of free pages that is too long or contains a page of a tree, which bbolt would
// overwrite. It reads the branches, and the few leaves with tables in them: some thousand pages for
// ten million entries. Only the top-level tables named in deep contain tables, which contain none.
func CheckTrees(path string, deep ...string) error {
	f, meta, w, err := readFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w.short, w.deep = true, deep
	_, err = w.tree(binary.LittleEndian.Uint64(meta[metaRoot:]), bounds{}, 0)
	if err == nil {
		var list []byte
		if list, _, err = w.freeList(binary.LittleEndian.Uint64(meta[metaFree:])); err == nil {
			err = w.eachFree(list, w.mark)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// height is how many branches are above the leaves below a page: as many everywhere.
func (w *pageWalk) height(id uint64) (n int, err error) {
	for ; n <= mostDepth; n++ {
		b, err := w.page(id)
		if err != nil {
			return 0, err
		}
		for i := range uint64(len(b)) / w.size {
			w.seen.remove(id + i) // they are met again
		}
		if binary.LittleEndian.Uint16(b[flagsOf:]) != branchFlag {
			break
		}
		_, e, err := rowsOf(b).element(0)
		if err != nil {
			return 0, err
		}
		id = uint64(e[3])<<32 | uint64(e[2])
	}
	return n, nil
}

// metas marks the two descriptions, whose sums are right, and checks the rest of their pages.
func (w *pageWalk) metas() error {
	b := make([]byte, w.size)
	for id := range uint64(2) {
		if _, err := w.f.ReadAt(b, int64(id*w.size)); err != nil {
			return err
		}
		rest, end := b[pageHeader+metaSize:len(b)-markSize], b[len(b)-markSize:]
		right := allZero(end) || bytes.Equal(end, describedBy(b[pageHeader:]).mark())
		if got := binary.LittleEndian.Uint64(b); got != id || binary.LittleEndian.Uint16(b[flagsOf:]) != metaFlag || !allZero(b[countOf:pageHeader]) || !allZero(rest) || !right {
			return fmt.Errorf("page %d: there are octets besides the description (its number is %d)", id, got)
		}
		if err := w.mark(id); err != nil {
			return err
		}
	}
	return nil
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// page reads a page with its overflow and marks it.
func (w *pageWalk) page(id uint64) ([]byte, error) {
	if id < 2 || id >= w.high {
		return nil, fmt.Errorf("page %d: there are pages 2..%d", id, w.high-1)
	}
	b := make([]byte, w.size)
	if _, err := w.f.ReadAt(b, int64(id*w.size)); err != nil {
		return nil, err
	}
	more := uint64(binary.LittleEndian.Uint32(b[overflowOf:]))
	if got := binary.LittleEndian.Uint64(b); got != id || more > mostOverflow || id+more >= w.high {
		return nil, fmt.Errorf("page %d has the number %d, and %d more pages", id, got, more)
	}
	for i := id; i <= id+more; i++ {
		if err := w.mark(i); err != nil {
			return nil, err
		}
	}
	if more == 0 {
		return b, nil
	}
	b = append(b, make([]byte, more*w.size)...)
	_, err := w.f.ReadAt(b[w.size:], int64((id+1)*w.size))
	return b, err
}

func (w *pageWalk) mark(id uint64) error {
	if w.seen.has(id) {
		return fmt.Errorf("page %d is reached twice, or free and reached", id)
	}
	w.seen.add(id)
	return nil
}

// pageSet has a bit for each page.
type pageSet []byte

func (s pageSet) has(id uint64) bool { return s[id/8]&(1<<(id%8)) != 0 }
func (s pageSet) add(id uint64)      { s[id/8] |= 1 << (id % 8) }
func (s pageSet) remove(id uint64)   { s[id/8] &^= 1 << (id % 8) }

// bounds limit the keys below a branch: from inclusive, to exclusive; nil: no limit.
type bounds struct{ from, to []byte }

func (b bounds) hold(key []byte) bool {
	return (b.from == nil || bytes.Compare(b.from, key) <= 0) && (b.to == nil || bytes.Compare(key, b.to) < 0)
}

// tree walks the pages below a page, and returns its first key, or nil.
func (w *pageWalk) tree(id uint64, in bounds, depth int) (first []byte, err error) {
	if depth > mostDepth {
		return nil, fmt.Errorf("page %d lies deeper than %d pages", id, mostDepth)
	}
	if w.leaves > 0 && depth >= w.leaves {
		if id < 2 || id >= w.high {
			return nil, fmt.Errorf("page %d: there are pages 2..%d", id, w.high-1)
		}
		return in.from, w.mark(id)
	}
	b, err := w.page(id)
	if err != nil {
		return nil, err
	}
	switch binary.LittleEndian.Uint16(b[flagsOf:]) {
	case branchFlag:
		first, err = w.branch(rowsOf(b), in, depth)
	case leafFlag:
		first, err = w.leaf(rowsOf(b), in, depth)
	default:
		err = errors.New("it is neither branch nor leaf")
	}
	if err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return first, nil
}

// branch walks the pages below one, which lists each with its first key.
func (w *pageWalk) branch(r *rows, in bounds, depth int) (first []byte, err error) {
	keys, pages, err := w.children(r, in)
	if err != nil {
		return nil, err
	}
	for i, id := range pages {
		below := bounds{keys[i], in.to}
		if i+1 < len(pages) {
			below.to = keys[i+1]
		}
		key, err := w.tree(id, below, depth+1)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(key, keys[i]) {
			return nil, fmt.Errorf("page %d begins with key %x, and is listed with %x", id, key, keys[i])
		}
	}
	return keys[0], nil
}

// children are the keys and the numbers of the pages below one, at least one.
func (w *pageWalk) children(r *rows, in bounds) (keys [][]byte, pages []uint64, err error) {
	if r.count == 0 {
		return nil, nil, errors.New("an empty branch")
	}
	keys, pages = make([][]byte, r.count), make([]uint64, r.count)
	for i := range r.count {
		at, n, err := r.element(i)
		if err != nil {
			return nil, nil, err
		}
		if keys[i], err = r.take(at, n[0], n[1]); err != nil {
			return nil, nil, err
		}
		pages[i] = uint64(n[3])<<32 | uint64(n[2])
		if !in.hold(keys[i]) || i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 {
			return nil, nil, fmt.Errorf("key %x is out of order", keys[i])
		}
	}
	return keys, pages, r.end()
}

func (w *pageWalk) leaf(r *rows, in bounds, depth int) (first []byte, err error) {
	var last []byte
	for i := range r.count {
		at, n, err := r.element(i)
		if err != nil {
			return nil, err
		}
		key, err := r.take(at, n[1], n[2])
		if err != nil {
			return nil, err
		}
		if !in.hold(key) || i > 0 && bytes.Compare(last, key) >= 0 || n[0] > bucketFlag {
			return nil, fmt.Errorf("key %x is out of order, or of no kind", key)
		}
		if i == 0 {
			first = key
		}
		last = key
		value, err := r.take(at, n[1]+n[2], n[3])
		if err == nil && n[0] == bucketFlag {
			err = w.bucket(key, value, depth+1)
		}
		if err != nil {
			return nil, err
		}
	}
	return first, r.end()
}

// bucket walks a table: its own pages, or a leaf within the row. A ledger does not use
// bbolt's counter of a table.
func (w *pageWalk) bucket(name, value []byte, depth int) error {
	if len(value) < bucketHeader || !w.short && !allZero(value[8:bucketHeader]) {
		return fmt.Errorf("a table of %d bytes, or one that counts", len(value))
	}
	inline := value[bucketHeader:]
	root := binary.LittleEndian.Uint64(value)
	if w.short && root != 0 && !slices.Contains(w.deep, string(name)) {
		n, err := w.height(root)
		if err != nil {
			return err
		}
		w.leaves = depth + n
		defer func() { w.leaves = 0 }()
	}
	switch {
	case root != 0 && len(inline) > 0:
		return fmt.Errorf("a table on page %d and in its row too", root)
	case root != 0:
		_, err := w.tree(root, bounds{}, depth)
		return err
	case len(inline) < pageHeader || binary.LittleEndian.Uint16(inline[flagsOf:]) != leafFlag:
		return errors.New("a table within a row is not a leaf")
	case !allZero(inline[:flagsOf]) || !allZero(inline[overflowOf:pageHeader]):
		return errors.New("a table within a row has the number of a page")
	}
	r := rowsOf(inline)
	if _, err := w.leaf(r, bounds{}, depth); err != nil {
		return err
	}
	if r.next != len(inline) {
		return errors.New("a table within a row ends behind its last row")
	}
	return nil
}

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
