package ledger

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"ramp/protocol"
)

// contractKey is a contract ID as octets.
type contractKey [32]byte

func parseContract(id protocol.ContractID) (contractKey, error) {
	var k contractKey
	if len(id) != 2*len(k) {
		return k, refuse(protocol.CodeMalformed, "contract ID of %d characters, want %d", len(id), 2*len(k))
	}
	if _, err := hex.Decode(k[:], []byte(id)); err != nil || k.id() != id {
		return k, refuse(protocol.CodeMalformed, "contract ID %q: want lower-case hex", string(id))
	}
	return k, nil
}

func (k contractKey) id() protocol.ContractID {
	var b [2 * len(k)]byte // an audit does this for every entry: one allocation, not two
	hex.Encode(b[:], k[:])
	return protocol.ContractID(b[:])
}

// ContractKey is the key of a contract in TableContracts, and what the keys of
// its refunds in TableRefunds begin with.
func ContractKey(id protocol.ContractID) (string, error) {
	k, err := parseContract(id)
	return string(k[:]), err
}

// NumberKey is the key of entry n in TableEntries and TableOutcomes. Keys are
// big-endian, so that the order of keys is the order of numbers.
func NumberKey(n uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, n))
}

func lineKey(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// nanos is t in nanoseconds since 1970, at least zero: only deadlines that were
// long over when they came can be older.
func nanos(t time.Time) int64 {
	if t.Unix() < 0 {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time { return time.Unix(0, n).UTC() }

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendTime(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }

// rowVersion begins every value. A reader refuses what it does not know.
const rowVersion = 1

var errShort = errors.New("value is too short")

// decoder reads a value front to back; the first fault stays.
type decoder struct {
	b   []byte
	err error
}

func newDecoder(b []byte) *decoder {
	_, d := newDecoderUpTo(b, rowVersion)
	return d
}

// newDecoderUpTo reads values of several versions, up to the last that this
// program knows. It is short enough for the compiler to put it into its callers, and
// the decoder on their stack.
func newDecoderUpTo(b []byte, last byte) (version byte, d *decoder) {
	d = &decoder{b: b}
	return d.version(last), d
}

func (d *decoder) version(last byte) byte {
	version := d.byte()
	if d.err == nil && (version < rowVersion || version > last) {
		d.err = fmt.Errorf("value has version %d, want %d..%d", version, rowVersion, last)
	}
	return version
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n > len(d.b) {
		d.fail(errShort)
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) byte() byte {
	if p := d.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) credits() protocol.Credits {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	d.b = d.b[n:]
	return protocol.Credits(v)
}

func (d *decoder) unit() int { return d.count(protocol.MaxUnits - 1) }

// count reads a length of at most limit.
func (d *decoder) count(limit int) int {
	v := d.uvarint()
	if v > uint64(limit) {
		d.fail(fmt.Errorf("value has a list of %d, at most %d", v, limit))
		return 0
	}
	return int(v)
}

func (d *decoder) string(limit int) string { return string(d.take(d.count(limit))) }

func (d *decoder) agent() protocol.AgentID {
	return protocol.AgentID(d.string(protocol.MaxAgentID))
}

func (d *decoder) nanos() int64 {
	p := d.take(8)
	if p == nil {
		return 0
	}
	n := int64(binary.BigEndian.Uint64(p))
	if n < 0 {
		d.fail(errors.New("value has a time before 1970"))
	}
	return n
}

func (d *decoder) uint64() uint64 {
	p := d.take(8)
	if p == nil {
		return 0
	}
	return binary.BigEndian.Uint64(p)
}

func (d *decoder) contract() (k contractKey) {
	copy(k[:], d.take(len(k)))
	return k
}

// done is the first fault; octets left over are one.
func (d *decoder) done() error {
	if d.err == nil && len(d.b) != 0 {
		d.err = fmt.Errorf("value has %d octets too many", len(d.b))
	}
	return d.err
}

// appendNumbers packs rising numbers as differences.
func appendNumbers(b []byte, ns []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(ns)))
	var last uint64
	for _, n := range ns {
		b = binary.AppendUvarint(b, n-last)
		last = n
	}
	return b
}

func (d *decoder) numbers() []uint64 {
	ns := make([]uint64, 0, tailLen)
	var last uint64
	for range d.count(tailLen) {
		step := d.uvarint()
		if step == 0 || last+step < last {
			d.fail(errors.New("value has numbers that do not rise"))
			return nil
		}
		last += step
		ns = append(ns, last)
	}
	return ns
}

func key64(key string) (uint64, error) {
	if len(key) != 8 {
		return 0, fmt.Errorf("key of %d octets, want 8", len(key))
	}
	return binary.BigEndian.Uint64([]byte(key)), nil
}

func key32(key string) (uint32, error) {
	if len(key) != 4 {
		return 0, fmt.Errorf("key of %d octets, want 4", len(key))
	}
	return binary.BigEndian.Uint32([]byte(key)), nil
}
