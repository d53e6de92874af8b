package again

import (
	"context"
	"slices"
	"strings"

	"ramp/agents/control"
	"ramp/agents/journal"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol/message"
)

// Records are the purchases and runs of a user, and the commands that follow them.
type Records struct {
	Journal *journal.Journal
	Owners  *Owners
}

// maxFound bounds the IDs in the answer to a prefix or a name.
const maxFound = 3

// Find answers the IDs that are meant: the one given, or those of this name, or else those that
// begin so. It also shortens IDs.
func (u Records) Find(_ context.Context, q control.FindCall) (control.IDsFound, error) {
	if q.Interrupted != "" {
		ids, err := u.interrupted(q.Interrupted)
		return control.IDsFound{IDs: ids[max(0, len(ids)-maxFound):], All: len(ids)}, err
	}
	list, err := u.named(q.Run)
	if err != nil {
		return control.IDsFound{}, err
	}
	ids := map[string]bool{}
	for _, n := range list {
		ids[n.ID] = true
	}
	known := func(id string) bool { return ids[id] }
	all, named := words.Meant(list, words.Latest(q.ID, known))
	if all = latest(all, known); len(all) == 0 && len(q.ID) >= shortContract {
		if all, err = u.ofContract(q.ID); err != nil {
			return control.IDsFound{}, err
		}
	}
	f := control.IDsFound{IDs: append([]string{}, all[:min(len(all), maxFound)]...), All: len(all), Named: named, Short: words.ShortenAll(list, q.Shorten)}
	if f.All > 1 { // for people to choose from
		f.IDs = words.ShortenAll(list, f.IDs)
	}
	return f, nil
}

// interrupted are the jobs that go on although the command that ordered them, the same as that of
// a key, was interrupted in another session.
func (u Records) interrupted(key string) ([]string, error) {
	ids := []string{}
	add := func(id string, p *message.Program) {
		if p != nil && !p.Detached && sameElsewhere(p.Key, key) && !u.Owners.follows(id) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	err := u.Journal.Each(user.TablePurchases, func(id string, value []byte) error {
		row, err := user.ReadRow(value)
		if row.Live() {
			add(id, row.Order.Program)
		}
		return err
	})
	if err != nil {
		return ids, err
	}
	return ids, u.Journal.Each(user.TableRuns, func(id string, value []byte) error {
		r, err := user.ReadRun(value)
		if !r.Over {
			add(id, &r.Program)
		}
		return err
	})
}

// named lists the purchases, or the runs, by their IDs.
func (u Records) named(runs bool) (list []words.Named, err error) {
	if runs {
		err = u.Journal.Each(user.TableRuns, func(id string, value []byte) error {
			r, err := user.ReadRun(value)
			list = append(list, words.Named{ID: id, Name: r.Name, Created: r.Created})
			return err
		})
		return list, err
	}
	err = u.Journal.Each(user.TablePurchases, func(id string, value []byte) error {
		row, err := user.ReadRow(value)
		list = append(list, words.Named{ID: id, Name: row.Purchase.RFQ, Created: row.Purchase.Created})
		return err
	})
	return list, err
}

// LastBid is the last bid for a purchase that lost a race, or the purchase itself.
func (u Records) LastBid(id string) string {
	last := id
	for n := 2; n <= MaxBids; n++ {
		next := BidID(id, n)
		if v, err := u.Journal.Get(user.TablePurchases, next); err != nil || v == nil {
			break
		}
		last = next
	}
	return last
}

// latest leaves only the last attempt at each job.
func latest(ids []string, known func(string) bool) (last []string) {
	for _, id := range ids {
		later := func(first string) bool {
			return strings.HasPrefix(id, first+".bid") || strings.HasPrefix(id, first+".retry")
		}
		if l := words.Latest(id, known); !slices.Contains(last, l) && !slices.ContainsFunc(ids, later) {
			last = append(last, l)
		}
	}
	return last
}

const shortContract = 8 // digits of a contract's hash that name its purchase at least

func (u Records) ofContract(begin string) (ids []string, err error) {
	err = u.Journal.Each(user.TablePurchases, func(id string, value []byte) error {
		row, err := user.ReadRow(value)
		if strings.HasPrefix(string(row.Purchase.Contract), begin) {
			ids = append(ids, id)
		}
		return err
	})
	return ids, err
}
