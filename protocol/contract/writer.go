package contract

import (
	"math/big"
	"time"
)

// writer writes DER backwards: the last member of a value first, so that its length is known
// when it is written in front.
type writer struct {
	free []byte // before what is written
	back []byte // what is written; both share one piece of memory
}

func (w *writer) bytes() []byte { return w.back }

// raw writes a value that is in DER already, or a part of one.
func (w *writer) raw(b []byte) {
	if len(b) > len(w.free) {
		more := make([]byte, len(b)+max(256, 2*len(w.back))+len(w.back))
		at := len(more) - len(w.back)
		copy(more[at:], w.back)
		w.free, w.back = more[:at], more[at:]
	}
	at := len(w.free) - len(b)
	copy(w.free[at:], b)
	w.back = w.free[at : len(w.free)+len(w.back)]
	w.free = w.free[:at]
}

// value writes a value around its members.
func (w *writer) value(tag byte, members func()) {
	before := len(w.back)
	members()
	w.head(tag, len(w.back)-before)
}

// octets writes a value with this content.
func (w *writer) octets(tag byte, content []byte) {
	w.raw(content)
	w.head(tag, len(content))
}

func (w *writer) head(tag byte, length int) {
	b := [5]byte{4: byte(length)}
	at := 4
	if length >= 0x80 {
		for length >>= 8; length > 0; length >>= 8 {
			at--
			b[at] = byte(length)
		}
		at--
		b[at] = 0x80 | byte(4-at)
	}
	w.raw(append([]byte{tag}, b[at:]...))
}

func (w *writer) object(id objectID) { w.octets(tagOID, []byte(id)) }

// integer writes a number that is not negative, as serial numbers are.
func (w *writer) integer(n *big.Int) {
	b := n.Bytes()
	if len(b) == 0 || b[0] >= 0x80 {
		b = append([]byte{0}, b...)
	}
	w.octets(tagInteger, b)
}

// time writes whole seconds, as RFC 5652 §11.3 wants them.
func (w *writer) time(t time.Time) {
	t = t.UTC()
	if y := t.Year(); y < 1950 || y >= 2050 {
		w.octets(tagGeneralizedTime, t.AppendFormat(nil, "20"+utcTime))
		return
	}
	w.octets(tagUTCTime, t.AppendFormat(nil, utcTime))
}
