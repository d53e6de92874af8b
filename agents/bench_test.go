package agents_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"ramp/agents"
	"ramp/protocol"
)

// BenchmarkRunner is one message through a Runner and its answer out again, with
// a disk that takes no time: what is left is the Runner's own cost.
func BenchmarkRunner(b *testing.B) {
	for _, w := range []string{"saved", "quiet"} {
		b.Run(w, func(b *testing.B) {
			sent := make(chan struct{}, 4096)
			r := agents.NewRunner(agents.Config{
				Store: instant{}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
				Route: func(protocol.Message) { sent <- struct{}{} },
				Load: func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error) {
					return parrot{}, protocol.Output{}, nil
				},
			})
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			m := say(w)
			b.ResetTimer()
			go func() {
				for range b.N {
					if r.Deliver(m) != nil {
						return
					}
				}
			}()
			for range b.N {
				<-sent
			}
			b.StopTimer()
			cancel()
			if err := <-ended; err != nil {
				b.Fatal(err)
			}
		})
	}
}

// parrot answers as echo does, and remembers nothing.
type parrot struct{}

func (parrot) Receive(_ time.Time, m protocol.Message) protocol.Output {
	out := protocol.Output{Send: []protocol.Message{m}}
	if m.Body.(word) == "saved" {
		out.Save = []protocol.Record{{Table: "words", Key: "saved", Value: []byte("x")}}
	}
	return out
}

func (parrot) Wake(time.Time) protocol.Output { return protocol.Output{} }

// instant is a disk that takes no time and keeps nothing.
type instant struct{ protocol.Tables }

func (instant) Each(string, func(string, []byte) error) error { return nil }
func (instant) Append([]protocol.Record) error                { return nil }
