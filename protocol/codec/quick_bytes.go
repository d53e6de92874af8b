package codec

import "google.golang.org/protobuf/encoding/protowire"

// begin begins a field that is a message; end needs where it began.
func (w *quickWriter) begin(num protowire.Number) (from int) {
	w.b = append(protowire.AppendTag(w.b, num, protowire.BytesType), 0)
	return len(w.b)
}

// end writes the length before the part; a part of 128 bytes or more moves to
// make room for it.
func (w *quickWriter) end(from int) {
	n := len(w.b) - from
	if n < 0x80 {
		w.b[from-1] = byte(n)
		return
	}
	size := protowire.SizeVarint(uint64(n))
	w.b = append(w.b, make([]byte, size-1)...)
	copy(w.b[from-1+size:], w.b[from:from+n])
	protowire.AppendVarint(w.b[:from-1], uint64(n))
}

// text writes a field that is left out if it is empty.
func (w *quickWriter) text(num protowire.Number, s string) {
	if s != "" {
		w.item(num, s)
	}
}

// item writes a text of a list.
func (w *quickWriter) item(num protowire.Number, s string) {
	w.b = protowire.AppendString(protowire.AppendTag(w.b, num, protowire.BytesType), s)
}

func (w *quickWriter) number(num protowire.Number, v int64) {
	if v != 0 {
		w.b = protowire.AppendVarint(protowire.AppendTag(w.b, num, protowire.VarintType), uint64(v))
	}
}

func (w *quickWriter) fixed(num protowire.Number, v int64) {
	if v != 0 {
		w.b = protowire.AppendFixed64(protowire.AppendTag(w.b, num, protowire.Fixed64Type), uint64(v))
	}
}

func (w *quickWriter) truth(num protowire.Number, v bool) {
	if v {
		w.number(num, 1)
	}
}
