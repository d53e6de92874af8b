package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ramp/agents/sim/experiment"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of what a shell is told.
const (
	completeTime = 2 * time.Second // a person waits for it
	completeMost = 50              // IDs, the latest first, or accounts
)

// completions are what a shell may put in place of words: IDs of purchases, accounts and
// names where they are meant, the values of flags that have few, and file names only
// where a file is meant.
func completions(c *cobra.Command) {
	for _, sub := range c.Commands() {
		completions(sub)
	}
	if c.ValidArgsFunction == nil && !c.HasSubCommands() {
		c.ValidArgsFunction = wordsOf(c)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if complete := valuesOf(c, f); complete != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, complete) // it is there, and once
		}
	})
}

// wordsOf completes the words that a command takes; nil: file names.
func wordsOf(c *cobra.Command) cobra.CompletionFunc {
	switch strings.TrimPrefix(c.CommandPath(), "ramp ") {
	case "user show", "user trace", "user receipt", "user cancel", "user agree", "user dispute":
		return oneID("/v1/purchases")
	case "user logs", "user status", "user suspend", "user resume", "user kill", "user fetch":
		return oneID("/v1/runs")
	case "bank balance", "bank statement", "bank credit", "bank account limit", "bank account freeze", "bank account unfreeze", "bank account close", "bank allowance set":
		return accountNames(1)
	case "bank transfer":
		return accountNames(2)
	case "bank policy":
		return secondWord(policies())
	case "sim experiment":
		return cobra.FixedCompletions(experimentNames(), cobra.ShellCompDirectiveNoFileComp)
	case "help":
		return commandNames
	}
	if takesFiles(c.Use) {
		return nil
	}
	return cobra.NoFileCompletions
}

// takesFiles reports whether one of the words behind a command's name, and not behind a
// flag of it, is a file's.
func takesFiles(use string) bool {
	words := strings.Fields(use)
	for i, w := range words {
		switch strings.Trim(w, "[].") {
		case "FILE", "REQUEST", "CERT", "RECEIPT":
			if !strings.HasPrefix(words[i-1], "--") {
				return true
			}
		}
	}
	return false
}

// valuesOf completes the value of a flag; nil: file names, or it takes none.
func valuesOf(c *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	if values := flagValues(c.CommandPath(), f.Name); values != nil {
		directive := cobra.ShellCompDirectiveNoFileComp
		if f.Name == "faults" {
			directive = cobra.ShellCompDirectiveDefault // or a file
		}
		return cobra.FixedCompletions(values, directive)
	}
	if f.Value.Type() == "bool" {
		return nil
	}
	switch valueWord(f) {
	case "DIR":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case "FILE", "PATH":
		return nil
	}
	return cobra.NoFileCompletions
}

func policies() []cobra.Completion { return []cobra.Completion{"plain", "barter", "allowance"} }

// flagValues are those that a flag of a command may have, where they are few.
func flagValues(path, flag string) []cobra.Completion {
	switch flag {
	case "optimize":
		return []cobra.Completion{"cost", "time", "cost-time"}
	case "mode":
		return []cobra.Completion{string(protocol.ModeOnReservation), string(protocol.ModeOnCompletion), string(protocol.ModeMetered)}
	case "driver":
		return []cobra.Completion{"slurm", "pbs", "local", "command", "swf"}
	case "faults":
		return []cobra.Completion{"none", "light", "forgetful", "heavy"}
	case "model":
		return []cobra.Completion{"all", "batch", "interactive"}
	case "policy":
		if path == "ramp demo" {
			return []cobra.Completion{"barter", "metered"}
		}
		return policies()
	}
	return nil
}

// secondWord completes the second word of a command, of a few.
func secondWord(words []cobra.Completion) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 {
			words = nil
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// experimentNames are what 'ramp sim experiment' takes.
func experimentNames() []cobra.Completion {
	names := []cobra.Completion{"list", "all"}
	for _, e := range experiment.Experiments() {
		names = append(names, cobra.CompletionWithDesc(e.Name, e.Shows))
	}
	return names
}

// commandNames completes the name of a command behind 'help'.
func commandNames(c *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	about, err := commandAt(c.Root(), args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, sub := range about.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// accountNames completes the first words of a command as accounts, those that the bank's
// daemon has: without one the ledger is not opened for this.
func accountNames(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		dir, err := dirOf(c, "bank")
		if err != nil || len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		agent, ok := dialDaemon(dir)
		if !ok {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), completeTime)
		defer cancel()
		var list []struct {
			Name string `json:"name"`
		}
		if agent.call(ctx, "POST", "/v1/accounts", nil, &list) == nil {
			for _, a := range list[:min(len(list), completeMost)] {
				names = append(names, a.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
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
