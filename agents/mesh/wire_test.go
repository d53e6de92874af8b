package mesh_test

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/mesh"
)

func TestNoSequenceNumberIsAdmittedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w mesh.Window
		seen, highest := map[uint64]bool{}, uint64(0)
		base := rapid.Uint64Range(0, 1<<63).Draw(t, "base")
		for range rapid.IntRange(1, 300).Draw(t, "length") {
			n := base + rapid.Uint64Range(0, 3*mesh.ReplayWindow).Draw(t, "n")
			want := n != 0 && !seen[n] && n+mesh.ReplayWindow > highest
			if got := w.Admit(n); got != want {
				t.Fatalf("admit %d after highest %d: %v, want %v", n, highest, got, want)
			}
			seen[n], highest = true, max(highest, n)
		}
	})
}

func TestAnAllowanceIsItsBurstAndThenItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := mesh.Rate{PerSecond: rapid.Float64Range(1, 1000).Draw(t, "rate"), Burst: rapid.Float64Range(1, 1000).Draw(t, "burst")}
		var b mesh.Bucket
		start := time.Unix(1_000_000, 0)
		now, taken := start, 0.0
		for range rapid.IntRange(1, 500).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "pause")))
			if b.Take(now, 1, r) {
				taken++
			}
			if most := r.Burst + now.Sub(start).Seconds()*r.PerSecond; taken > most+1e-6 {
				t.Fatalf("%g taken after %s, want at most %g", taken, now.Sub(start), most)
			}
		}
		if taken == 0 {
			t.Fatal("nothing was taken from a full allowance")
		}
	})
}

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
