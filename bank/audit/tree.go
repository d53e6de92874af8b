package audit

import (
	"fmt"
	"slices"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
)

// Tree is a log: the roots of its whole subtrees, and the hashes that do not fill a tile
// yet. Only Append changes it.
type Tree struct {
	factory *compact.RangeFactory
	size    uint64
	roots   *compact.Range
	rows    [maxRows][]byte // hashes behind the last whole tile of each row
}

// Tile is TileWidth hashes of one row.
type Tile struct {
	Row    int    // 0: the leaves
	Number uint64 // from 0
	Hashes []byte // TileSize octets
}

// Tiles are the stored tiles of a log.
type Tiles interface {
	// Tile returns the hashes of a tile, which the caller must not change.
	Tile(row int, number uint64) ([]byte, error)
}

// NewTree is the log without entries.
func NewTree() *Tree {
	f := &compact.RangeFactory{Hash: hashNode}
	return &Tree{factory: f, roots: f.NewEmptyRange(0)}
}

// Restore is the log of a size, from its tiles and from the records of the entries
// behind the last full tile. It reads fewer than TileWidth entries, and fewer than
// TileWidth tiles of each row. The caller compares the root.
func Restore(size uint64, tiles Tiles, record func(number uint64) ([]byte, error)) (*Tree, error) {
	if size > maxSize {
		return nil, fmt.Errorf("%w: %d entries", ErrDamaged, size)
	}
	t := NewTree()
	t.size = size
	for i := size &^ (TileWidth - 1); i < size; i++ {
		r, err := record(i + 1)
		if err != nil {
			return nil, err
		}
		t.rows[0] = append(t.rows[0], hashLeaf(i+1, r)...)
	}
	for row := 1; row < maxRows; row++ {
		if err := t.restoreRow(row, size, tiles); err != nil {
			return nil, err
		}
	}
	hashes, err := t.nodes(rangeNodes(size), tiles)
	if err != nil {
		return nil, err
	}
	t.roots, err = t.factory.NewRange(0, size, hashes)
	return t, err
}

// restoreRow hashes the tiles below the last, unfinished one of a row.
func (t *Tree) restoreRow(row int, size uint64, tiles Tiles) error {
	n := size >> (tileHeight * row) // hashes of the row
	for i := n &^ (TileWidth - 1); i < n; i++ {
		b, err := tile(tiles, row-1, i)
		if err != nil {
			return err
		}
		t.rows[row] = append(t.rows[row], fold(b)...)
	}
	return nil
}

func tile(tiles Tiles, row int, number uint64) ([]byte, error) {
	b, err := tiles.Tile(row, number)
	if err != nil {
		return nil, err
	}
	if len(b) != TileSize {
		return nil, fmt.Errorf("%w: tile %d of row %d has %d octets, want %d", ErrDamaged, number, row, len(b), TileSize)
	}
	return b, nil
}

// fold is the root above 2ⁿ hashes.
func fold(hashes []byte) []byte {
	level := slices.Clone(hashes)
	for len(level) > HashSize {
		for i := 0; i < len(level); i += 2 * HashSize {
			copy(level[i/2:], hashNode(level[i:i+HashSize], level[i+HashSize:i+2*HashSize]))
		}
		level = level[:len(level)/2]
	}
	return level
}

// Clone is an independent copy.
func (t *Tree) Clone() *Tree {
	c := &Tree{factory: t.factory, size: t.size}
	c.roots, _ = t.factory.NewRange(0, t.size, slices.Clone(t.roots.Hashes())) // the same number as before: no error
	for i := range t.rows {
		c.rows[i] = slices.Clone(t.rows[i])
	}
	return c
}

// Append adds the next entry, and passes the tiles that it fills to store.
func (t *Tree) Append(record []byte, store func(Tile) error) error {
	if t.Size() >= maxSize {
		return fmt.Errorf("a log of %d entries is full", t.Size())
	}
	var failed error
	grow := func(id compact.NodeID, hash []byte) {
		if id.Level%tileHeight == 0 && id.Level < tileHeight*maxRows && failed == nil {
			failed = t.push(int(id.Level/tileHeight), id.Index, hash, store)
		}
	}
	hash := hashLeaf(t.Size()+1, record)
	if err := t.roots.Append(hash, grow); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	t.size++
	return failed
}

func (t *Tree) push(row int, index uint64, hash []byte, store func(Tile) error) error {
	t.rows[row] = append(t.rows[row], hash...)
	if len(t.rows[row]) < TileSize {
		return nil
	}
	full := t.rows[row]
	t.rows[row] = nil
	return store(Tile{row, index / TileWidth, full})
}

// Size is the number of entries.
func (t *Tree) Size() uint64 { return t.size }

// Root is the root of the tree; without entries it is the hash of nothing.
func (t *Tree) Root() [HashSize]byte {
	if t.Size() == 0 {
		return [HashSize]byte(rfc6962.DefaultHasher.EmptyRoot())
	}
	h, err := t.roots.GetRootHash(nil)
	if err != nil {
		panic(err) // it begins at 0 by construction
	}
	return [HashSize]byte(h)
}

// nodes are the hashes of whole subtrees.
func (t *Tree) nodes(ids []compact.NodeID, tiles Tiles) ([][]byte, error) {
	hashes := make([][]byte, len(ids))
	for i, id := range ids {
		var err error
		if hashes[i], err = t.node(id, tiles); err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

// node folds the part of one tile that lies below a node.
func (t *Tree) node(id compact.NodeID, tiles Tiles) ([]byte, error) {
	row, above := int(id.Level/tileHeight), id.Level%tileHeight
	first := id.Index << above
	number, at := first/TileWidth, int(first%TileWidth)*HashSize
	end := at + HashSize<<above
	b := t.rows[row]
	if whole := t.Size() >> (tileHeight * (row + 1)); number < whole {
		var err error
		if b, err = tile(tiles, row, number); err != nil {
			return nil, err
		}
	}
	if end > len(b) {
		return nil, fmt.Errorf("%w: no hash %d of level %d in a log of %d", ErrDamaged, id.Index, id.Level, t.Size())
	}
	return fold(b[at:end]), nil
}

func rangeNodes(size uint64) []compact.NodeID { return compact.RangeNodes(0, size, nil) }
