package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/bank/decay"
	"ramp/bank/row"
	"ramp/protocol"
)

// Whole is 100 % of a share; shares are parts per million.
const Whole int64 = decay.Million

// Pays is how a member pays for its jobs (000: three ways). The numbers are stored.
type Pays byte

// The ways to pay.
const (
	PaysUserThenGroup Pays = 1 // first the user's money, then the group's
	PaysUser          Pays = 2
	PaysGroup         Pays = 3
)

func (p Pays) String() string { return nameOf("pays", byte(p), "", "user-then-group", "user", "group") }

// Group is a cluster group (000): its users share the earnings of its clusters, and
// may spend the group's money. A user or a cluster belongs to one group.
type Group struct {
	Name     string
	Shared   int64              // percentage-of-shared, 0..Whole: the part of each job's price that the group's account earns
	Members  []Member           // their shares of the rest sum to Whole; if all is shared, they may all be zero
	Clusters []protocol.AgentID // the sellers whose jobs earn for it
}

// Member is a user of a group.
type Member struct {
	User  protocol.AgentID
	Share int64 // 0..Whole
	Pays  Pays
}

// Groups owns the cluster groups: who is in them, who pays and who earns.
type Groups struct {
	books    *books
	holds    *holds
	byName   map[string]*group
	memberOf map[protocol.AgentID]*group
	sellsFor map[protocol.AgentID]*group // clusters
}

type group struct {
	Group
	account *account
}

// groupPrefix begins the ID of a group's account.
const groupPrefix = ".group."

// GroupID is the account of a group. No agent can have such an ID.
func GroupID(name string) protocol.AgentID { return protocol.AgentID(groupPrefix + name) }

// All are the groups in order of name.
func (gs *Groups) All() []Group {
	all := make([]Group, 0, len(gs.byName))
	for _, g := range gs.byName {
		all = append(all, g.Group)
	}
	slices.SortFunc(all, func(x, y Group) int { return strings.Compare(x.Name, y.Name) })
	return all
}

func (gs *Groups) groupOf(id protocol.AgentID) *group {
	name, ok := strings.CutPrefix(string(id), string(GroupID("")))
	if !ok {
		return nil
	}
	return gs.byName[name]
}

// Paying is the account of the group that pays for a user's jobs, fully or partly, if there is one.
func (gs *Groups) Paying(user protocol.AgentID) (protocol.AgentID, bool) {
	g := gs.memberOf[user]
	if g == nil || g.member(user).Pays == PaysUser {
		return "", false
	}
	return GroupID(g.Name), true
}

// Open opens the account of a group, GroupID(name); Set then sets its members.
func (gs *Groups) Open(now time.Time, name string) (Entry, []protocol.Record, error) {
	if !validWord(name, MaxName) {
		return Entry{}, nil, refuse(protocol.CodeMalformed, "group %q: want 1..%d letters, digits, '-' or '_'", name, MaxName)
	}
	if len(gs.byName) >= MaxGroups {
		return Entry{}, nil, refuse(protocol.CodeLimit, "%d groups are open, which is the most", len(gs.byName))
	}
	return gs.books.open(now, GroupID(name), name)
}

// Set sets a group's members, clusters and shares, all at once, so that its shares sum
// to 100 % at any time. A cluster can leave a group only while no hold is open for its
// jobs. Ref is the operator's reference.
func (gs *Groups) Set(now time.Time, g Group, ref string) (Entry, []protocol.Record, error) {
	g.Members, g.Clusters = slices.Clone(g.Members), slices.Clone(g.Clusters)
	slices.SortFunc(g.Members, func(x, y Member) int { return strings.Compare(string(x.User), string(y.User)) })
	slices.Sort(g.Clusters)
	if err := cmp.Or(checkRef(ref), g.validate(), gs.mayGroup(&g)); err != nil {
		return Entry{}, nil, err
	}
	c := gs.books.change()
	gs.keep(g)
	return c.set(now, Entry{Kind: KindGroup, Key: g.Name, Value: g.encode(), Ref: ref}), c.recs, nil
}

func percent(ppm int64) string { return fmt.Sprintf("%g %%", float64(ppm)*100/float64(Whole)) }

