package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	mrand "math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"time"

	"ramp/agents"
	"ramp/agents/index"
	"ramp/agents/join"
	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// Bounds of a mesh in one process.
const (
	MaxMeshHosts = 1000
	MaxMeshTime  = 10 * time.Minute
	startAtOnce  = 8                // hosts
	settleTime   = 3 * time.Second  // with hardly a new or closed connection, before anything is measured
	lastWay      = 10 * time.Second // for the last presences to arrive
	hardly       = 0.005            // of the connections
)

// MeshConfig is a mesh to measure.
type MeshConfig struct {
	Hosts int
	Time  time.Duration // for which the traffic is counted
	TCP   bool          // instead of QUIC, which needs fewer file descriptors
}

// MeshFigures are what presences cost, for one host and second if not said otherwise.
type MeshFigures struct {
	Hosts       int                 `json:"hosts"`
	Seconds     float64             `json:"seconds"` // measured
	Joined      float64             `json:"joined_s"`
	Connections float64             `json:"connections"` // of a host
	Apart       float64             `json:"apart_s"`     // between two presences of a host
	Kinds       map[string]MeshRate `json:"kinds"`
	CPU         float64             `json:"cpu_percent"` // of a core
	Memory      float64             `json:"memory_mb"`   // of the process, for each host
	Presences   int                 `json:"presences"`   // of all
	Reached     float64             `json:"reached"`     // share of the others that heard one
	Median      float64             `json:"median_ms"`   // until one heard it
	P99         float64             `json:"p99_ms"`
}

// MeshRate is bytes a second.
type MeshRate struct {
	In  float64 `json:"in"`
	Out float64 `json:"out"`
}

type presences struct {
	mu    sync.Mutex
	left  map[presenceKey]time.Time // nil: not measured yet
	over  bool                      // later ones are not measured
	heard []time.Duration
}

type presenceKey struct {
	from    protocol.AgentID
	counter uint64
}

func (p *presences) leaves(from protocol.AgentID, counter uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left != nil && !p.over {
		p.left[presenceKey{from, counter}] = time.Now()
	}
}

func (p *presences) arrives(m protocol.Message) {
	body, ok := m.Body.(message.Presence)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.left[presenceKey{m.Sender, body.Counter}]; ok {
		p.heard = append(p.heard, time.Since(at))
	}
}

// hosts are meshes in this process that announce themselves as sellers do.
type hosts struct {
	cfg   MeshConfig
	ca    *identity.CA
	trust *identity.Trust
	seen  presences
	all   []*mesh.Mesh
	adapt func(i int, c *mesh.Config) // of a host that is to do something else; may be nil
}

