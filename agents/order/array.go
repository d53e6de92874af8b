package order

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/protocol/message"
	"ramp/rfql/jobfile"
)

// usualSlots bounds the slots of an array that names no number.
const usualSlots = 32

// Slots is how many slots of an array run at once: as many as the sites together have cores
// for, and at most as the user says. One more would begin only when the first have ended.
func Slots(ctx context.Context, agent *control.Client, a jobfile.Array, cores int) (int, error) {
	var sites []control.ResourceLine
	if err := control.Resources.Ask(ctx, agent, struct{}{}, &sites); err != nil {
		return 0, err
	}
	room := 0
	for _, s := range sites {
		room += s.Cores / max(1, cores)
	}
	return min(max(1, room), cmp.Or(a.Slots, usualSlots), len(a.Indexes)), nil
}

// Fewer is how many of an array's slots to buy. Where sites are partly sold, some slots would
// begin only when the others have ended: without these it ends no later. It asks for quotes; call
// makes the order for a number of slots.
func Fewer(ctx context.Context, agent *control.Client, slots int, call func(slots int) (control.BuyCall, error)) (int, error) {
	units, err := quoted(ctx, agent, slots, call)
	for early := atOnce(units); err == nil && early > 0 && early < slots; early = atOnce(units) {
		var fewer []message.PurchasedUnit
		if fewer, err = quoted(ctx, agent, early, call); len(fewer) == 0 || span(fewer) > span(units) {
			break
		}
		slots, units = early, fewer
	}
	return slots, err
}

// quoted are the units of a quote; none if nobody offers them all.
func quoted(ctx context.Context, agent *control.Client, slots int, call func(slots int) (control.BuyCall, error)) (units []message.PurchasedUnit, err error) {
	q, err := call(slots)
	if err != nil {
		return nil, err
	}
	q.ID, q.Options.QuoteOnly, q.Options.Confirm, q.Options.Approve = control.NewPurchaseID(true), true, false, false
	q.Resume, q.Named, q.Follows = false, false, false
	err = control.Buy.Follow(ctx, agent, q, func(line control.ProgressLine) error {
		if p := line.Purchase; line.Done && p.State == user.StateQuoted && len(p.Units) == slots {
			units = p.Units
		}
		return nil
	})
	return units, err
}

// atOnce is how many units begin before any of them ends.
func atOnce(units []message.PurchasedUnit) (n int) {
	for _, u := range units {
		if !slices.ContainsFunc(units, func(other message.PurchasedUnit) bool { return !u.Start.Before(other.End) }) {
			n++
		}
	}
	return n
}

// span is the time from the first start of units to the last end.
func span(units []message.PurchasedUnit) time.Duration {
	first := slices.MinFunc(units, func(a, b message.PurchasedUnit) int { return a.Start.Compare(b.Start) })
	last := slices.MaxFunc(units, func(a, b message.PurchasedUnit) int { return a.End.Compare(b.End) })
	return last.End.Sub(first.Start)
}

// Divide makes a program run the indexes of an array in so many slots, each for at most limit.
func Divide(p message.Program, a jobfile.Array, slots int, limit time.Duration) (*message.Program, error) {
	if p.App != "" || len(p.Commands) > 0 {
		return nil, exit.Fail(exit.Usage, "", "--array: want one command, which each index runs")
	}
	for _, in := range p.Inputs {
		first, _, _ := strings.Cut(in.File.Path, "/")
		if strings.Trim(first, "0123456789") == "" || first == message.IndexLog || first == message.IndexExit {
			return nil, exit.Fail(exit.Usage, "--in PATH=NAME gives it another name", "--in: %q is the name of something that an array writes", first)
		}
	}
	p.Array = true
	for _, share := range a.Shares(slots) {
		p.Commands = append(p.Commands, jobfile.Runner(share, limit, p.Command))
	}
	return &p, nil
}

// exitCodes are the codes by the hash of the file that has one.
func exitCodes() map[string]int {
	codes := map[string]int{}
	for code := range 256 {
		sum := sha256.Sum256([]byte(strconv.Itoa(code) + "\n"))
		codes[hex.EncodeToString(sum[:])] = code
	}
	return codes
}

// Results are the exit codes of the indexes of an array that have ended.
func Results(run message.Run) map[int]int {
	codes, results := exitCodes(), map[int]int{}
	for _, u := range run.Units {
		for _, f := range u.Status.Outputs {
			index, err := strconv.Atoi(path.Dir(f.Path))
			if code, ok := codes[f.SHA256]; ok && err == nil && path.Base(f.Path) == message.IndexExit {
				results[index] = code
			}
		}
	}
	return results
}

// Left are the indexes that have not ended with 0.
func Left(a jobfile.Array, results map[int]int) jobfile.Array {
	left := jobfile.Array{Slots: a.Slots}
	for _, index := range a.Indexes {
		if code, ended := results[index]; !ended || code != 0 {
			left.Indexes = append(left.Indexes, index)
		}
	}
	return left
}

// maxFailed bounds the indexes that are named.
const maxFailed = 20

// Summary says how the indexes of an array ended.
func Summary(a jobfile.Array, results map[int]int) string {
	left := Left(a, results).Indexes
	text := fmt.Sprintf("%d of %d indexes ended with 0", len(a.Indexes)-len(left), len(a.Indexes))
	var list []string
	for i, index := range left {
		if i == maxFailed {
			list = append(list, fmt.Sprintf("and %d more", len(left)-i))
			break
		}
		word := fmt.Sprintf("%d did not end", index)
		if code, ended := results[index]; ended {
			word = fmt.Sprintf("%d ended with %d", index, code)
		}
		list = append(list, word)
	}
	if len(list) > 0 {
		text += "; " + strings.Join(list, ", ")
	}
	return text
}