func (g *Group) validate() error {
	if len(g.Members) > MaxMembers || len(g.Clusters) > MaxClusters {
		return refuse(protocol.CodeLimit, "group %s: %d members and %d clusters: want at most %d and %d",
			g.Name, len(g.Members), len(g.Clusters), MaxMembers, MaxClusters)
	}
	if g.Shared < 0 || g.Shared > Whole {
		return refuse(protocol.CodeMalformed, "group %s shares %s: want 0..100 %%", g.Name, percent(g.Shared))
	}
	var sum int64
	for i, m := range g.Members {
		switch {
		case i > 0 && g.Members[i-1].User == m.User:
			return refuse(protocol.CodeMalformed, "group %s: %s is a member twice", g.Name, m.User)
		case m.Share < 0 || m.Share > Whole:
			return refuse(protocol.CodeMalformed, "group %s: share %s of %s: want 0..100 %%", g.Name, percent(m.Share), m.User)
		case m.Pays < PaysUserThenGroup || m.Pays > PaysGroup:
			return refuse(protocol.CodeMalformed, "group %s: %s of %s: want user-then-group, user or group", g.Name, m.Pays, m.User)
		}
		sum += m.Share
	}
	if sum != Whole && (sum != 0 || g.Shared != Whole) {
		return refuse(protocol.CodeMalformed, "group %s: the shares of its members sum to %s, want 100 %%", g.Name, percent(sum))
	}
	for i := range g.Clusters {
		if i > 0 && g.Clusters[i] == g.Clusters[i-1] {
			return refuse(protocol.CodeMalformed, "group %s: cluster %s is there twice", g.Name, g.Clusters[i])
		}
	}
	return nil
}

// mayGroup checks a group against the accounts and the other groups.
func (gs *Groups) mayGroup(g *Group) error {
	if _, err := gs.books.owner(GroupID(g.Name)); err != nil {
		return err
	}
	for _, m := range g.Members {
		if _, err := gs.books.owner(m.User); err != nil {
			return err
		}
		if other := gs.memberOf[m.User]; m.User.Local() || other != nil && other.Name != g.Name {
			return refuse(protocol.CodeMismatch, "%s cannot be a member of group %s and of another", m.User, g.Name)
		}
	}
	for _, id := range g.Clusters {
		if err := id.Validate(); err != nil {
			return refuse(protocol.CodeMalformed, "cluster of group %s: %s", g.Name, err)
		}
		if other := gs.sellsFor[id]; other != nil && other.Name != g.Name {
			return refuse(protocol.CodeMismatch, "cluster %s is of group %s", id, other.Name)
		}
	}
	return gs.mayLose(g)
}

// mayLose refuses to remove a cluster while a hold is open for its jobs. A member may
// leave: its holds stay split as they were.
func (gs *Groups) mayLose(g *Group) error {
	old := gs.byName[g.Name]
	if old == nil {
		return nil
	}
	for _, id := range old.Clusters {
		if slices.Contains(g.Clusters, id) {
			continue
		}
		if number, busy := gs.holds.forJobOf(id); busy {
			return refuse(protocol.CodeMismatch, "cluster %s cannot leave group %s: hold %d is for its job", id, g.Name, number)
		}
	}
	return nil
}

func (gs *Groups) keep(next Group) {
	if old := gs.byName[next.Name]; old != nil {
		for _, m := range old.Members {
			delete(gs.memberOf, m.User)
		}
		for _, id := range old.Clusters {
			delete(gs.sellsFor, id)
		}
	}
	g := &group{Group: next, account: gs.books.accounts[GroupID(next.Name)]}
	gs.byName[next.Name] = g
	for _, m := range g.Members {
		gs.memberOf[m.User] = g
	}
	for _, id := range g.Clusters {
		gs.sellsFor[id] = g
	}
}

func (g *group) member(id protocol.AgentID) Member {
	i, ok := slices.BinarySearchFunc(g.Members, id, func(m Member, id protocol.AgentID) int {
		return strings.Compare(string(m.User), string(id))
	})
	if !ok {
		return Member{}
	}
	return g.Members[i]
}

func (g *Group) encode() []byte {
	b := row.New(row.Version, 64).Uvarint(uint64(g.Shared)).Count(len(g.Members))
	for _, m := range g.Members {
		b = b.Agent(m.User).Uvarint(uint64(m.Share)).Byte(byte(m.Pays))
	}
	b = b.Count(len(g.Clusters))
	for _, id := range g.Clusters {
		b = b.Agent(id)
	}
	return b
}

// DecodeGroup reads a record of TableGroups.
func DecodeGroup(key string, value []byte) (Group, error) {
	d := row.Read(value)
	g := Group{Name: key, Shared: int64(d.Count(int(Whole)))}
	for range d.Count(MaxMembers) {
		g.Members = append(g.Members, Member{User: d.Agent(), Share: int64(d.Count(int(Whole))), Pays: Pays(d.Byte())})
	}
	for range d.Count(MaxClusters) {
		g.Clusters = append(g.Clusters, d.Agent())
	}
	if err := cmp.Or(d.Done(), g.validate()); err != nil {
		return Group{}, fmt.Errorf("group %q: %w", key, err)
	}
	return g, nil
}

func (gs *Groups) load(key string, value []byte) error {
	g, err := DecodeGroup(key, value)
	if err != nil {
		return err
	}
	if gs.books.accounts[GroupID(key)] == nil {
		return fmt.Errorf("group %q has no account", key)
	}
	gs.keep(g)
	return nil
}
