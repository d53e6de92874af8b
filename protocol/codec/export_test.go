package codec

import "google.golang.org/protobuf/reflect/protoreflect"

// Unmarshal is what Open reads messages with, before it checks them.
var Unmarshal = unmarshal

// Rows are the names of the body types in the table, with their fields of the
// envelope.
func Rows() map[string]protoreflect.FieldNumber {
	rows := map[string]protoreflect.FieldNumber{}
	for body, r := range bodies.byType {
		rows[body.Name()] = r.field
	}
	return rows
}
