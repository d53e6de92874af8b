// Package rules reads the rules of a federation of sites (003): its members, the levels
// of priority and who may use them, and what a bid is worth.
//
// All members have the same bytes of one file, since a bid is worth the same to all of
// them. They compare its SHA-256, and do not bid under other rules. The package checks
// the whole file, with the line of every fault. It never opens a file.
package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"ramp/protocol"
	"ramp/protocol/english"
	"ramp/protocol/message"
	"ramp/rfql/jobfile"
)

// Everybody stands for all users whose certificate the sites accept.
const Everybody protocol.AgentID = "*"

// Bounds of a rules file, besides that of its bytes.
const (
	MaxUsers = 1 << 14
	MaxMean  = 30 * 24 * time.Hour
	MaxPoll  = 24 * time.Hour
)

// Times of auctions (003, figure 4).
const (
	DefaultLength = 350 // thousandths of the mean run time
	DefaultMean   = 10 * time.Minute
	LeastLength   = 200 * time.Millisecond // of a live auction
	MostLength    = 10 * time.Minute
	DefaultGamma  = 8000
)

// Rules are those of one federation.
type Rules struct {
	Digest string   // SHA-256 of the file, in hex
	Levels []string // names, the least urgent one first; a level is its index and one
	Users  map[protocol.AgentID]int
	Sites  []Site // in order of agent
	Scale  english.Scale
	Length int64         // of an auction, in thousandths of the mean run time
	Mean   time.Duration // of a run, until runs are known
	Poll   time.Duration // how often a site looks for auctions and changes its bids; 0: at once
	Within time.Duration // to bring a GiB of input to a site, from another one of its centre
	Beyond time.Duration // from another centre
}

// Site is a member of a federation.
type Site struct {
	Agent  protocol.AgentID
	Centre string // empty: one of its own
}

// Read reads a rules file. Its errors are jobfile.Faults.
func Read(text []byte) (Rules, error) {
	sum := sha256.Sum256(text)
	r := reader{rules: Rules{
		Digest: hex.EncodeToString(sum[:]), Users: map[protocol.AgentID]int{}, Scale: english.Scale{Alpha: 1000, Gamma: DefaultGamma},
		Length: DefaultLength, Mean: DefaultMean,
	}}
	root, fault := jobfile.Root(text, "levels: [low, urgent]", "levels, users and sites")
	if fault != nil {
		return Rules{}, jobfile.Faults{*fault}
	}
	r.Each(root, "levels: [low, urgent]", r.key)
	r.whole(root)
	if err := r.Err(); err != nil {
		return Rules{}, err
	}
	slices.SortFunc(r.rules.Sites, func(a, b Site) int { return cmp.Compare(a.Agent, b.Agent) })
	return r.rules, nil
}

// reader reads one file.
type reader struct {
	jobfile.Nodes
	rules Rules
	users []user // until the levels are known
}

type user struct {
	key, level *yaml.Node
}

func (r *reader) key(key, value *yaml.Node) {
	switch key.Value {
	case "levels":
		r.levels(value)
	case "users":
		r.Each(value, "NAME@FINGERPRINT: urgent", func(k, v *yaml.Node) { r.users = append(r.users, user{k, v}) })
	case "sites":
		r.sites(value)
	case "alpha":
		r.number(key, value, &r.rules.Scale.Alpha, 1)
	case "gamma":
		r.number(key, value, &r.rules.Scale.Gamma, 0)
	case "minimum":
		r.number(key, value, &r.rules.Scale.Minimum, 0)
	case "length":
		r.number(key, value, &r.rules.Length, 0)
	case "mean":
		r.span(key, value, &r.rules.Mean, time.Second, MaxMean)
	case "poll":
		r.span(key, value, &r.rules.Poll, 0, MaxPoll)
	case "transfer":
		r.Each(value, "within: 8s", func(k, v *yaml.Node) {
			switch k.Value {
			case "within":
				r.span(k, v, &r.rules.Within, 0, time.Hour)
			case "between":
				r.span(k, v, &r.rules.Beyond, 0, time.Hour)
			default:
				r.Unknown(k, []string{"within", "between"})
			}
		})
	default:
		r.Unknown(key, []string{"levels", "users", "sites", "alpha", "gamma", "minimum", "length", "mean", "poll", "transfer"})
	}
}

// levels reads the names of the levels.
func (r *reader) levels(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode || len(n.Content) < 1 || len(n.Content) > message.MaxLevels {
		r.Fault(n, "levels: want 1 to %d names, the least urgent one first, such as [low, normal, high, urgent]", message.MaxLevels)
		return
	}
	for _, x := range n.Content {
		switch name, ok := r.Scalar(&yaml.Node{Value: "levels"}, x); {
		case !ok:
		case !plain(name):
			r.Fault(x, "level %q: want a name of 1 to 32 letters, digits or '-', beginning with a letter", jobfile.Clip(name))
		case slices.Contains(r.rules.Levels, name):
			r.Fault(x, "level %s is there already", name)
		default:
			r.rules.Levels = append(r.rules.Levels, name)
		}
	}
}

func plain(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && len(s) <= 32 && strings.ContainsRune(letters, rune(s[0])) && strings.Trim(s, letters+"0123456789-") == ""
}

