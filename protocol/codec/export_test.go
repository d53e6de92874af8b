package codec

import (
	"time"

	"google.golang.org/protobuf/proto"

	"ramp/protocol"
)

// What the tests of package codec_test see of the inside.
const Quickest = quickest

func ReadQuick(b []byte) (protocol.Message, bool) { return readQuick(b) }

func WriteQuick(m protocol.Message) ([]byte, bool) { return writeQuick(m, m.Sender) }

func WriteSlowly(m protocol.Message) ([]byte, error) { return encodeSlowly(m, m.Sender) }

func WriteUnchecked(m protocol.Message) ([]byte, error) {
	e, err := toWire(m)
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(e)
}

func (o Opener) OpenSlowly(b []byte, at time.Time) (protocol.Message, error) {
	return o.openSlowly(b, "", at)
}
