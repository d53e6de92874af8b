package forecast_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/resource/forecast"
)

func TestADecodedForecastGoesOnAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &forecast.Forecast{}
		teach := func(to ...*forecast.Forecast) {
			for _, x := range regime(t, rapid.IntRange(0, 200).Draw(t, "n")) {
				for _, f := range to {
					f.Started(int(x%80), x, f.WaitBound(int(x%80), forecast.Usual()))
					f.Ended(int(x%80), 1000, x)
				}
			}
		}
		teach(f)
		g, err := forecast.Decode(f.Encode())
		if err != nil {
			t.Fatal(err)
		}
		teach(f, g)
		if !bytes.Equal(f.Encode(), g.Encode()) {
			t.Fatal("after the same observations they differ")
		}
		for c := range forecast.Clusters {
			x, ok := f.Waits(c).Bound(forecast.Usual())
			if y, k := g.Waits(c).Bound(forecast.Usual()); x != y || ok != k {
				t.Fatalf("bounds %d and %d", x, y)
			}
		}
	})
}

func TestBytesThatAreNoStateAreRefused(t *testing.T) {
	good := taught().Encode()
	for name, b := range map[string][]byte{
		"nothing":            {},
		"another version":    append([]byte{2}, good[1:]...),
		"cut short":          good[:len(good)-1],
		"cut in a history":   good[:20],
		"too long":           append(bytes.Clone(good), 0),
		"a number of ones":   {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"a number too long":  {1, 0x80, 0},
		"too long a history": {1, 0, 0, 0x81, 0x80, 1},
	} {
		if f, err := forecast.Decode(b); !errors.Is(err, forecast.ErrState) || f != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	state := func(wait, told, held uint64) []byte {
		b := binary.AppendUvarint([]byte{1, 0, 0, 1}, wait) // one wait in the first history
		b = append(b, make([]byte, 7*3)...)                 // the others are empty
		b = binary.AppendUvarint(binary.AppendUvarint(b, told), held)
		return append(b, make([]byte, 3*2)...)
	}
	if _, err := forecast.Decode(state(forecast.MaxValue, 2, 2)); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"a wait too long":        state(forecast.MaxValue+1, 2, 2),
		"more held than told":    state(5, 2, 3),
		"more told than counted": state(5, 1<<60, 0),
	} {
		if _, err := forecast.Decode(b); !errors.Is(err, forecast.ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheLargestStateHasTheStatedSize(t *testing.T) {
	f := &forecast.Forecast{}
	for range forecast.MaxHistory {
		for _, cores := range []int{1, 5, 17, 65} {
			f.Started(cores, 1<<40, forecast.Bound{})
			f.Ended(cores, 1, 1<<40)
		}
	}
	if n := len(f.Encode()); n > 800_000 {
		t.Errorf("%d bytes", n)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{1})
	f.Add((&forecast.Forecast{}).Encode())
	f.Add(taught().Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := forecast.Decode(b)
		if err != nil {
			if !errors.Is(err, forecast.ErrState) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if !bytes.Equal(x.Encode(), b) {
			t.Fatal("a state has two encodings")
		}
		for range 5 { // it must learn on
			x.Started(1, 1<<40, x.WaitBound(1, forecast.Usual()))
			x.Ended(1, 10, 10)
		}
	})
}
