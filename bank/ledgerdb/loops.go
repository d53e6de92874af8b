package ledgerdb

import (
	"encoding/binary"
	"fmt"
	"os"
)

// branchWalk looks for branches of bbolt's trees that lead back to a page above
// them. bbolt would follow such a one until memory is used up, and nothing could be
// recovered from that. It reads the branches, and those few leaves that have tables
// in them: of ten million entries some thousand pages.
type branchWalk struct {
	pages pageWalk
	met   map[uint64]bool // branches
	ends  []uint64        // leaves, 8 bytes for each
}

// tableLevels are the levels of buckets with buckets in them: the file's own, and
// 'tables' and 'log' in it.
const tableLevels = 2

// checkBranches holds that every way down the trees of the file at path ends.
func checkBranches(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	meta, err := newestMeta(f)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := uint64(binary.LittleEndian.Uint32(meta[metaPage:]))
	high := min(binary.LittleEndian.Uint64(meta[metaHigh:]), uint64(info.Size())/size)
	w := &branchWalk{pageWalk{f: f, size: size, high: high, seen: make([]byte, high/8+1)}, map[uint64]bool{}, nil}
	if err := w.tree(binary.LittleEndian.Uint64(meta[metaRoot:]), 0); err != nil {
		return fmt.Errorf("damaged: %w", err)
	}
	for _, id := range w.ends {
		if w.met[id] {
			return fmt.Errorf("damaged: page %d is a branch, and stands among leaves as well", id)
		}
	}
	return nil
}

// tree goes down a tree, one layer of pages after the other: all of a layer are
// branches, or all are leaves.
func (w *branchWalk) tree(root uint64, level int) error {
	layer := []uint64{root}
	for {
		b, err := w.pages.page(layer[0])
		if err != nil {
			return err
		}
		w.pages.unmark(layer[0], len(b))
		if binary.LittleEndian.Uint16(b[flagsOf:]) != branchFlag {
			return w.leaves(layer, level)
		}
		if layer, err = w.below(layer); err != nil {
			return err
		}
	}
}

// below are the pages below a layer of branches, at least one.
func (w *branchWalk) below(layer []uint64) (next []uint64, err error) {
	for _, id := range layer {
		b, err := w.pages.page(id)
		if err != nil {
			return nil, err
		}
		w.met[id] = true
		r := rowsOf(b)
		if binary.LittleEndian.Uint16(b[flagsOf:]) != branchFlag || r.count == 0 {
			return nil, fmt.Errorf("page %d is no branch, as the others beside it are", id)
		}
		for i := range r.count {
			_, n, err := r.element(i)
			if err != nil {
				return nil, fmt.Errorf("page %d: %w", id, err)
			}
			next = append(next, uint64(n[3])<<32|uint64(n[2]))
		}
	}
	return next, nil
}

// leaves notes a layer of leaves, and goes on with the tables that their rows are,
// where there are such.
func (w *branchWalk) leaves(layer []uint64, level int) error {
	w.ends = append(w.ends, layer...)
	if level == tableLevels {
		return nil
	}
	for _, id := range layer {
		b, err := w.pages.page(id)
		if err != nil {
			return err
		}
		if binary.LittleEndian.Uint16(b[flagsOf:]) != leafFlag {
			return fmt.Errorf("page %d is no leaf, as the others beside it are", id)
		}
		if err := w.tables(rowsOf(b), level); err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
	}
	return nil
}

// tables goes on with the rows of a leaf that are tables with pages of their own,
// or with tables in them.
func (w *branchWalk) tables(r *rows, level int) error {
	for i := range r.count {
		at, n, err := r.element(i)
		if err != nil {
			return err
		}
		from := uint64(at) + uint64(n[1]) + uint64(n[2])
		to := from + uint64(n[3])
		if to > uint64(len(r.b)) { // bbolt would read what lies beside the file in memory
			return fmt.Errorf("row %d has %d bytes at %d, outside", i, n[3], from)
		}
		if n[0]&bucketFlag == 0 {
			continue
		}
		if n[3] < bucketHeader {
			return fmt.Errorf("a table of %d bytes at %d", n[3], from)
		}
		if err := w.table(r.b[from:to], level); err != nil {
			return err
		}
	}
	return nil
}

func (w *branchWalk) table(value []byte, level int) error {
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return w.tree(root, level+1)
	}
	if inline := value[bucketHeader:]; level+1 < tableLevels && len(inline) >= pageHeader {
		return w.tables(rowsOf(inline), level+1)
	}
	return nil
}
