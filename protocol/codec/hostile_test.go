package codec_test

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"ramp/protocol"
	"ramp/protocol/codec"
)

// Whatever a peer writes into any field of any message, encoded by a program of its own: the
// message is refused, or no text in it begins a line or controls a terminal.
func TestNoFieldOfAPeerControlsATerminal(t *testing.T) {
	m, word := newMarket(t), regexp.MustCompile(`word-[0-9]+|CUR[A-Z]|agent-[0-9]+@|"c1"|<xml n="[0-9]+"/>`)
	tried, refused := 0, 0
	for _, s := range samples() {
		whole, err := codec.Encode(m.filled(s))
		must(t, err)
		for _, at := range word.FindAllIndex(whole, -1) {
			for _, text := range []string{"\n\n\n\n", "\x1b[2J", "\u202e\a", "\u009b2", "\u2028\r", "\xff\xfe\xff\xfe", "\x00\x7f\x00\x7f"} {
				b := bytes.Clone(whole)
				copy(b[at[0]:at[1]], text) // of the same length, so that the message stays whole
				tried++
				got, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
				if err != nil {
					refused++
					if line := err.Error(); protocol.Harmless(line) != line {
						t.Errorf("%s: the refusal of %.20q controls a terminal: %q", s.body.Kind(), text, line)
					}
					continue
				}
				harmless(t, reflect.ValueOf(got), s.body.Kind())
			}
		}
	}
	if tried < 500 || refused < tried/2 {
		t.Errorf("%d of %d messages were refused: the texts were not found in them", refused, tried)
	}
	t.Logf("%d of %d messages refused", refused, tried)
}

// exact reports whether a field is passed on byte by byte: a program gets its arguments as
// they were written, and whoever shows them cleans them.
func exact(path string) bool {
	return path == "launch.Body.Command" || path == "launch.Body.Params.Value"
}

// harmless fails for a text that a terminal obeys.
func harmless(t *testing.T, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			harmless(t, v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				harmless(t, v.Field(i), path+"."+f.Name)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // a document, which has its own reader
		}
		for i := range v.Len() {
			harmless(t, v.Index(i), path)
		}
	case reflect.String:
		if s := v.String(); !exact(path) && (protocol.Harmless(s) != s || !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError)) {
			t.Errorf("%s is accepted as %q", path, s)
		}
	}
}
