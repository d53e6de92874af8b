package codec

import "ramp/protocol/codec/wire"

// What the tests of package codec_test see of the inside.
const Quickest = quickest

func ReadQuick(b []byte) (*wire.Envelope, bool) { return readQuick(b) }

func Marshal(e *wire.Envelope) ([]byte, error) { return marshal(e) }
