package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/bank/ledgeretcd"
)

// standby is a bank agent's daemon while another leads. It has no part in the market
// and no ledger to write; on its control socket it says whom it follows, so that nobody
// takes it for dead, or for a command that is to be ended.
type standby struct {
	n     *Node
	since time.Time
	stop  func() // nil: it does not listen yet

	mu     sync.Mutex
	leader string // "" for nobody
	err    error  // why that is not known
}

// follow opens a ledger in a cluster for a daemon, which waits until it leads. A
// command that has the mirror just then is waited for as well.
func (n *Node) follow(ctx context.Context, cfg ledgeretcd.Config) (*ledgeretcd.Store, error) {
	f := &standby{n: n, since: time.Now()}
	defer f.close()
	cfg.Follows = f.told
	for told := false; ; told = true {
		s, err := ledgeretcd.Open(ctx, cfg)
		if !CommandHas(err) {
			return s, err
		}
		if !told {
			n.Log.Info("waiting for a command", "err", err)
		}
		if !agents.Pause(ctx, control.BusyPause) {
			return nil, err
		}
	}
}

// told takes who leads. With the first word the mirror is this process's, and so is the
// control socket.
func (f *standby) told(leader string, err error) {
	f.mu.Lock()
	f.leader, f.err = leader, err
	f.mu.Unlock()
	if f.stop == nil {
		f.listen()
	}
}

// listen answers on the control socket. Without it the agent follows all the same.
func (f *standby) listen() {
	f.stop = func() {}
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady) // it may wait without end, and that is no failed start
	l, err := control.Listen(f.n.Cfg.Dir)
	if err != nil {
		f.n.Log.Error("no control socket while another agent leads", "err", err)
		return
	}
	mux := http.NewServeMux()
	control.Agent.Answer(mux, f.status)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { control.Refuse(w, f.refusal()) })
	server := &http.Server{Handler: control.Versioned(mux), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	f.stop = func() {
		done, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := server.Shutdown(done)
		if err != nil {
			err = server.Close()
		}
		_ = errors.Join(err, <-served) // who asked too slowly asks again
	}
}

func (f *standby) close() {
	if f.stop != nil {
		f.stop()
	}
}

func (f *standby) status(context.Context, struct{}) (control.LiveStatus, error) {
	s := control.LiveStatus{Agent: f.n.Cred.ID, Since: f.since.UTC(), Addresses: []string{}}
	var err error
	if s.Follows, err = f.whom(); err != nil {
		s.Follows, s.Waits = "", err.Error()
	}
	return s, nil
}

// whom says who leads, or why nobody is known to.
func (f *standby) whom() (leader string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
		return "", fmt.Errorf("the etcd cluster does not answer: %w", f.err)
	case f.leader == "":
		return "", errors.New("no agent of this bank leads yet")
	}
	return f.leader, nil
}

// refusal answers what only who leads can do.
func (f *standby) refusal() error {
	leader, err := f.whom()
	if err != nil {
		return exit.Fail(exit.Failed, "'ramp status' shows when one leads; 'etcdctl endpoint status --cluster' checks the cluster", "%w", err)
	}
	return exit.Fail(exit.Failed, "repeat the command on the leader's machine", "this bank agent follows; %s leads", leader)
}
