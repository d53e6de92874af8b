package words

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"ramp/protocol"
)

// PrintJSON writes a value as JSON with an indent, and a newline. The same value is read from
// it, but no terminal obeys a text in it, and none shows it in another direction.
func PrintJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escaped(b.Bytes()))
	return err
}

// escaped writes those characters of a JSON text as \uXXXX that only Harmless would remove;
// encoding/json does so below the space.
func escaped(text []byte) []byte {
	var b []byte
	for _, c := range string(text) {
		if c >= 0x7f && protocol.Harmless(string(c)) == " " {
			b = fmt.Appendf(b, `\u%04x`, c)
		} else {
			b = append(b, string(c)...)
		}
	}
	return b
}
