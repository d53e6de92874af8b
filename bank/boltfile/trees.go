package boltfile

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// treeWalk looks for what bbolt does not survive, without reading all of a file:
// branches that lead back to a page above them, which bbolt would follow until
// memory is used up, and a list of free pages that is longer than it can be or has a
// page of a tree in it, which would be written over. It reads the branches, and
// those few leaves that have tables in them: of ten million entries some thousand
// pages.
type treeWalk struct {
	pages pageWalk
	deep  []string // tables of the file's own with tables in them
	met   pageSet  // branches
	ends  pageSet  // leaves
}

// CheckTrees holds that every way down the trees of the file at path ends, and that
// none of their pages is said to be free. Of the tables of the file, those named in
// deep have tables in them, and these none.
func CheckTrees(path string, deep ...string) error {
	f, meta, pages, err := readFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := &treeWalk{*pages, deep, newPageSet(pages.high), newPageSet(pages.high)}
	if err := w.check(meta); err != nil {
		return fmt.Errorf("damaged: %w", err)
	}
	return nil
}

func (w *treeWalk) check(meta []byte) error {
	if err := w.tree(binary.LittleEndian.Uint64(meta[metaRoot:]), top); err != nil {
		return err
	}
	for i := range w.ends {
		if both := w.ends[i] & w.met[i]; both != 0 {
			return fmt.Errorf("page %d is a branch, and stands among leaves as well", 8*i+bits.TrailingZeros8(both))
		}
	}
	list, _, err := w.pages.freeList(binary.LittleEndian.Uint64(meta[metaFree:]))
	if err != nil {
		return err
	}
	return w.pages.eachFree(list, func(page uint64) error {
		if w.met.has(page) || w.ends.has(page) {
			return fmt.Errorf("page %d is in use", page)
		}
		return nil
	})
}

// level says which tables a tree can have in it.
type level int

const (
	top  level = iota // the file's own
	deep              // a table of them with tables in it
	flat              // none
)

// tree goes down a tree, one layer of pages after the other: all of a layer are
// branches, or all are leaves.
func (w *treeWalk) tree(root uint64, l level) error {
	layer := []uint64{root}
	for {
		b, err := w.pages.page(layer[0])
		if err != nil {
			return err
		}
		w.pages.unmark(layer[0], len(b))
		if binary.LittleEndian.Uint16(b[flagsOf:]) != branchFlag {
			return w.leaves(layer, l)
		}
		if layer, err = w.below(layer); err != nil {
			return err
		}
	}
}

// below are the pages below a layer of branches, at least one.
func (w *treeWalk) below(layer []uint64) (next []uint64, err error) {
	for _, id := range layer {
		b, err := w.pages.page(id)
		if err != nil {
			return nil, err
		}
		w.met.add(id)
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
func (w *treeWalk) leaves(layer []uint64, l level) error {
	for _, id := range layer {
		if id >= w.pages.high {
			return fmt.Errorf("page %d: there are pages 2..%d", id, w.pages.high-1)
		}
		w.ends.add(id)
	}
	if l == flat {
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
		if err := w.tables(rowsOf(b), l); err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
	}
	return nil
}

// tables goes on with the rows of a leaf that are tables with pages of their own,
// or with tables in them.
func (w *treeWalk) tables(r *rows, l level) error {
	for i := range r.count {
		at, n, err := r.element(i)
		if err != nil {
			return err
		}
		from := uint64(at) + uint64(n[1])
		mid := from + uint64(n[2])
		to := mid + uint64(n[3])
		if to > uint64(len(r.b)) { // bbolt would read what lies beside the file in memory
			return fmt.Errorf("row %d has %d bytes at %d, outside", i, n[3], mid)
		}
		if n[0]&bucketFlag == 0 {
			continue
		}
		if n[3] < bucketHeader {
			return fmt.Errorf("a table of %d bytes at %d", n[3], mid)
		}
		below := flat
		if l == top && slices.Contains(w.deep, string(r.b[from:mid])) {
			below = deep
		}
		if err := w.table(r.b[mid:to], below); err != nil {
			return err
		}
	}
	return nil
}

// table goes on with a table that can have in it what l says.
func (w *treeWalk) table(value []byte, l level) error {
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return w.tree(root, l)
	}
	if inline := value[bucketHeader:]; l == deep && len(inline) >= pageHeader {
		return w.tables(rowsOf(inline), l)
	}
	return nil
}
