package boltfile

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// treeWalk finds the damage that bbolt does not survive, without reading all of a file:
// branches that lead back to a page above them, which bbolt would follow until memory is
// exhausted, and a list of free pages that is too long or contains a page of a tree,
// which bbolt would overwrite. It reads the branches, and the few leaves with tables in
// them: some thousand pages for ten million entries.
type treeWalk struct {
	pages pageWalk
	deep  []string // top-level tables that contain tables
	met   pageSet  // branches
	ends  pageSet  // leaves
}

// CheckTrees checks that every path down the trees of the file at path ends, and that
// none of their pages is in the list of free pages. Only the tables named in deep
// contain tables, which contain none.
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
			return fmt.Errorf("page %d is both a branch and among the leaves", 8*i+bits.TrailingZeros8(both))
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

// level says which tables a tree can contain.
type level int

const (
	top  level = iota // the top-level tables
	deep              // a top-level table that contains tables
	flat              // no tables
)

// tree goes down a tree layer by layer: the pages of a layer are all branches, or all
// leaves.
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
			return nil, fmt.Errorf("page %d is not a branch, unlike its neighbours", id)
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

// leaves notes a layer of leaves, and goes on with the tables in their rows.
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
			return fmt.Errorf("page %d is not a leaf, unlike its neighbours", id)
		}
		if err := w.tables(rowsOf(b), l); err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
	}
	return nil
}

// tables goes on with the rows of a leaf that are tables with pages of their own, or that
// contain tables.
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

// table goes on with a table of a level.
func (w *treeWalk) table(value []byte, l level) error {
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return w.tree(root, l)
	}
	if inline := value[bucketHeader:]; l == deep && len(inline) >= pageHeader {
		return w.tables(rowsOf(inline), l)
	}
	return nil
}
