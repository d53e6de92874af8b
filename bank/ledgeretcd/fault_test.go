package ledgeretcd_test

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"ramp/bank/ledger"
	"ramp/bank/ledgeretcd"
	"ramp/bank/ledgeretcd/etcdtest"
)

// Sizes of the test under faults; the long form is that of make test-etcd.
const (
	longOperations = 100_000
	longKills      = 20
	clients        = 24
	bankAgents     = 3
	answerTime     = time.Second
	frozenTime     = 4 * time.Second
	rebuildTime    = 5 * time.Minute
)

// plan is how often each fault is made.
type plan struct {
	operations                                        int64
	kills, etcdKills, freezes, etcdFreezes, bystander int
}

// TestLedgerUnderFaults kills and freezes who leads the bank and who leads the
// cluster while clients add to accounts and read them. What was acknowledged is
// there once, in an order that no client could have told from one machine.
func TestLedgerUnderFaults(t *testing.T) {
	p := plan{operations: 2000, kills: 2, etcdKills: 1, freezes: 1}
	if os.Getenv(etcdtest.Demanded) != "" {
		p = plan{longOperations, longKills, 5, 3, 3, 3}
	} else if testing.Short() {
		t.Skip("faults take half a minute")
	}
	w := newWorld(t)
	w.run(p)
	var restored []time.Duration
	for range p.kills {
		restored = append(restored, w.fault("kill the leading bank agent", w.killLeader))
	}
	slices.Sort(restored)
	t.Logf("leader killed %d times: settled again after %s (median; the aim is 5s), %s..%s", p.kills, restored[len(restored)/2], restored[0], restored[len(restored)-1])
	w.several("kill etcd's leader", p.etcdKills, w.killEtcd)
	w.several("freeze the leading bank agent", p.freezes, w.freezeLeader)
	w.several("freeze etcd's leader", p.etcdFreezes, w.freezeEtcd(true))
	w.several("freeze another member of etcd", p.bystander, w.freezeEtcd(false))
	history := w.finish(p.operations)
	kills := p.kills + p.etcdKills
	fmt.Printf("etcd %s: %d operations, %d kills\n", etcdtest.Version(t), len(history), kills)
}

// world is a cluster, bank agents, and clients of theirs.
type world struct {
	*testing.T
	cluster *etcdtest.Cluster
	dir     string
	agents  [bankAgents]*exec.Cmd
	leader  atomic.Pointer[leading]
	begin   time.Time
	acked   atomic.Int64 // when the last acknowledged add was asked for
	done    atomic.Int64 // operations
	stop    atomic.Bool
	clients sync.WaitGroup
	mu      sync.Mutex
	history []operation
}

type leading struct {
	agent   int
	address string
}

// operation is what a client did; without an answer it returned never.
type operation struct {
	client, account int
	ref             string // of an add
	call, back      int64
	answered        bool
	balance         int64
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, cluster: startCluster(t), dir: t.TempDir(), begin: time.Now()}
	t.Cleanup(func() {
		for _, a := range w.agents {
			_ = a.Process.Kill()
			_ = a.Wait()
		}
	})
	for i := range w.agents {
		w.startAgent(i)
	}
	return w
}

func (w *world) startAgent(i int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=agent%d", agentEnv, i), directoryEnv+"="+w.dir, "GOMAXPROCS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(fmt.Sprintf("%s/agent%d.log", w.dir, i), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.agents[i] = cmd
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if address, ok := strings.CutPrefix(lines.Text(), "leading "); ok {
				w.leader.Store(&leading{i, address})
			}
		}
	}()
}

// run starts the clients.
func (w *world) run(p plan) {
	for i := range clients {
		w.clients.Go(func() { w.client(i, rand.New(rand.NewPCG(uint64(i), uint64(p.operations)))) })
	}
	w.settled()
}

func (w *world) client(i int, rng *rand.Rand) {
	var mine []operation
	var c net.Conn
	var lines *bufio.Scanner
	for n := 0; !w.stop.Load(); n++ {
		at := w.leader.Load()
		if at == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		if c == nil {
			var err error
			if c, err = net.DialTimeout("tcp", at.address, answerTime); err != nil {
				c = nil
				time.Sleep(time.Millisecond)
				continue
			}
			lines = bufio.NewScanner(c)
		}
		op := operation{client: i, account: rng.IntN(accounts), call: int64(time.Since(w.begin))}
		line := "read " + string(account(op.account))
		if rng.IntN(5) > 0 {
			op.ref = fmt.Sprintf("%d/%d", i, n)
			line = "add " + string(account(op.account)) + " " + op.ref
		}
		w.ask(c, lines, line, &op)
		mine = append(mine, op)
		w.done.Add(1)
		if !op.answered {
			_ = c.Close()
			c = nil
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, mine...)
}

func (w *world) ask(c net.Conn, lines *bufio.Scanner, line string, op *operation) {
	_ = c.SetDeadline(time.Now().Add(answerTime))
	if _, err := fmt.Fprintln(c, line); err != nil || !lines.Scan() {
		return
	}
	var err error
	if op.balance, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
		w.Errorf("the bank answers %q", lines.Text())
		return
	}
	op.back, op.answered = int64(time.Since(w.begin)), true
	if op.ref != "" {
		w.acked.Store(op.call)
	}
}

