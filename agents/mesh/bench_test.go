package mesh_test

import (
	"fmt"
	"testing"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// unlimited lets a benchmark be faster than an honest peer.
func unlimited() mesh.Limits {
	l := mesh.DefaultLimits()
	l.Messages = mesh.Rate{PerSecond: 1e9, Burst: 1e9}
	l.Bytes = mesh.Rate{PerSecond: 1e12, Burst: 1e12}
	return l
}

// BenchmarkBare is one frame of 1 KiB and its answer over kept streams.
func BenchmarkBare(b *testing.B) {
	m := newMarket(b)
	answers := make(chan struct{}, 1)
	one := m.start("one", func(c *mesh.Config) {
		c.Bare = func(protocol.AgentID, []byte) { answers <- struct{}{} }
	})
	var two *agent
	two = m.start("two", func(c *mesh.Config) {
		c.Bootstrap = one.Addresses()
		c.Bare = func(from protocol.AgentID, frame []byte) {
			if err := two.SendBare(from, frame); err != nil {
				b.Error(err)
			}
		}
	})
	one.awaitKnown(two.Self())
	two.awaitKnown(one.Self())
	frame := make([]byte, 1024)
	for b.Loop() {
		if err := one.SendBare(two.Self(), frame); err != nil {
			b.Fatal(err)
		}
		<-answers
	}
}

// BenchmarkMessage is the same with messages, encoded and opened.
func BenchmarkMessage(b *testing.B) { benchmarkRound(b, 1) }

// BenchmarkRoundOf20 is one message to 20 agents and all their answers.
func BenchmarkRoundOf20(b *testing.B) { benchmarkRound(b, 20) }

func benchmarkRound(b *testing.B, sellers int) {
	m := newMarket(b)
	user := m.start("user", func(c *mesh.Config) { c.Limits = unlimited() })
	var to []protocol.AgentID
	for i := range sellers {
		a := m.answerer(fmt.Sprintf("seller%d", i), user)
		user.awaitKnown(a.Self())
		to = append(to, a.Self())
	}
	call := kilobyte(to...)
	bytes, err := codec.Encode(call)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(bytes)), "bytes/message")
	for b.Loop() {
		user.Send(call)
		for range sellers {
			if got := <-user.inbox; got.Performative != protocol.CFP {
				b.Fatalf("got %+v", got)
			}
		}
	}
}

// answerer answers every message with one of about the same size.
func (m *market) answerer(name string, by *agent) *agent {
	var a *agent
	ready := make(chan struct{})
	a = m.start(name, func(c *mesh.Config) {
		c.Bootstrap, c.Limits = by.Addresses(), unlimited()
		c.Deliver = func(msg protocol.Message) error {
			<-ready
			answer := kilobyte(msg.Sender)
			answer.InReplyTo = msg.ReplyWith
			a.Send(answer)
			return nil
		}
	})
	close(ready)
	return a
}

// kilobyte is a message of about 1 KiB without anything to verify.
func kilobyte(to ...protocol.AgentID) protocol.Message {
	m := callForProposals()
	m.Receivers = to
	m.Body = message.CallForProposals{Round: 1, Document: make([]byte, 900), Objective: protocol.ObjectiveCost}
	return m
}