// sites reads the members.
func (r *reader) sites(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > message.MaxSites {
		r.Fault(n, "sites: want a list of 1 to %d members, such as '- agent: NAME@FINGERPRINT'", message.MaxSites)
		return
	}
	for _, x := range n.Content {
		var s Site
		r.Each(x, "agent: NAME@FINGERPRINT", func(k, v *yaml.Node) {
			text, ok := r.Scalar(k, v)
			switch {
			case !ok:
			case k.Value == "agent":
				s.Agent = protocol.AgentID(text)
				if err := s.Agent.Validate(); err != nil {
					r.Fault(v, "%s", err)
				}
			case k.Value == "centre" && plain(text):
				s.Centre = text
			case k.Value == "centre":
				r.Fault(v, "centre %q: want a name of 1 to 32 letters, digits or '-', beginning with a letter", jobfile.Clip(text))
			default:
				r.Unknown(k, []string{"agent", "centre"})
			}
		})
		r.add(x, s)
	}
}

// add adds a member. People name sites, so no two may have the same name.
func (r *reader) add(n *yaml.Node, s Site) {
	twin := slices.IndexFunc(r.rules.Sites, func(x Site) bool { return x.Agent.Name() == s.Agent.Name() })
	switch {
	case s.Agent == "":
		r.Fault(n, "a site without an agent: want 'agent: NAME@FINGERPRINT'")
	case twin >= 0:
		r.Fault(n, "two sites are named %s", jobfile.Clip(s.Agent.Name()))
	default:
		r.rules.Sites = append(r.rules.Sites, s)
	}
}

// number reads a decimal number with up to three digits behind the point, in thousandths.
func (r *reader) number(key, n *yaml.Node, to *int64, least int64) {
	text, ok := r.Scalar(key, n)
	if !ok {
		return
	}
	whole, part, _ := strings.Cut(text, ".")
	v, err := strconv.ParseUint(whole+(part + "000")[:3], 10, 63)
	digits := strings.Trim(whole+part, "0123456789") == ""
	if err != nil || !digits || whole == "" || len(part) > 3 || int64(v) > english.MaxFactor || int64(v) < least {
		r.Fault(n, "%s %q: want a number from %s to %d, with at most three digits behind the point", key.Value, jobfile.Clip(text), strconv.FormatFloat(float64(least)/1000, 'g', -1, 64), english.MaxFactor/1000)
		return
	}
	*to = int64(v)
}

func (r *reader) span(key, n *yaml.Node, to *time.Duration, least, most time.Duration) {
	text, ok := r.Scalar(key, n)
	if !ok {
		return
	}
	d, err := time.ParseDuration(text)
	if text == "0" {
		d, err = 0, nil
	}
	if err != nil || d < least || d > most {
		r.Fault(n, "%s %q: want a duration from %s to %s", key.Value, jobfile.Clip(text), least, most)
		return
	}
	*to = d
}

// whole checks what concerns several keys.
func (r *reader) whole(root *yaml.Node) {
	if len(r.Faults) == 0 && len(r.rules.Levels) == 0 {
		r.Fault(root, "no levels: want 'levels: [low, normal, high, urgent]'")
	}
	if len(r.Faults) == 0 && len(r.rules.Sites) == 0 {
		r.Fault(root, "no sites: want a list of members")
	}
	if len(r.users) > MaxUsers {
		r.Fault(root, "%d users: want at most %d", len(r.users), MaxUsers)
		return
	}
	for _, u := range r.users {
		id := protocol.AgentID(u.key.Value)
		if err := id.Validate(); err != nil && id != Everybody {
			r.Fault(u.key, "%s, or '*' for everybody", err)
		}
		name, ok := r.Scalar(u.key, u.level)
		level := r.rules.Level(name)
		if ok && level == 0 && len(r.rules.Levels) > 0 {
			r.Fault(u.level, "level %q: want %s", jobfile.Clip(name), strings.Join(r.rules.Levels, ", "))
		}
		r.rules.Users[id] = level
	}
	if len(r.rules.Users) == 0 && len(r.Faults) == 0 {
		r.Fault(root, "no users: want 'users:' with lines such as 'NAME@FINGERPRINT: urgent' or \"'*': low\"")
	}
}

// Level is the number of a level, or 0.
func (r Rules) Level(name string) int { return slices.Index(r.Levels, name) + 1 }

// Name is the name of a level.
func (r Rules) Name(level int) string {
	if level < 1 || level > len(r.Levels) {
		return strconv.Itoa(level)
	}
	return r.Levels[level-1]
}

// Allowed is the highest level that a user may use; 0: none.
func (r Rules) Allowed(id protocol.AgentID) int {
	if level, named := r.Users[id]; named {
		return level
	}
	return r.Users[Everybody]
}

// Members are the sites' agents, in order.
func (r Rules) Members() []protocol.AgentID {
	list := make([]protocol.AgentID, len(r.Sites))
	for i, s := range r.Sites {
		list[i] = s.Agent
	}
	return list
}

// Member reports whether an agent is a site of the federation.
func (r Rules) Member(id protocol.AgentID) bool {
	return slices.ContainsFunc(r.Sites, func(s Site) bool { return s.Agent == id })
}

// Transfer is how long it takes to bring input from near one site to another one.
func (r Rules) Transfer(from, to protocol.AgentID, bytes int64) time.Duration {
	if from == to {
		return 0
	}
	per := r.Beyond
	if c := r.centre(from); c != "" && c == r.centre(to) {
		per = r.Within
	}
	const gib = 1 << 30
	return time.Duration(float64(per) * (float64(bytes) / gib))
}

func (r Rules) centre(id protocol.AgentID) string {
	for _, s := range r.Sites {
		if s.Agent == id {
			return s.Centre
		}
	}
	return ""
}
