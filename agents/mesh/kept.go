package mesh

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"ramp/agents"
	"ramp/protocol"
)

// MaxKept bounds the peers that an agent keeps over a restart.
const MaxKept = 64

// Waits of the keeper.
const (
	keptPatience = time.Second      // for the bootstrap addresses, before kept peers are tried
	keepPeriod   = 10 * time.Second // between two looks at whom to keep
	keptAtOnce   = 8                // kept peers that are tried at once
)

// Peers keeps addresses of agents over a restart, each ending in /p2p/ID: at most
// MaxAddresses for each of MaxKept agents.
type Peers interface {
	Load() ([]string, error)
	Save(addresses []string) error
}

// keeper owns the kept peers: agents that have shown a valid certificate. They are the way
// back into the market when no bootstrap address answers. It belongs to one goroutine.
type keeper struct {
	joining *joining
	kept    []peer.AddrInfo
	saved   []string // as last saved
	learnt  time.Time
}

// run keeps peers, and joins through them while nobody else is connected, until ctx is done.
func (k *keeper) run(ctx context.Context) {
	k.load()
	wait := RejoinFirst
	for k.joining.joined.within(ctx, keptPatience); ctx.Err() == nil; {
		if met := k.met(); len(met) == 0 && !k.comeBack(ctx) {
			agents.Pause(ctx, wait+rand.N(wait/2))
			wait = min(2*wait, RejoinMost)
			continue
		} else if len(met) > 0 {
			k.joining.joined.reach() // perhaps they came to this agent
			k.learn(ctx, met[rand.N(len(met))].peer)
		}
		wait = RejoinFirst
		k.save()
		agents.Pause(ctx, keepPeriod)
	}
	k.save()
}

// load reads the kept peers. Without them an agent still joins by its bootstrap addresses.
func (k *keeper) load() {
	log := k.joining.ep.cfg.Log
	list, err := k.joining.ep.cfg.Peers.Load()
	if err != nil {
		log.Warn("cannot read the kept peers", "err", err)
	}
	k.saved = list[:min(len(list), MaxKept*MaxAddresses)]
	for _, s := range k.saved {
		info, err := peer.AddrInfoFromString(s)
		if err != nil {
			log.Warn("a kept peer cannot be read and is skipped", "address", s, "err", err)
			continue
		}
		i := slices.IndexFunc(k.kept, func(other peer.AddrInfo) bool { return other.ID == info.ID })
		switch {
		case info.ID == k.joining.ep.host.ID():
		case i >= 0:
			k.kept[i].Addrs = append(k.kept[i].Addrs, info.Addrs...)
		case len(k.kept) < MaxKept:
			k.kept = append(k.kept, *info)
		}
	}
}

// met lists the connected agents that this one has met.
func (k *keeper) met() []*contact {
	return k.joining.ep.connected(func(c *contact) bool { return c.current().met })
}

// comeBack joins through the kept peers, keptAtOnce at a time in random order, until one
// has answered.
func (k *keeper) comeBack(ctx context.Context) bool {
	order := make([]peer.AddrInfo, len(k.kept))
	for i, n := range rand.Perm(len(k.kept)) {
		order[i] = k.kept[n]
	}
	for batch := range slices.Chunk(order, keptAtOnce) {
		inTurn(ctx, slices.Values(batch), func(ctx context.Context, info peer.AddrInfo) {
			if _, err := k.joining.join(ctx, info, RejoinFirst); err != nil {
				k.joining.ep.cfg.Log.Debug("a kept peer does not answer", "peer", info.ID, "err", err)
			}
		})
		if len(k.met()) > 0 {
			return true
		}
	}
	return false
}

// learn asks a connected agent for introductions, unless anchors do that already.
func (k *keeper) learn(ctx context.Context, from peer.ID) {
	for id := range k.joining.anchors {
		if k.joining.ep.contacts.connected(id) {
			return
		}
	}
	period := RejoinPeriod
	if k.joining.ep.cfg.Visitor {
		period = VisitPeriod
	}
	if time.Since(k.learnt) < period {
		return
	}
	k.learnt = time.Now()
	if _, err := k.joining.learn(ctx, from, period); err != nil {
		k.joining.ep.cfg.Log.Debug("no introductions", "peer", from, "err", err)
	}
}

// save writes down whom to keep, if that has changed.
func (k *keeper) save() {
	k.choose()
	var list []string
	for _, info := range k.kept {
		for _, a := range info.Addrs {
			list = append(list, a.String()+"/p2p/"+info.ID.String())
		}
	}
	if slices.Equal(list, k.saved) {
		return
	}
	if err := k.joining.ep.cfg.Peers.Save(list); err != nil {
		k.joining.ep.cfg.Log.Warn("cannot keep peers for the next start", "err", err)
		return
	}
	k.saved = list
}

// candidate is a peer that might be kept.
type candidate struct {
	info peer.AddrInfo
	by   issuer
	rank int // lower is better
}

// choose picks whom to keep: those met in this run before those of earlier ones, banks
// and sellers before users, which come and go, and those already kept before others.
func (k *keeper) choose() {
	all := make([]candidate, 0, MaxKept)
	earlier := map[peer.ID]bool{}
	for _, info := range k.kept {
		earlier[info.ID] = true
		if c := k.joining.ep.contacts.ofPeer(info.ID); c == nil || !c.current().met {
			all = append(all, candidate{info: info, rank: 1 << 8})
		}
	}
	for _, c := range k.joining.ep.contacts.list() {
		f := c.current()
		if !f.met || len(f.addrs) == 0 {
			continue
		}
		x := candidate{info: peer.AddrInfo{ID: c.peer, Addrs: f.addrs[:min(len(f.addrs), MaxAddresses)]}, by: c.issuer}
		if f.kind != protocol.KindBank && f.kind != protocol.KindResource {
			x.rank += 2
		}
		if !earlier[c.peer] {
			x.rank++
		}
		all = append(all, x)
	}
	k.kept = fairly(all, MaxKept)
}

// fairly takes the best candidates, of each authority in turn, so that none fills the
// list. It sorts them by peer.
func fairly(all []candidate, most int) []peer.AddrInfo {
	slices.SortFunc(all, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.info.ID, y.info.ID))
	})
	taken := map[issuer]int{}
	turn := make([]int, len(all))
	order := make([]int, len(all))
	for i, c := range all {
		order[i], turn[i] = i, taken[c.by]
		taken[c.by]++
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(turn[i], turn[j]) })
	var chosen []peer.AddrInfo
	for _, i := range order[:min(len(order), most)] {
		chosen = append(chosen, all[i].info)
	}
	slices.SortFunc(chosen, func(x, y peer.AddrInfo) int { return cmp.Compare(x.ID, y.ID) })
	return chosen
}
