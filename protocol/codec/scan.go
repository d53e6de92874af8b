package codec

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
)

// Bounds of an encoded message beside its size. An empty part takes two bytes on
// the wire and a hundred in memory, so parts are counted before they are made;
// a small message cannot have enough of them to matter.
const (
	scanFrom = 16 << 10 // bytes
	maxParts = protocol.MaxItems + 2*protocol.MaxOffers + protocol.MaxSpans + (1+protocol.MaxHints)*protocol.MaxReasons + protocol.MaxReceivers
	maxDepth = 8 // nesting of parts; the deepest message has four
)

// scan counts the parts of a large message.
func scan(b []byte) error {
	if len(b) < scanFrom {
		return nil
	}
	left := maxParts
	return count(b, (*wire.Envelope)(nil).ProtoReflect().Descriptor(), &left)
}

// count takes the parts in b from those that are left. It ends because the
// message types do not contain themselves.
func count(b []byte, d protoreflect.MessageDescriptor, left *int) error {
	for len(b) > 0 {
		num, typ, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return fmt.Errorf("not a message: %w", protowire.ParseError(tag))
		}
		size := protowire.ConsumeFieldValue(num, typ, b[tag:])
		if size < 0 {
			return fmt.Errorf("not a message: %w", protowire.ParseError(size))
		}
		field := d.Fields().ByNumber(num)
		if field == nil || field.IsList() || field.Message() != nil {
			if *left--; *left < 0 {
				return fmt.Errorf("a message with more than %d parts", maxParts)
			}
		}
		if field != nil && field.Message() != nil && typ == protowire.BytesType {
			part, _ := protowire.ConsumeBytes(b[tag:])
			if err := count(part, field.Message(), left); err != nil {
				return err
			}
		}
		b = b[tag+size:]
	}
	return nil
}
