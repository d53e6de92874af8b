package mesh_test

import (
	"bytes"
	"testing"

	"ramp/agents/mesh"
)

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
