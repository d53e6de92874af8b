package ledgeretcd_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ramp/agents/storetest"
	"ramp/bank/ledgeretcd"
	"ramp/bank/ledgeretcd/etcdtest"
	"ramp/protocol"
)

// endpointsEnv tells processes that a test starts where the cluster is.
const endpointsEnv = "RAMP_LEDGERETCD_ENDPOINTS"

// shortLease is that of the contract test, on a cluster that is as quick to notice.
const shortLease = 2 * time.Second

// waiting is how long a test waits at most to lead: a killed leader's lease must
// end, on a machine that may be busy. In vain is how long where another leads.
const (
	waiting = 2 * time.Minute
	inVain  = 2 * shortLease
)

func TestMain(m *testing.M) {
	if name := os.Getenv(agentEnv); name != "" {
		os.Exit(runAgent(name))
	}
	os.Exit(m.Run())
}

func testConfig(t testing.TB, path string) ledgeretcd.Config {
	sum := sha256.Sum256([]byte(path))
	return ledgeretcd.Config{
		Endpoints: strings.Split(os.Getenv(endpointsEnv), ","), Bank: protocol.AgentID("bank@" + bankName(hex.EncodeToString(sum[:]))),
		Name: "test", Mirror: path, Log: slog.New(slog.DiscardHandler),
	}
}

// bankName makes a fingerprint of hex digits: letters and 2..7 only.
func bankName(s string) string {
	return strings.NewReplacer("0", "g", "1", "h", "8", "i", "9", "j").Replace(s[:32])
}

func lead(t testing.TB, cfg ledgeretcd.Config) (*ledgeretcd.Store, error) {
	return leadWithin(t, cfg, waiting)
}

func leadWithin(t testing.TB, cfg ledgeretcd.Config, wait time.Duration) (*ledgeretcd.Store, error) {
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	return ledgeretcd.Open(ctx, cfg)
}

// startCluster starts a cluster, and tells other processes where it is.
func startCluster(t testing.TB, flags ...string) *etcdtest.Cluster {
	t.Helper()
	c := etcdtest.Start(t, flags...)
	t.Setenv(endpointsEnv, strings.Join(c.Endpoints, ","))
	return c
}

// startParted is startCluster of members that can be cut off from each other.
func startParted(t testing.TB) *parted {
	t.Helper()
	c := &parted{}
	etcdtest.StartLinked(t, func(started *etcdtest.Cluster) {
		c.Cluster = started
		c.link(t)
	})
	t.Setenv(endpointsEnv, strings.Join(c.Endpoints, ","))
	return c
}

// TestStore never opens a mirror twice: all that comes back is from the cluster.
func TestStore(t *testing.T) {
	if os.Getenv(endpointsEnv) == "" { // otherwise this is a process to be killed
		startCluster(t, "--heartbeat-interval", "50", "--election-timeout", "500")
	}
	open := map[string]bool{}
	storetest.Run(t, func(path string) (storetest.Store, error) {
		cfg := testConfig(t, path)
		cfg.Lease = shortLease
		dir, err := os.MkdirTemp(filepath.Dir(path), "mirror")
		if err != nil {
			return nil, err
		}
		cfg.Mirror = dir + "/ledger.db"
		wait := waiting
		if open[path] { // by this process, which does not close it before
			wait = inVain
		}
		s, err := leadWithin(t, cfg, wait)
		if err != nil {
			return nil, err
		}
		open[path] = true
		return &fresh{s, dir, func() { open[path] = false }}, nil
	})
}

// fresh removes its mirror when it is closed.
type fresh struct {
	*ledgeretcd.Store
	dir    string
	closed func()
}

func (f *fresh) Close() error {
	defer f.closed()
	defer os.RemoveAll(f.dir)
	return f.Store.Close()
}
