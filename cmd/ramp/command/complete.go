package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of what a shell is told.
const (
	completeTime = 2 * time.Second // a person waits for it
	completeMost = 50              // IDs, the latest first
)

// completions are what a shell may put in place of words: IDs of purchases where one is
// meant, the values of flags that have few, and no file names where none are meant.
func completions(c *cobra.Command) {
	for _, sub := range c.Commands() {
		completions(sub)
	}
	switch c.CommandPath() {
	case "ramp user show", "ramp user trace", "ramp user receipt", "ramp user cancel", "ramp user agree", "ramp user dispute":
		c.ValidArgsFunction = oneID("/v1/purchases")
	case "ramp user logs", "ramp user status", "ramp user suspend", "ramp user resume", "ramp user kill", "ramp user fetch":
		c.ValidArgsFunction = oneID("/v1/runs")
	default:
		if c.ValidArgsFunction == nil && !c.HasSubCommands() && !strings.Contains(c.Use, " ") { // it takes no words
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	for name, values := range flagValues(c.CommandPath()) {
		if c.LocalFlags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // it is there, and once
		}
	}
}

// flagValues are those that a flag of a command may have, where they are few.
func flagValues(path string) map[string][]cobra.Completion {
	policies := []cobra.Completion{"plain", "barter", "allowance"}
	if path == "ramp demo" {
		policies = []cobra.Completion{"barter", "metered"}
	}
	return map[string][]cobra.Completion{
		"optimize": {"cost", "time", "cost-time"},
		"mode":     {string(protocol.ModeOnReservation), string(protocol.ModeOnCompletion), string(protocol.ModeMetered)},
		"driver":   {"slurm", "pbs", "local", "command", "swf"},
		"policy":   policies,
	}
}

// oneID completes the ID of a purchase, of those that a call lists.
func oneID(path string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return idsOf(c, path), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// idsOf are the latest purchases or runs, each with what it was; none if they cannot be
// read just now.
func idsOf(c *cobra.Command, path string) (ids []cobra.Completion) {
	agent, done, err := openUserRecords(c)
	if err != nil {
		return nil
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	var list []struct {
		ID    string `json:"id"`
		Name  string `json:"name"` // of a run
		RFQ   string `json:"rfq"`  // of a purchase
		State string `json:"state"`
	}
	if agent.call(ctx, "POST", path, lastCall{Limit: completeMost}, &list) != nil {
		return nil
	}
	for i := range list {
		p := list[len(list)-1-i]
		ids = append(ids, cobra.CompletionWithDesc(p.ID, nameOf(message.Purchase{ID: p.ID, RFQ: p.RFQ + p.Name})+", "+p.State))
	}
	return ids
}
