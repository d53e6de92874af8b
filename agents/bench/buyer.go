package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ramp/agents"
	"ramp/agents/background"
	"ramp/agents/control"
	"ramp/agents/mesh"
	"ramp/agents/node"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// Order is an order to a Buyer: auctions, the same traffic bare, or purchases.
type Order struct {
	Mode    string        `json:"mode"`
	Rounds  int           `json:"rounds"`
	Sellers int           `json:"sellers"`
	Time    time.Duration `json:"time"` // how long; 0: Runs times
	Runs    int           `json:"runs"`
	AtOnce  int           `json:"at_once"` // runs of this buyer; 0: 1
	Like    Sizes         `json:"like"`
}

// Sizes describe the messages of one auction: its rounds, the calls that are answered in all of
// them, what the buyer sends besides, and the average sizes.
type Sizes struct {
	Rounds  int `json:"rounds"`
	Calls   int `json:"calls"`
	Extra   int `json:"extra"`
	OutSize int `json:"out_size"`
	InSize  int `json:"in_size"`
}

type traffic struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// AuctionReport is what a buyer did.
type AuctionReport struct {
	Times   []time.Duration `json:"times"`
	Votes   []time.Duration `json:"votes"`
	Settles []time.Duration `json:"settles"`
	Elapsed time.Duration   `json:"elapsed"`
	Out     traffic         `json:"out"`
	In      traffic         `json:"in"`
	Rounds  int             `json:"rounds"` // that were held, in all auctions
	Error   string          `json:"error,omitempty"`
}

// Add sums the reports of buyers that ran side by side.
func (r *AuctionReport) Add(o AuctionReport) {
	r.Times = append(r.Times, o.Times...)
	r.Votes = append(r.Votes, o.Votes...)
	r.Settles = append(r.Settles, o.Settles...)
	r.Elapsed = max(r.Elapsed, o.Elapsed)
	r.Out.Messages += o.Out.Messages
	r.Out.Bytes += o.Out.Bytes
	r.In.Messages += o.In.Messages
	r.In.Bytes += o.In.Bytes
	r.Rounds += o.Rounds
}

// Rate is how many runs there were a second.
func (r AuctionReport) Rate() float64 { return float64(len(r.Times)) / r.Elapsed.Seconds() }

// PerRun is a count for each run.
func (r AuctionReport) PerRun(n uint64) float64 { return float64(n) / float64(max(1, len(r.Times))) }

// Sizes are those that bare exchanges must have.
func (r AuctionReport) Sizes() Sizes {
	runs := max(1, len(r.Times))
	calls, out := int(r.In.Messages)/runs, int(r.Out.Messages)/runs
	return Sizes{
		Rounds: max(1, (r.Rounds+runs/2)/runs), Calls: calls, Extra: max(0, out-calls),
		OutSize: int(r.Out.Bytes / max(1, r.Out.Messages)), InSize: int(r.In.Bytes / max(1, r.In.Messages)),
	}
}

type buyer struct {
	*node.Node
	sellers []protocol.AgentID
	replies chan struct{}
}

// Buyer carries out the orders in in, one after the other, and answers with a report of each.
func Buyer(ctx context.Context, dir string, in io.Reader, out, logTo io.Writer) error {
	replies := make(chan struct{}, 1<<16)
	n, err := node.NewUser(dir, node.CommandLog(logTo), func(c *mesh.Config) {
		c.Bare = func(protocol.AgentID, []byte) { replies <- struct{}{} }
	})
	if err != nil {
		return err
	}
	b := &buyer{Node: n, replies: replies}
	n.Run(context.WithoutCancel(ctx))
	err = b.serve(ctx, in, json.NewEncoder(out))
	return errors.Join(err, n.Stop())
}

