package stage

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"ramp/agents"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of a Porter.
const (
	maxPorters   = 4 // launches staged at once
	maxCorrupted = 3 // corrupted transfers until a launch is given up
)

// Porter sends inputs to sites. It is a user role's correspondent for files.
type Porter struct {
	agent   protocol.AgentID
	open    func(ctx context.Context, to protocol.AgentID) (Stream, error)
	deliver func(m protocol.Message)
	log     *slog.Logger
	places  chan struct{}
	wg      sync.WaitGroup

	mu   sync.Mutex
	work map[string]context.CancelFunc // by launch
	over bool

	saving sync.Mutex     // held while a file is written
	saves  map[string]int // how often each file was to be written
}

// NewPorter makes a Porter, which opens exchanges with sites by open and reports
// faults to its role by deliver.
func NewPorter(agent protocol.AgentID, open func(ctx context.Context, to protocol.AgentID) (Stream, error),
	deliver func(m protocol.Message), log *slog.Logger) *Porter {
	return &Porter{agent: agent, open: open, deliver: deliver, log: log, places: make(chan struct{}, maxPorters), work: map[string]context.CancelFunc{}, saves: map[string]int{}}
}

// Send starts or stops the staging of a launch, and returns at once.
func (p *Porter) Send(m protocol.Message) {
	switch r := m.Body.(type) {
	case message.StageIn:
		p.begin(r.Launch, func(ctx context.Context) { p.bring(ctx, r) })
	case message.StageOut:
		p.begin("out "+r.Launch, func(ctx context.Context) { p.fetchOut(ctx, r) })
	case message.SaveFile:
		p.save(r)
	case message.StageStop:
		p.mu.Lock()
		defer p.mu.Unlock()
		if stop := p.work[r.Launch]; stop != nil {
			stop()
		}
	}
}

// begin does what a launch needs, unless that is under way.
func (p *Porter) begin(launch string, work func(ctx context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.work[launch] != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	p.work[launch] = stop
	p.wg.Go(func() {
		defer stop()
		work(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.work, launch)
	})
}

// Close stops all staging and waits for it.
func (p *Porter) Close() {
	p.mu.Lock()
	p.over = true
	for _, stop := range p.work {
		stop()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// bring retries until the site has all inputs.
func (p *Porter) bring(ctx context.Context, r message.StageIn) {
	rest, corrupted, told := protocol.RetryFirst, 0, ""
	for {
		select {
		case p.places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := p.once(ctx, r)
		<-p.places
		if errors.Is(err, errCorrupted) {
			corrupted++
		}
		switch {
		case err == nil || ctx.Err() != nil || overtaken(err):
			return
		case hopeless(err) || corrupted >= maxCorrupted:
			p.report(message.StageFault{Launch: r.Launch, Why: protocol.Words(err.Error())})
			return
		case refused(err) && err.Error() != told:
			told = err.Error()
			p.report(message.StageFault{Launch: r.Launch, Why: protocol.Words(told), Again: true})
		}
		p.log.Warn("files: cannot stage the inputs now; trying again", "launch", r.Launch, "site", r.Seller.Name(), "err", err)
		if !agents.Pause(ctx, rest) {
			return
		}
		rest = min(2*rest, protocol.RetryMost)
	}
}

// refused reports whether the site gave a reason.
func refused(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Code != protocol.CodeBusy
}

// overtaken reports whether the site takes no more inputs: it has all, or it reports by
// itself why the launch has failed.
func overtaken(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Code == protocol.CodeExpired
}

// hopeless reports whether trying again cannot help.
func hopeless(err error) bool {
	var r *Refusal
	return errors.Is(err, ErrSource) || errors.Is(err, ErrRelayed) || errors.As(err, &r) && r.Code != protocol.CodeUnavailable && r.Code != protocol.CodeBusy
}

// once sends every input over one exchange.
func (p *Porter) once(ctx context.Context, r message.StageIn) error {
	return Exchange(ctx, p.open, r.Seller, func(s Stream) error {
		k := Key{Contract: r.Contract, Unit: r.Unit, Launch: r.Launch}
		for _, in := range r.Inputs {
			if err := Put(s, k, in); err != nil {
				return err
			}
		}
		return nil
	})
}

// Exchange does work over an exchange with a site, which ends with ctx.
func Exchange(ctx context.Context, open func(context.Context, protocol.AgentID) (Stream, error), site protocol.AgentID, work func(s Stream) error) error {
	s, err := open(ctx, site)
	if err != nil {
		return err
	}
	defer s.Close()                                          //nolint:errcheck // all was answered; a stream that stays open counts against the agent
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // ends blocked reads and writes
	defer stop()
	return work(s)
}

func (p *Porter) report(body protocol.Body) {
	p.deliver(protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalFiles, Receivers: []protocol.AgentID{p.agent}, Protocol: protocol.ProtocolQueue, Body: body})
}
