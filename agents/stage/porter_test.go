package stage_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
)

// brought runs a Porter in a bubble of its own time, until it has nothing to do.
func brought(t *testing.T, in message.RunInput, open func(tries int) (stage.Stream, error)) []message.StageFault {
	t.Helper()
	var faults []message.StageFault
	var streams []*watched
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		porter := stage.NewPorter(ann, func(context.Context, protocol.AgentID) (stage.Stream, error) {
			tries++
			if tries > 50 {
				t.Error("it is tried without end")
				return nil, &stage.Refusal{Code: protocol.CodeUnknown}
			}
			s, err := open(tries)
			if err != nil {
				return nil, err
			}
			streams = append(streams, &watched{Stream: s})
			return streams[len(streams)-1], nil
		}, func(m protocol.Message) { faults = append(faults, m.Body.(message.StageFault)) }, slog.New(slog.DiscardHandler))
		porter.Send(protocol.Message{Body: message.StageIn{Contract: "c", Launch: "l1", Seller: "site", Inputs: []message.RunInput{in}}})
		time.Sleep(time.Hour) // of the bubble
		porter.Close()
		for i, s := range streams {
			if !s.closed.Load() {
				t.Errorf("exchange %d stays open, and counts against the agent", i)
			}
		}
	})
	return faults
}

// relayed is a stream that a relay carries.
type relayed struct {
	stage.Stream
	most int64
}

func (r relayed) Most() int64 { return r.most }

// watched is a stream that remembers whether it was closed.
type watched struct {
	stage.Stream
	closed atomic.Bool
}

func (w *watched) Most() int64 {
	if r, ok := w.Stream.(relayed); ok {
		return r.most
	}
	return 0
}

func (w *watched) Close() error {
	w.closed.Store(true)
	return w.Stream.Close()
}

func TestPorter(t *testing.T) {
	in := source(t, t.TempDir(), "a", []byte("abc"))
	plain := func(p *place) stage.Stream {
		s, _ := p.link(ann, 0, 0)
		return s
	}
	t.Run("tries until the site can be reached", func(t *testing.T) {
		p := newPlace(t, in.File)
		faults := brought(t, in, func(tries int) (stage.Stream, error) {
			if tries < 10 {
				return nil, errors.New("nobody there")
			}
			return plain(p), nil
		})
		if len(faults) > 0 {
			t.Fatalf("faults %+v", faults)
		}
		same(t, p.work("a"), []byte("abc"))
	})
	t.Run("says why the site does not take it, once, and goes on", func(t *testing.T) {
		p := newPlace(t, in.File)
		p.stop()
		p.free.Store(1)
		p.start()
		faults := brought(t, in, func(tries int) (stage.Stream, error) {
			if tries == 5 {
				p.free.Store(1 << 40)
			}
			return plain(p), nil
		})
		if len(faults) != 1 || !faults[0].Again || !strings.Contains(faults[0].Why, "disk of the site is full") {
			t.Fatalf("faults %+v", faults)
		}
		same(t, p.work("a"), []byte("abc"))
	})
	t.Run("gives up a file that is gone", func(t *testing.T) {
		p, gone := newPlace(t, in.File), in
		gone.Source += "x"
		faults := brought(t, gone, func(int) (stage.Stream, error) { return plain(p), nil })
		if len(faults) != 1 || faults[0].Again || !strings.Contains(faults[0].Why, "cannot be sent") {
			t.Fatalf("faults %+v", faults)
		}
	})
	t.Run("gives up a file that is more than the relay carries", func(t *testing.T) {
		for most, faulty := range map[int64]bool{in.File.Size - 1: true, in.File.Size: false, 0: false} {
			p := newPlace(t, in.File)
			faults := brought(t, in, func(int) (stage.Stream, error) { return relayed{plain(p), most}, nil })
			if faulty != (len(faults) == 1 && !faults[0].Again && strings.Contains(faults[0].Why, "only a relay reaches the site")) || !faulty && len(faults) > 0 {
				t.Errorf("a file of %d bytes, %d carried: faults %+v", in.File.Size, most, faults)
			}
		}
	})
	t.Run("gives up a launch that the site does not know", func(t *testing.T) {
		p := newPlace(t)
		faults := brought(t, in, func(int) (stage.Stream, error) { return plain(p), nil })
		if len(faults) != 1 || faults[0].Again {
			t.Fatalf("faults %+v", faults)
		}
	})
	t.Run("ends without a word when the site takes no more", func(t *testing.T) {
		p := newPlace(t, in.File)
		p.grant.Staging = false // it has everything, and its owner has not heard of it yet
		if faults := brought(t, in, func(int) (stage.Stream, error) { return plain(p), nil }); len(faults) != 0 {
			t.Fatalf("faults %+v", faults)
		}
	})
	t.Run("sends a corrupted file again, three times", func(t *testing.T) {
		p := newPlace(t, in.File)
		p.grant.Inputs[0].BLAKE3 = strings.Repeat("0", 64) // the site sees another file each time
		faults := brought(t, in, func(int) (stage.Stream, error) { return plain(p), nil })
		if len(faults) != 1 || !strings.Contains(faults[0].Why, "was corrupted on the way") {
			t.Fatalf("faults %+v", faults)
		}
		if _, err := os.Stat(p.work("a")); err == nil {
			t.Fatal("it is there")
		}
	})
}
