package ledger

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// Whole is 100 % of a share; shares are parts per million.
const Whole int64 = million

// Pays is how a member pays for its jobs (000: three ways). The numbers are
// stored.
type Pays byte

// The ways to pay.
const (
	PaysUserThenGroup Pays = 1 // first the user's money, then the group's
	PaysUser          Pays = 2
	PaysGroup         Pays = 3
)

func (p Pays) String() string {
	switch p {
	case PaysUserThenGroup:
		return "user-then-group"
	case PaysUser:
		return "user"
	case PaysGroup:
		return "group"
	}
	return fmt.Sprintf("pays(%d)", byte(p))
}

// Group is a cluster group (000): its users share what its clusters earn, and
// may spend what the group has. A user or a cluster is of one group.
type Group struct {
	Name     string
	Shared   int64              // percentage-of-shared, 0..Whole: what of each job's price the group's own account earns
	Members  []Member           // their shares of the rest sum to Whole; if all is shared, they may all be zero
	Clusters []protocol.AgentID // the sellers whose jobs earn for it
}

// Member is a user of a group.
type Member struct {
	User  protocol.AgentID
	Share int64 // 0..Whole
	Pays  Pays
}

type group struct {
	Group
	account *account
}

// groupPrefix begins the ID of a group's account.
const groupPrefix = ".group."

// GroupID is the account of a group. No agent can have such a name.
func GroupID(name string) protocol.AgentID { return protocol.AgentID(groupPrefix + name) }

// Groups are all groups in order of name.
func (l *Ledger) Groups() []Group {
	all := make([]Group, 0, len(l.groups))
	for _, g := range l.groups {
		all = append(all, g.Group)
	}
	slices.SortFunc(all, func(x, y Group) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// Group is a group by name.
func (l *Ledger) Group(name string) (Group, bool) {
	g := l.groups[name]
	if g == nil {
		return Group{}, false
	}
	return g.Group, true
}

func (l *Ledger) groupOf(id protocol.AgentID) *group {
	name, ok := strings.CutPrefix(string(id), string(GroupID("")))
	if !ok {
		return nil
	}
	return l.groups[name]
}

// PayingGroup is the account of the group of a user whose jobs it pays, all or in
// part; false: there is none.
func (l *Ledger) PayingGroup(user protocol.AgentID) (protocol.AgentID, bool) {
	g := l.memberOf[user]
	if g == nil || g.member(user).Pays == PaysUser {
		return "", false
	}
	return GroupID(g.Name), true
}

// OpenGroup opens the account of a group, GroupID(name), before SetGroup says
// who is in it.
func (l *Ledger) OpenGroup(now time.Time, name string) (Entry, []protocol.Record, error) {
	if !validWord(name, MaxName) {
		return Entry{}, nil, refuse(protocol.CodeMalformed, "group %q: want 1..%d letters, digits, '-' or '_'", name, MaxName)
	}
	if len(l.groups) >= MaxGroups {
		return Entry{}, nil, refuse(protocol.CodeLimit, "%d groups are open, which is the most", len(l.groups))
	}
	return l.open(now, GroupID(name), name)
}

// SetGroup says who is in a group, with which shares. The whole group is set at
// once, so that its shares sum to 100 % at any time. A cluster leaves a group
// only while nothing that it sold is held. Ref is the operator's reference.
func (l *Ledger) SetGroup(now time.Time, g Group, ref string) (Entry, []protocol.Record, error) {
	g.Members, g.Clusters = slices.Clone(g.Members), slices.Clone(g.Clusters)
	slices.SortFunc(g.Members, func(x, y Member) int { return strings.Compare(string(x.User), string(y.User)) })
	slices.Sort(g.Clusters)
	if len(ref) > MaxRef {
		return Entry{}, nil, refuse(protocol.CodeMalformed, "reference of %d bytes, at most %d", len(ref), MaxRef)
	}
	if err := g.validate(); err != nil {
		return Entry{}, nil, err
	}
	if err := l.mayGroup(&g); err != nil {
		return Entry{}, nil, err
	}
	c := l.change()
	l.keepGroup(g)
	return c.set(now, Entry{Kind: KindGroup, Key: g.Name, Value: g.encode(), Ref: ref}), c.recs, nil
}

// percent is parts per million for people.
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
	if i := doubled(g.Clusters); i >= 0 {
		return refuse(protocol.CodeMalformed, "group %s: cluster %s is there twice", g.Name, g.Clusters[i])
	}
	return nil
}

func doubled(ids []protocol.AgentID) int {
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			return i
		}
	}
	return -1
}