// serve carries out orders until there are no more.
func (b *buyer) serve(ctx context.Context, in io.Reader, out *json.Encoder) error {
	if err := b.Mesh.Acquainted(ctx); err != nil {
		return err
	}
	if err := out.Encode(background.Ready{Agent: b.Cred.ID}); err != nil {
		return err
	}
	d := json.NewDecoder(bufio.NewReader(in))
	for {
		var o Order
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r, err := b.obey(ctx, o)
		if err != nil {
			r.Error = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

// obey repeats one kind of run for as long, or as often, as ordered.
func (b *buyer) obey(ctx context.Context, o Order) (AuctionReport, error) {
	var r AuctionReport
	if err := b.meet(ctx, o.Sellers); err != nil {
		return r, err
	}
	before := b.Mesh.Counters()
	begun := time.Now()
	each := make([]AuctionReport, max(1, o.AtOnce))
	errs := make([]error, len(each))
	var group sync.WaitGroup
	for k := range each {
		group.Go(func() {
			for i := 0; errs[k] == nil && (o.Time > 0 && time.Since(begun) < o.Time || i < o.Runs); i++ {
				errs[k] = b.once(ctx, o, &each[k])
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return r, err
	}
	for _, x := range each {
		r.Add(x)
	}
	r.Elapsed = time.Since(begun)
	after := b.Mesh.Counters()
	r.Out = traffic{after.MessagesOut - before.MessagesOut, after.BytesOut - before.BytesOut}
	r.In = traffic{after.MessagesIn - before.MessagesIn, after.BytesIn - before.BytesIn}
	return r, nil
}

func (b *buyer) meet(ctx context.Context, n int) error {
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for range 1000 {
		b.sellers = b.sellers[:0]
		err := b.Runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
			for _, k := range r.(*user.Role).Known(now, protocol.KindResource) {
				b.sellers = append(b.sellers, k.ID)
			}
			return protocol.Output{}
		})
		if err != nil {
			return err
		}
		if len(b.sellers) == n {
			return nil
		}
		<-t.C
	}
	return fmt.Errorf("%d of %d sellers found", len(b.sellers), n)
}

func (b *buyer) once(ctx context.Context, o Order, r *AuctionReport) error {
	if o.Mode == "bare" {
		return b.bare(ctx, o, r)
	}
	now := time.Now().Truncate(time.Second)
	doc, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{{
		Name: "bench", Price: 70 * protocol.Credit, TotalCores: 16, NotBefore: now.Add(time.Hour), End: now.Add(2 * time.Hour), Wall: time.Hour,
	}}}, now)
	if err != nil {
		return err
	}
	id := control.NewPurchaseID(o.Mode == "auction")
	f, stop := b.News.Purchases.Follow(id)
	defer stop()
	order := message.Buy{ID: id, Name: "bench", Document: doc.XML(), Options: message.Options{Rounds: o.Rounds, QuoteOnly: o.Mode == "auction"}}
	err = b.Runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		return r.Receive(now, protocol.Message{Sender: protocol.LocalControl, Body: order})
	})
	for err == nil {
		var p message.Progress
		if p, err = f.Next(ctx); err == nil && p.Done {
			return r.note(p.Purchase)
		}
	}
	return err
}

func (r *AuctionReport) note(p message.Purchase) error {
	if p.State != user.StateQuoted && !p.Settled {
		return fmt.Errorf("%s: %s (%v)", p.State, p.Why, p.Reasons)
	}
	ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
	r.Times = append(r.Times, ms(p.AuctionMS))
	r.Rounds += len(p.Rounds)
	if p.Settled {
		r.Votes = append(r.Votes, ms(p.VoteMS))
		r.Settles = append(r.Settles, ms(p.SettleMS))
	}
	return nil
}

// bareTime is how long an exchange of bare frames may take.
const bareTime = time.Minute

// bare exchanges frames of the same number and size over the same kind of streams.
func (b *buyer) bare(ctx context.Context, o Order, r *AuctionReport) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bareTime, errors.New("a seller does not answer a bare frame"))
	defer cancel()
	begun := time.Now()
	ask := bareFrame(o.Like.OutSize, o.Like.InSize)
	for round := range o.Like.Rounds {
		calls := o.Like.Calls*(round+1)/o.Like.Rounds - o.Like.Calls*round/o.Like.Rounds
		for i := range calls {
			if err := b.Mesh.SendBare(b.sellers[i%len(b.sellers)], ask); err != nil {
				return err
			}
		}
		for range calls {
			select {
			case <-b.replies:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	r.Times = append(r.Times, time.Since(begun))
	tell := bareFrame(o.Like.OutSize, 0)
	for i := range o.Like.Extra {
		if err := b.Mesh.SendBare(b.sellers[i%len(b.sellers)], tell); err != nil {
			return err
		}
	}
	return nil
}

// bareFrame is a frame that asks for an answer of a size; 0: for none.
func bareFrame(size, answer int) []byte {
	f := make([]byte, max(4, size))
	binary.BigEndian.PutUint32(f, uint32(answer))
	return f
}
