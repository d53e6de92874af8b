package mesh_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	ma "github.com/multiformats/go-multiaddr"

	"ramp/agents/mesh"
	"ramp/protocol"
)

// memory keeps peers in memory.
type memory struct {
	mu   sync.Mutex
	list []string
}

func (m *memory) Load() ([]string, error) { m.mu.Lock(); defer m.mu.Unlock(); return m.list, nil }

func (m *memory) Save(list []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = list
	return nil
}

// The founder has gone, and with it the only bootstrap address. The others restart and
// find each other by the peers that they have kept, some of which are nonsense.
func TestOthersFindEachOtherAfterTheFounderHasLeft(t *testing.T) {
	m := newMarket(t)
	founder := m.start("bank", nil)
	var configs []mesh.Config
	var inboxes []chan protocol.Message
	start := func(i int) *agent { return m.listen(configs[i], inboxes[i]) }
	var all []*agent
	for i := range 3 {
		inbox := make(chan protocol.Message, 1024)
		cfg := m.config(fmt.Sprint("agent", i), inbox)
		cfg.Bootstrap, cfg.Peers = founder.Addresses(), &memory{list: []string{"nonsense", "/ip4/127.0.0.1/tcp/1"}}
		cfg.Listen = kept(t)
		configs, inboxes = append(configs, cfg), append(inboxes, inbox)
		all = append(all, start(i))
	}
	for _, a := range all {
		for _, b := range all {
			if a != b {
				a.awaitKnown(b.Self())
			}
		}
	}
	for _, a := range append(slices.Clone(all), founder) {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all {
		all[i] = start(i)
	}
	for _, a := range all {
		for _, b := range all {
			if a != b {
				a.awaitKnown(b.Self())
			}
		}
	}
	all[0].Send(query(1, all[2].Self()))
	all[2].awaitQuery(1)
}

func TestOnlyCertifiedPeersAreKeptAndNotTooMany(t *testing.T) {
	m := newMarket(t)
	kept := &memory{}
	a := m.start("alice", func(c *mesh.Config) { c.Peers = kept })
	blank, err := ma.NewMultiaddr("/ip4/192.0.2.1/tcp/4101")
	if err != nil {
		t.Fatal(err)
	}
	newRaw(t, m.credential("mute"), a) // connected, but shows no certificate
	var names []string
	for i := range mesh.MaxKept + 3 {
		key := m.credential(fmt.Sprint("bob", i))
		r := newRaw(t, key, a)
		card := cardOf(key)
		card = append(card[:len(card)-1], append([]byte{1}, frame(blank.Bytes())...)...) // one address
		s := r.open(mesh.ProtocolPresence)
		r.write(s, append(frame(card), frame(nil)...))
		if _, err := io.ReadAll(s); err != nil { // to its end: they have met
			t.Fatal(err)
		}
		names = append(names, r.ID().String())
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, s := range kept.list {
		_, id, _ := strings.Cut(s, "/p2p/")
		ids[id] = true
		if !slices.Contains(names, id) {
			t.Errorf("kept %s, which never showed a certificate", id)
		}
	}
	if len(ids) != mesh.MaxKept {
		t.Errorf("kept %d peers, want %d", len(ids), mesh.MaxKept)
	}
}
