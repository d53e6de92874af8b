package index

import (
	"encoding/json"
	"time"

	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// Pack writes records for a journal.
func Pack(list []message.Record) []byte {
	signed := make([][]byte, len(list))
	for i, r := range list {
		signed[i] = r.Signed
	}
	b, err := json.Marshal(signed)
	if err != nil {
		panic(err) // bytes can always be written
	}
	return b
}

// Unpack reads what Pack has written. Records whose certificate is no longer valid are left out.
func Unpack(trust *identity.Trust, b []byte, now time.Time) (list []message.Record, err error) {
	var signed [][]byte
	if err := json.Unmarshal(b, &signed); err != nil {
		return nil, err
	}
	for _, b := range signed[:min(len(signed), Shortlist)] {
		if r, err := codec.OpenRecord(trust, b, now); err == nil {
			list = append(list, r)
		}
	}
	return list, nil
}