// MeasureMesh starts hosts that know each other and counts what their presences cost; note
// gets a line of progress now and then.
func MeasureMesh(ctx context.Context, cfg MeshConfig, note func(string)) (f MeshFigures, err error) {
	h, err := newHosts(cfg)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	begun := time.Now()
	if err := h.start(ctx); err != nil {
		return f, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var speaking sync.WaitGroup
	defer speaking.Wait()
	defer cancel()
	for _, m := range h.all {
		speaking.Go(func() { h.speak(ctx, m) })
	}
	connections, err := h.settle(ctx)
	joined := time.Since(begun) - settleTime
	if connections > mesh.SellerMost && agents.Pause(ctx, mesh.IdleStays) {
		connections, err = h.settle(ctx)
	}
	if err != nil {
		return f, err
	}
	f = MeshFigures{Hosts: cfg.Hosts, Joined: joined.Seconds(), Connections: connections, Apart: h.apart().Seconds()}
	note(fmt.Sprintf("%d hosts with %.0f connections each after %.0f s; measuring for %s", f.Hosts, f.Connections, f.Joined, cfg.Time))
	return f, h.measure(ctx, &f)
}

func newHosts(cfg MeshConfig) (*hosts, error) {
	h := &hosts{cfg: cfg}
	var err error
	if h.ca, err = identity.NewCA("bench-ca", time.Now(), join.CaLifetime, rand.Reader); err != nil {
		return nil, err
	}
	h.trust, err = identity.NewTrust(h.ca.CertPEM(), nil)
	return h, err
}

// apart is the time between two presences of a host.
func (h *hosts) apart() time.Duration { return max(protocol.HeartbeatPeriod, index.Apart(h.cfg.Hosts)) }

// start starts the hosts. The first one introduces the others.
func (h *hosts) start(ctx context.Context) error {
	first, err := h.listen(0, nil)
	if err != nil {
		return err
	}
	h.all = append(h.all, first)
	var group sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	places := make(chan struct{}, startAtOnce)
	for i := 1; i < h.cfg.Hosts; i++ {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			m, err := h.listen(i, first.Addresses())
			if err == nil {
				err = m.Acquainted(ctx) // all at once, hundreds would time each other out
			}
			mu.Lock()
			defer mu.Unlock()
			if m != nil {
				h.all = append(h.all, m)
			}
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (h *hosts) listen(i int, bootstrap []string) (*mesh.Mesh, error) {
	cred, err := h.ca.Credential(fmt.Sprintf("host%d", i), time.Now(), join.LeafLifetime, rand.Reader)
	if err != nil {
		return nil, err
	}
	at := "/ip4/127.0.0.1/udp/0/quic-v1"
	if h.cfg.TCP {
		at = "/ip4/127.0.0.1/tcp/0"
	}
	cfg := mesh.Config{
		Credential: cred, Trust: h.trust, Codec: mesh.Wire(codec.NewOpener(h.trust, 16)), Listen: []string{at}, Bootstrap: bootstrap,
		HearPresence: true, HearCalls: true, Deliver: func(m protocol.Message) error { h.seen.arrives(m); return nil },
	}
	if h.adapt != nil {
		h.adapt(i, &cfg)
	}
	return mesh.Listen(cfg)
}

// speak announces a host until the context is done.
func (h *hosts) speak(ctx context.Context, m *mesh.Mesh) {
	apart := h.apart()
	t := time.NewTimer(mrand.N(apart))
	defer t.Stop()
	for n := uint64(1); ; n++ {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		h.seen.leaves(m.Self(), n)
		m.Send(protocol.Message{
			Performative: protocol.Inform, Receivers: []protocol.AgentID{protocol.Everyone}, Protocol: protocol.ProtocolPresence, Conversation: "presence",
			Body: message.Presence{
				Agent: protocol.KindResource, Counter: n, TTL: 7 * apart / 2, Properties: protocol.Properties{OS: "LINUX", Arch: "X86_64", Cores: 1024},
				Start: 60 * protocol.Credit, Min: 20 * protocol.Credit, Terms: []protocol.Terms{{Bank: h.all[0].Self(), Currency: "CRD"}},
				Modes: []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion},
			},
		})
		t.Reset(apart)
	}
}

// settle waits until the hosts make and close hardly any more connections, and returns how many
// each has. On a busy machine some are always lost and made again.
func (h *hosts) settle(ctx context.Context) (float64, error) {
	for before := 0; ; {
		sum := 0
		for _, m := range h.all {
			sum += m.Peers()
		}
		if math.Abs(float64(sum-before)) <= hardly*float64(sum) {
			return float64(sum) / float64(len(h.all)), nil
		}
		before = sum
		if !agents.Pause(ctx, settleTime) {
			return 0, ctx.Err()
		}
	}
}

func (h *hosts) measure(ctx context.Context, f *MeshFigures) error {
	h.seen.mu.Lock()
	h.seen.left = map[presenceKey]time.Time{}
	h.seen.mu.Unlock()
	before, used, at := h.traffic(), cpu(syscall.RUSAGE_SELF), time.Now()
	if !agents.Pause(ctx, h.cfg.Time) {
		return ctx.Err()
	}
	after, worked := h.traffic(), cpu(syscall.RUSAGE_SELF)-used
	f.Seconds = time.Since(at).Seconds()
	per := f.Seconds * float64(len(h.all))
	f.Kinds = map[string]MeshRate{}
	for kind, t := range after {
		b := before[kind]
		f.Kinds[kind] = MeshRate{float64(t.In-b.In) / per, float64(t.Out-b.Out) / per}
	}
	f.CPU = 100 * worked.Seconds() / per
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	f.Memory = float64(mem.Sys) / (1 << 20) / float64(len(h.all))
	h.seen.mu.Lock()
	h.seen.over = true
	h.seen.mu.Unlock()
	if !agents.Pause(ctx, lastWay) {
		return ctx.Err()
	}
	h.seen.mu.Lock()
	defer h.seen.mu.Unlock()
	f.Presences = len(h.seen.left)
	f.Reached = min(1, float64(len(h.seen.heard))/float64(max(1, f.Presences*(len(h.all)-1))))
	f.Median, f.P99 = Quantile(h.seen.heard, .5), Quantile(h.seen.heard, .99)
	return nil
}

func (h *hosts) traffic() map[string]mesh.Traffic {
	sums := map[string]mesh.Traffic{}
	for _, m := range h.all {
		for kind, t := range m.Traffic() {
			s := sums[kind]
			sums[kind] = mesh.Traffic{In: s.In + t.In, Out: s.Out + t.Out}
		}
	}
	return sums
}

func (h *hosts) close() error {
	var group sync.WaitGroup
	errs := make([]error, len(h.all))
	for i, m := range h.all {
		group.Go(func() { errs[i] = m.Close() })
	}
	group.Wait()
	return errors.Join(errs...)
}
