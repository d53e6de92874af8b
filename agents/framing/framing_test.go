package framing_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"ramp/agents/framing"
)

type forever struct{}

func (forever) SetReadDeadline(time.Time) error { return nil }

func read(b []byte, limit int) ([]byte, error) {
	return framing.Read(forever{}, bufio.NewReader(bytes.NewReader(b)), limit)
}

func frame(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

func TestALongFrameIsReadWhole(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 20_000)
	if got, err := read(frame(want), len(want)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
	}
	if _, err := read(frame(want), len(want)-1); err == nil {
		t.Error("a frame over the limit was read")
	}
	if _, err := read(frame(want)[:len(want)], len(want)); err == nil {
		t.Error("a frame that was cut short was read")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(frame([]byte("hello")))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := read(b, 1<<17)
		if err != nil {
			return
		}
		if len(got) > 1<<17 || !bytes.Contains(b, got) {
			t.Errorf("%d bytes that were not sent", len(got))
		}
		if again, err := read(frame(got), 1<<17); err != nil || !bytes.Equal(again, got) {
			t.Errorf("read again: %d bytes, %v", len(again), err)
		}
	})
}
