package index_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ramp/agents"
	"ramp/agents/index"
	"ramp/agents/markettest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// fullDisk refuses to write while it is full.
type fullDisk struct {
	markettest.Store
	full atomic.Bool
}

func (d *fullDisk) Append(records []protocol.Record) error {
	if d.full.Load() {
		return errors.New("no space left on device")
	}
	return d.Store.Append(records)
}

// teller is a role that announces itself and saves what it is told.
type teller struct{}

func (teller) Receive(_ time.Time, m protocol.Message) protocol.Output {
	if m.Protocol == protocol.ProtocolIndex {
		return protocol.Output{}
	}
	return protocol.Output{Save: []protocol.Record{{Table: "t", Key: "k", Value: []byte("v")}}}
}

func (teller) Wake(time.Time) protocol.Output { return protocol.Output{} }

// While the disk of an index is full, its log has one line about that, queries are refused
// with a reason, and afterwards the index still has its records.
func TestAnIndexKeepsItsRecordsWhenTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		sent := make(chan protocol.Message, 64)
		d := &fullDisk{Store: markettest.Store{}}
		self := homes(1, 1)[0]
		k := &index.Keeper{Self: self, Serves: true}
		r := agents.NewRunner(agents.Config{
			Store: d, Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil)), Route: func(m protocol.Message) { sent <- m },
			Load: func(_ protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
				role, out := k.Around(now, teller{}, protocol.Output{})
				return role, out, nil
			},
			Unavailable: func(m protocol.Message) (protocol.Message, bool) { return agents.Unavailable(self.ID, m) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		say := func(act protocol.Performative, about string, body protocol.Body) {
			if err := r.Deliver(protocol.Message{Performative: act, Sender: id("s", 1), Protocol: about, Conversation: "c", Body: body}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		mine := record(1, 16, "ca")
		mine.Issued = time.Now()
		say(protocol.Request, protocol.ProtocolIndex, message.Records{List: []message.Record{mine}})
		if m := <-sent; m.Performative != protocol.Agree {
			t.Fatalf("a record was not kept: %+v", m)
		}
		d.full.Store(true)
		say(protocol.Request, protocol.ProtocolRequest, message.BalanceQuery{})
		fetch := message.IndexFetch{Sellers: []string{id("s", 1).Fingerprint()}}
		for range 3 {
			say(protocol.QueryRef, protocol.ProtocolIndex, fetch)
		}
		for len(sent) > 0 {
			if m := <-sent; m.Performative != protocol.Failure {
				t.Errorf("answered while the disk was full: %+v", m)
			}
		}
		d.full.Store(false)
		time.Sleep(time.Minute) // of virtual time
		synctest.Wait()
		say(protocol.QueryRef, protocol.ProtocolIndex, fetch)
		if got, ok := (<-sent).Body.(message.Records); !ok || len(got.List) != 1 {
			t.Errorf("after the disk was full the index has %+v", got)
		}
		if n := strings.Count(log.String(), "cannot write the store"); n != 1 {
			t.Errorf("%d lines about the disk:\n%s", n, log.String())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
