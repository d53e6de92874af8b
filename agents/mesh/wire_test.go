package mesh_test

import (
	"bytes"
	"testing"

	"ramp/agents/mesh"
)

func TestALongFrameIsReadWhole(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 20_000)
	if got, err := mesh.ReadFrame(frame(want), len(want)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
	}
	if _, err := mesh.ReadFrame(frame(want), len(want)-1); err == nil {
		t.Error("a frame over the limit was read")
	}
	if _, err := mesh.ReadFrame(frame(want)[:len(want)], len(want)); err == nil {
		t.Error("a frame that was cut short was read")
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add(frame([]byte("hello")))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := mesh.ReadFrame(b, 1<<17)
		if err != nil {
			return
		}
		if len(got) > 1<<17 || !bytes.Contains(b, got) {
			t.Errorf("%d bytes that were not sent", len(got))
		}
		if again, err := mesh.ReadFrame(frame(got), 1<<17); err != nil || !bytes.Equal(again, got) {
			t.Errorf("read again: %d bytes, %v", len(again), err)
		}
	})
}

func FuzzCard(f *testing.F) {
	m := newMarket(f)
	f.Add(cardOf(m.credential("alice")))
	f.Add([]byte{1, 1, 'c', 1, 8, 4, 127, 0, 0, 1, 6, 15, 161})
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		canonical, err := mesh.RecodeCard(b)
		if err != nil {
			return
		}
		again, err := mesh.RecodeCard(canonical)
		if err != nil || !bytes.Equal(again, canonical) {
			t.Errorf("%x became %x: %v", canonical, again, err)
		}
	})
}

func FuzzIntroductions(f *testing.F) {
	id := append([]byte{0x12, 0x20}, bytes.Repeat([]byte{7}, 32)...)
	one := append(frame(id), 1, 8, 4, 127, 0, 0, 1, 6, 15, 161)
	f.Add(append([]byte{1}, frame(one)...))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, b []byte) {
		canonical, err := mesh.RecodeIntroductions(b)
		if err != nil {
			return
		}
		again, err := mesh.RecodeIntroductions(canonical)
		if err != nil || !bytes.Equal(again, canonical) {
			t.Errorf("%x became %x: %v", canonical, again, err)
		}
	})
}
