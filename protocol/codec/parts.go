package codec

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// parts walks over the fields of one message in the order in which Encode writes
// them: rising, and only those of lists more than once. Anything else makes it
// strange, and is left to the library.
type parts struct {
	b       []byte
	text    string // the same bytes
	at, end int
	num     protowire.Number
	kind    protowire.Type
	again   bool // the field has the number of the one before
	strange bool
}

// next goes to the next field, and reports whether there is one.
func (p *parts) next() bool {
	if p.strange || p.at >= p.end {
		return false
	}
	num, kind, n := protowire.ConsumeTag(p.b[p.at:p.end])
	if n < 0 || num < p.num {
		p.strange = true
		return false
	}
	p.again, p.num, p.kind = num == p.num, num, kind
	p.at += n
	return true
}

// number reads a field that is a varint.
func (p *parts) number() int64 {
	v, n := protowire.ConsumeVarint(p.b[p.at:p.end])
	if n < 0 || p.kind != protowire.VarintType || p.again {
		p.strange = true
		return 0
	}
	p.at += n
	return int64(v)
}

// fixed reads a field of eight bytes.
func (p *parts) fixed() int64 {
	v, n := protowire.ConsumeFixed64(p.b[p.at:p.end])
	if n < 0 || p.kind != protowire.Fixed64Type || p.again {
		p.strange = true
		return 0
	}
	p.at += n
	return int64(v)
}

// span reads a field with a length, and returns where it lies.
func (p *parts) span() (from, to int) {
	size, n := protowire.ConsumeVarint(p.b[p.at:p.end])
	if n < 0 || p.kind != protowire.BytesType || size > uint64(p.end-p.at-n) {
		p.strange = true
		return p.end, p.end
	}
	from = p.at + n
	p.at = from + int(size)
	return from, p.at
}

// item reads a text of a list.
func (p *parts) item() string {
	from, to := p.span()
	s := p.text[from:to]
	p.strange = p.strange || !utf8.ValidString(s)
	return s
}

// string reads a text that comes once.
func (p *parts) string() string {
	p.strange = p.strange || p.again
	return p.item()
}

// bytes reads a copy of bytes that come once; nil if there are none.
func (p *parts) bytes() []byte {
	p.strange = p.strange || p.again
	from, to := p.span()
	return append([]byte(nil), p.b[from:to]...)
}

// alike counts the fields with the number of the one whose value lies here, up to
// one with another number.
func (p *parts) alike() int {
	n := 1
	for at := p.at; ; n++ {
		size := protowire.ConsumeFieldValue(p.num, p.kind, p.b[at:p.end])
		if size < 0 {
			return n
		}
		num, _, tag := protowire.ConsumeTag(p.b[at+size : p.end])
		if tag < 0 || num != p.num {
			return n
		}
		at += size + tag
	}
}

// part is the message in a field.
func (p *parts) part() parts {
	from, to := p.span()
	return parts{b: p.b, text: p.text, at: from, end: to, strange: p.strange}
}

// ended notes how a part ended.
func (p *parts) ended(inner parts) { p.strange = p.strange || inner.strange }