// settled waits until an add that began after now was acknowledged, and says how
// long that took.
func (w *world) settled() time.Duration {
	w.Helper()
	from := time.Since(w.begin)
	for w.acked.Load() <= int64(from) {
		if time.Since(w.begin) > from+time.Minute {
			w.Fatalf("nothing was settled for a minute; logs in %s", w.dir)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(w.begin) - from
}

// fault makes a fault, measures how long settlement takes to go on, mends it,
// and waits until all goes on.
func (w *world) fault(what string, f func() (mend func())) time.Duration {
	w.Helper()
	mend := f()
	took := w.settled()
	mend()
	w.Logf("%s: settled again after %s", what, took.Round(time.Millisecond))
	w.settled()
	return took
}

func (w *world) several(what string, times int, f func() (mend func())) {
	for range times {
		w.fault(what, f)
	}
}

func (w *world) killLeader() func() {
	i := w.leader.Load().agent
	_ = w.agents[i].Process.Kill()
	_ = w.agents[i].Wait()
	return func() { w.startAgent(i) }
}

func (w *world) killEtcd() func() {
	i := w.cluster.Leader()
	w.cluster.Kill(i)
	return func() { w.cluster.Restart(i) }
}

// freezeLeader lets the deposed leader go on while another leads.
func (w *world) freezeLeader() func() {
	i := w.leader.Load().agent
	_ = w.agents[i].Process.Signal(syscall.SIGSTOP)
	return func() { _ = w.agents[i].Process.Signal(syscall.SIGCONT) }
}

func (w *world) freezeEtcd(leader bool) func() (mend func()) {
	return func() func() {
		i := w.cluster.Leader()
		if !leader {
			i = (i + 1) % etcdtest.Members
		}
		w.cluster.Freeze(i)
		frozen := time.NewTimer(frozenTime)
		return func() {
			<-frozen.C // longer than a lease: renewals must have found another member
			w.cluster.Thaw(i)
		}
	}
}

// finish ends the clients and holds their history against the ledger, as who
// has nothing but the cluster reads it.
func (w *world) finish(atLeast int64) []operation {
	for end := time.Now().Add(5 * time.Minute); w.done.Load() < atLeast && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	w.stop.Store(true)
	w.clients.Wait()
	for _, a := range w.agents {
		_ = a.Process.Kill()
		_ = a.Wait()
	}
	cfg := testConfig(w, w.TempDir()+"/ledger.db")
	cfg.Bank = account(-1)
	ctx, cancel := context.WithTimeout(w.Context(), rebuildTime)
	defer cancel()
	begin := time.Now()
	s, err := ledgeretcd.Open(ctx, cfg)
	if err != nil {
		w.Fatal(err)
	}
	defer s.Close()
	w.Logf("a new mirror was built within %s", time.Since(begin).Round(time.Millisecond))
	w.check(s)
	return w.history
}

func (w *world) check(s *ledgeretcd.Store) {
	report, log, err := s.DB().AuditAll(false, nil, nil)
	if err != nil || len(report.Bad)+len(log.Bad) > 0 {
		w.Fatalf("audit: %v, %v, %v", err, report.Bad, log.Bad)
	}
	after := w.entries(s)
	var ops []porcupine.Operation
	unknown := 0
	for _, o := range w.history {
		balance, there := after[o.ref]
		switch {
		case o.ref == "" && !o.answered, o.ref != "" && !o.answered && !there:
			unknown++
			continue // it never happened, or nobody saw it
		case o.ref != "" && o.answered && !there:
			w.Fatalf("add %s was acknowledged and is lost", o.ref)
		case !o.answered:
			unknown++
			o.back, o.balance = math.MaxInt64, balance
		}
		ops = append(ops, porcupine.Operation{
			ClientId: o.client, Input: o, Call: o.call, Output: o.balance, Return: o.back,
		})
	}
	if len(ops) == 0 || porcupine.CheckOperationsTimeout(counters(), ops, time.Minute) != porcupine.Ok {
		w.Fatalf("the history of %d operations is not linearizable, or cannot be told to be", len(ops))
	}
	w.Logf("%d operations, of which %d had no answer; %d entries; linearizable", len(w.history), unknown, report.Entries)
}

// entries are the balances after all adds by their references, each there once.
func (w *world) entries(s *ledgeretcd.Store) map[string]int64 {
	after := map[string]int64{}
	for from := uint64(1); ; {
		page, err := s.DB().Entries(from, 1024)
		if err != nil {
			w.Fatal(err)
		}
		if len(page) == 0 {
			return after
		}
		for _, e := range page {
			from = e.Number + 1
			if e.Kind != ledger.KindCredit {
				continue
			}
			if _, twice := after[e.Ref]; twice {
				w.Fatalf("%s is in the ledger twice", e.Ref)
			}
			i := slices.IndexFunc(e.Legs, func(l ledger.Leg) bool { return l.Account != ledger.Issuer })
			after[e.Ref] = int64(e.Legs[i].After)
		}
	}
}

// counters is what clients may see: an account grows by one with each add.
func counters() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, accounts)
			for _, o := range history {
				i := o.Input.(operation).account
				parts[i] = append(parts[i], o)
			}
			return parts
		},
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			now := state.(int64)
			if input.(operation).ref != "" {
				now++
			}
			return output.(int64) == now, now
		},
	}
}
