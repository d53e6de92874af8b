package words

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

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

// JSONFault says why a text is not the JSON of a value, in words of JSON and not of Go.
func JSONFault(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var date *time.ParseError
	fault := strings.TrimPrefix(err.Error(), "json: ")
	switch {
	case errors.As(err, &kind):
		wants := map[reflect.Kind]string{reflect.Bool: "true or false", reflect.String: "a text", reflect.Slice: "a list", reflect.Struct: "an object", reflect.Map: "an object", reflect.Float64: "a number"}
		fault = strings.TrimPrefix(kind.Field+": want "+cmp.Or(wants[kind.Type.Kind()], "a whole number"), ": ")
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		fault = "not JSON, or cut short"
	case strings.Contains(fault, "UnmarshalJSON"), strings.Contains(fault, "base64"):
		fault = "a time in RFC 3339 or text in base64 is wanted, and there is another value"
	case errors.As(err, &date):
		fault = fmt.Sprintf("%.40q: want a time in RFC 3339", date.Value)
	}
	return errors.New(fault)
}
