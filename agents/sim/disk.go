package sim

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"ramp/protocol"
)

// ErrFull is returned by a full disk.
var ErrFull = errors.New("no space left on device")

// ErrFenced is returned by a shared disk to a host that no longer leads.
var ErrFenced = errors.New("another host leads now")

// Disk is the durable state of a host. It is an agents.Store whose writes a crash may
// interrupt: it leaves all of the write, nothing, or a torn frame, which the next start
// detects by its checksum and drops.
type Disk struct {
	Tables        // the durable records
	frame  []byte // being written; a crash decides how much of it remains
	full   bool
	torn   int // torn frames found
	epoch  int // of the leader that may write
}

// NewDisk is an empty disk.
func NewDisk() *Disk { return &Disk{Tables: Tables{}} }

// Append makes the records durable at once.
func (d *Disk) Append(records []protocol.Record) error {
	if err := d.begin(records, d.epoch); err != nil {
		return err
	}
	d.end()
	return nil
}

// begin starts a write by the leader of an epoch.
func (d *Disk) begin(records []protocol.Record, epoch int) error {
	if epoch != d.epoch {
		return ErrFenced
	}
	if d.full {
		return ErrFull
	}
	d.frame = encode(records)
	return nil
}

// end makes the current write durable, and returns its records and frame.
func (d *Disk) end() ([]protocol.Record, []byte) {
	frame := d.frame
	records, ok := decode(frame)
	if !ok {
		panic("sim: a whole frame cannot be read")
	}
	d.frame = nil
	d.apply(records)
	return records, frame
}

// crash ends the current write with keep bytes of its frame on the disk. It returns the
// records that became durable, which nobody has learnt of, and their frame.
func (d *Disk) crash(keep int) ([]protocol.Record, []byte) {
	frame := d.frame
	d.frame = nil
	if len(frame) == 0 || keep <= 0 {
		return nil, nil
	}
	frame = frame[:min(keep, len(frame))]
	records, ok := decode(frame)
	if !ok {
		d.torn++
		return nil, nil
	}
	d.apply(records)
	return records, frame
}

// encode makes a frame: a checksum, then for each record its table, key and value.
func encode(records []protocol.Record) []byte {
	b := make([]byte, 4, frameSize(records))
	for _, r := range records {
		b = appendField(b, r.Table)
		b = appendField(b, r.Key)
		if r.Value == nil {
			b = append(b, 0)
			continue
		}
		b = appendField(append(b, 1), r.Value)
	}
	b = append(b, 0xff) // so that an empty tail differs from a cut one
	binary.BigEndian.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	return b
}

// frameSize is the maximum size of a frame of records.
func frameSize(records []protocol.Record) int {
	n := 5
	for _, r := range records {
		n += 3*binary.MaxVarintLen32 + 1 + len(r.Table) + len(r.Key) + len(r.Value)
	}
	return n
}

func appendField[T []byte | string](b []byte, field T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(field))), field...)
}

// decode reads a frame; false if it is torn. The values share its memory.
func decode(b []byte) ([]protocol.Record, bool) {
	if len(b) < 5 || binary.BigEndian.Uint32(b) != crc32.ChecksumIEEE(b[4:]) {
		return nil, false
	}
	var records []protocol.Record
	for b = b[4 : len(b)-1]; len(b) > 0; {
		var table, key, value []byte
		table, b = cut(b)
		key, b = cut(b)
		has := b[0]
		b = b[1:]
		if has == 1 {
			value, b = cut(b)
			value = value[:len(value):len(value)]
		}
		records = append(records, protocol.Record{Table: string(table), Key: string(key), Value: value})
	}
	return records, true
}

func cut(b []byte) (field, rest []byte) {
	n, size := binary.Uvarint(b)
	return b[size : size+int(n)], b[size+int(n):]
}
