package ledgerdb

import (
	"hash/crc32"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// digest is the sum of a number for each row of all tables but the entries, which the log
// covers. Every transaction updates it; so an audit that adds up all rows notices a row
// that was damaged, lost or added. It is no proof for strangers: anybody who can write
// the file can write the sum. Signatures cover only the log.
type digest uint64

// change replaces a row in the sum; a nil value means no row.
func (d *digest) change(table, key, old, value []byte) {
	if old != nil {
		*d -= rowNumber(table, key, old)
	}
	if value != nil {
		*d += rowNumber(table, key, value)
	}
}

// note adds a record to the sum before it is written.
func (d *digest) note(b *boltfile.Bucket, r *protocol.Record) {
	if r.Table != ledger.TableEntries {
		key := []byte(r.Key)
		d.change([]byte(r.Table), key, b.Get(key), r.Value)
	}
}

// rowNumber combines two checksums, which notice every burst of 32 bits, stirred so that
// changes of two rows do not cancel out.
func rowNumber(table, key, value []byte) digest {
	b := make([]byte, 0, 4+len(table)+len(key)+len(value))
	b = append(b, byte(len(table)), byte(len(key)), byte(len(key)>>8), byte(len(value)))
	b = append(append(append(b, table...), key...), value...)
	x, y := crc32.ChecksumIEEE(b), crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return digest(stir(uint64(x)<<32 | uint64(y)))
}

// stir is the finisher of SplitMix64: every bit of the input changes about half of the output.
func stir(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func digestOf(tables *bbolt.Bucket) (digest, error) {
	var d digest
	err := tables.ForEachBucket(func(name []byte) error {
		if string(name) == ledger.TableEntries {
			return nil
		}
		return tables.Bucket(name).ForEach(func(k, v []byte) error {
			d.change(name, k, nil, v)
			return nil
		})
	})
	return d, err
}
