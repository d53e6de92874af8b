package codec

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
)

// maxParts bounds an encoded message in addition to its size. An empty part takes two
// bytes on the wire and a hundred in memory.
const maxParts = protocol.MaxItems + 2*protocol.MaxOffers + protocol.MaxSpans + (1+protocol.MaxHints)*protocol.MaxReasons + protocol.MaxReceivers

// layout is what scan has to know of a message type: its fields by number.
type layout []place

// place is a field of a layout. Its zero value is a field that is not known.
type place struct {
	plain bool   // a scalar that comes once: no part
	part  layout // of a message
}

var envelope = layoutOf((*wire.Envelope)(nil).ProtoReflect().Descriptor())

// layoutOf ends because no message type contains itself.
func layoutOf(d protoreflect.MessageDescriptor) layout {
	l := layout{}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		for len(l) <= int(f.Number()) {
			l = append(l, place{})
		}
		p := place{plain: !f.IsList() && f.Message() == nil}
		if f.Message() != nil {
			p.part = layoutOf(f.Message())
		}
		l[f.Number()] = p
	}
	return l
}

// scan counts the parts of a message before they are allocated, and refuses tags and
// numbers that the generated code would read in its own way.
func scan(b []byte) error {
	left := maxParts
	return count(b, envelope, &left)
}

// count subtracts the parts in b from those that are left.
func count(b []byte, l layout, left *int) error {
	for len(b) > 0 {
		num, tag, length, size := next(b)
		if size < 0 {
			return fmt.Errorf("not a message: %w", protowire.ParseError(size))
		}
		var field place
		if int(num) < len(l) {
			field = l[num]
		}
		if !field.plain {
			if *left--; *left < 0 {
				return fmt.Errorf("a message with more than %d parts", maxParts)
			}
		}
		if field.part != nil && length > 0 {
			if err := count(b[tag+length:tag+size], field.part, left); err != nil {
				return err
			}
		}
		b = b[tag+size:]
	}
	return nil
}

// next returns the field number at the start of b, and the bytes that its tag, the length
// of its value (0 unless it has one) and the whole value take; size is below zero if b
// does not begin with a field.
func next(b []byte) (num protowire.Number, tag, length, size int) {
	num, typ, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return 0, 0, 0, tag
	}
	if typ != protowire.BytesType {
		return num, tag, 0, protowire.ConsumeFieldValue(num, typ, b[tag:])
	}
	n, length := protowire.ConsumeVarint(b[tag:])
	switch {
	case length < 0:
		return 0, 0, 0, length
	case n > uint64(len(b)-tag-length):
		return 0, 0, 0, protowire.ConsumeFieldValue(num, typ, b[tag:])
	}
	return num, tag, length, length + int(n)
}
