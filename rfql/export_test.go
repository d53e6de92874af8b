package rfql

import "ramp/protocol"

// Ceiling is the maximum cost of all requests together.
func (d Document) Ceiling() protocol.Credits { return d.ceiling }
