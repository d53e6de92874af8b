package ledgeretcd_test

import (
	"bufio"
	"fmt"
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
	cuts, etcdCuts                                    int
}

// TestLedgerUnderFaults kills, freezes and cuts off who leads the bank and who leads
// the cluster while clients add to accounts and read them. What was acknowledged is
// there once, in an order that no client could have told from one machine.
func TestLedgerUnderFaults(t *testing.T) {
	p := plan{operations: 2000, kills: 2, etcdKills: 1, freezes: 1, cuts: 1, etcdCuts: 1}
	if os.Getenv(etcdtest.Demanded) != "" {
		p = plan{longOperations, longKills, 5, 3, 3, 3, 5, 5}
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
	w.several("part the leading bank agent from etcd", p.cuts, w.cutLeader)
	w.several("part etcd's leader from its members", p.etcdCuts, w.cutEtcd)
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
	cluster *parted
	dir     string
	agents  [bankAgents]*exec.Cmd
	ways    [bankAgents][]string // to the members of the cluster
	gates   [bankAgents]*gate
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
	w := &world{T: t, cluster: startParted(t), dir: t.TempDir(), begin: time.Now()}
	t.Cleanup(func() {
		for _, a := range w.agents {
			_ = a.Process.Kill()
			_ = a.Wait()
		}
	})
	for i := range w.agents {
		w.ways[i], w.gates[i] = gated(t, w.cluster.Endpoints...)
		w.startAgent(i)
	}
	return w
}

func (w *world) startAgent(i int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=agent%d", agentEnv, i), directoryEnv+"="+w.dir, endpointsEnv+"="+strings.Join(w.ways[i], ","), "GOMAXPROCS=1")
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
	w.settled()
	return took
}

// several makes a fault several times, and tells how long it took in the middle.
func (w *world) several(what string, times int, f func() (mend func())) {
	w.Helper()
	var took []time.Duration
	for range times {
		took = append(took, w.fault(what, f))
	}
	if slices.Sort(took); times > 0 {
		w.Logf("%s, %d times: settled again after %s (median), %s..%s", what, times, took[times/2], took[0], took[times-1])
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

// cutLeader leaves the leader its clients, who get no answers from it.
func (w *world) cutLeader() func() {
	i := w.leader.Load().agent
	w.gates[i].Cut()
	return func() {
		if w.leader.Load().agent == i {
			w.Error("who is cut off from etcd goes on leading")
		}
		w.gates[i].Mend()
	}
}

// cutEtcd leaves etcd's leader its clients: the bank must find who leads instead.
func (w *world) cutEtcd() func() {
	i := w.cluster.Leader()
	w.cluster.CutOff(i)
	return func() {
		for end := time.Now().Add(time.Minute); w.cluster.Leader() == i; {
			if time.Now().After(end) {
				w.Fatal("a member that is cut off goes on leading etcd")
			}
		}
		w.cluster.Mend(i)
	}
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