// mayGroup holds a group against the accounts and the other groups.
func (l *Ledger) mayGroup(g *Group) error {
	if _, err := l.owner(GroupID(g.Name)); err != nil {
		return err
	}
	for _, m := range g.Members {
		if _, err := l.owner(m.User); err != nil {
			return err
		}
		if other := l.memberOf[m.User]; m.User.Local() || other != nil && other.Name != g.Name {
			return refuse(protocol.CodeMismatch, "%s cannot be a member of group %s and of another", m.User, g.Name)
		}
	}
	for _, id := range g.Clusters {
		if err := id.Validate(); err != nil {
			return refuse(protocol.CodeMalformed, "cluster of group %s: %s", g.Name, err)
		}
		if other := l.sellsFor[id]; other != nil && other.Name != g.Name {
			return refuse(protocol.CodeMismatch, "cluster %s is of group %s", id, other.Name)
		}
	}
	return l.mayLose(g)
}

// mayLose refuses to let a cluster go that has sold what is not yet paid. A member
// may go: what is held for it stays held as it was split.
func (l *Ledger) mayLose(g *Group) error {
	old := l.groups[g.Name]
	if old == nil {
		return nil
	}
	gone := map[protocol.AgentID]bool{}
	for _, id := range old.Clusters {
		gone[id] = !slices.Contains(g.Clusters, id)
	}
	for _, number := range l.deals {
		if h := l.holds[number]; gone[h.deal.seller] {
			return refuse(protocol.CodeMismatch, "cluster %s cannot leave group %s: hold %d is for its job", h.deal.seller, g.Name, number)
		}
	}
	return nil
}

func (l *Ledger) keepGroup(next Group) {
	if old := l.groups[next.Name]; old != nil {
		for _, m := range old.Members {
			delete(l.memberOf, m.User)
		}
		for _, id := range old.Clusters {
			delete(l.sellsFor, id)
		}
	}
	g := &group{Group: next, account: l.accounts[GroupID(next.Name)]}
	l.groups[next.Name] = g
	for _, m := range g.Members {
		l.memberOf[m.User] = g
	}
	for _, id := range g.Clusters {
		l.sellsFor[id] = g
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
	b := binary.AppendUvarint([]byte{rowVersion}, uint64(g.Shared))
	b = binary.AppendUvarint(b, uint64(len(g.Members)))
	for _, m := range g.Members {
		b = appendString(b, string(m.User))
		b = binary.AppendUvarint(b, uint64(m.Share))
		b = append(b, byte(m.Pays))
	}
	b = binary.AppendUvarint(b, uint64(len(g.Clusters)))
	for _, id := range g.Clusters {
		b = appendString(b, string(id))
	}
	return b
}

// DecodeGroup reads a record of TableGroups.
func DecodeGroup(key string, value []byte) (Group, error) {
	d := newDecoder(value)
	g := Group{Name: key, Shared: int64(d.count(int(Whole)))}
	for range d.count(MaxMembers) {
		g.Members = append(g.Members, Member{User: d.agent(), Share: int64(d.count(int(Whole))), Pays: Pays(d.byte())})
	}
	for range d.count(MaxClusters) {
		g.Clusters = append(g.Clusters, d.agent())
	}
	if err := first(d.done(), g.validate()); err != nil {
		return Group{}, fmt.Errorf("group %q: %w", key, err)
	}
	return g, nil
}

func (l *Ledger) loadGroup(key string, value []byte) error {
	g, err := DecodeGroup(key, value)
	if err != nil {
		return err
	}
	if l.accounts[GroupID(key)] == nil {
		return fmt.Errorf("group %q has no account", key)
	}
	l.keepGroup(g)
	return nil
}
