package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ramp/agents/control"
	"ramp/protocol/message"
)

// Bounds of completion.
const (
	completeTime = 2 * time.Second // somebody waits at the keyboard
	completeMost = 50              // IDs, latest first, or accounts
)

// Completions adds what the constructors leave open: files where a command or a flag takes
// one, directories for flags that take those, and nothing elsewhere.
func Completions(c *cobra.Command) {
	for _, sub := range c.Commands() {
		Completions(sub)
	}
	if c.ValidArgsFunction == nil && !c.HasSubCommands() && !takesFiles(c.Use) {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		complete := cobra.NoFileCompletions
		switch word, _ := pflag.UnquoteUsage(f); {
		case word == "DIR":
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		case word == "FILE" || word == "PATH" || f.Value.Type() == "bool":
			return
		}
		_ = c.RegisterFlagCompletionFunc(f.Name, complete) // fails if the constructor did: its own one stays
	})
}

// takesFiles reports whether an argument of a command, other than a flag's value, is a file.
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

// Choices completes the value of a flag that takes one of a few words.
func Choices(c *cobra.Command, flag string, words ...cobra.Completion) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// Optimize completes --optimize.
func Optimize(c *cobra.Command) { Choices(c, "optimize", "cost", "time", "cost-time") }

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

// Accounts completes the first arguments of a command, at most so many, with the accounts
// of a running bank. Without a daemon it offers none: the ledger is not opened for this.
func Accounts(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		dir, err := DirOf(c, "bank")
		if err != nil || len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		agent, ok := control.Dial(dir)
		if !ok {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), completeTime)
		defer cancel()
		var list []control.AccountView
		if control.Accounts.Ask(ctx, agent, struct{}{}, &list) == nil {
			for _, a := range list[:min(len(list), completeMost)] {
				names = append(names, a.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// PurchaseID completes the ID of a purchase.
func PurchaseID(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return oneID(c, args, purchaseIDs)
}

// RunID completes the ID of a purchase in which a program runs.
func RunID(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return oneID(c, args, runIDs)
}

func oneID(c *cobra.Command, args []string, list listIDs) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return idsOf(c, list), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// listIDs lists the latest purchases or runs with their names and states, oldest first.
type listIDs func(ctx context.Context, agent *control.Client) ([]cobra.Completion, error)

func purchaseIDs(ctx context.Context, agent *control.Client) (ids []cobra.Completion, err error) {
	var list []message.Purchase
	err = control.Purchases.Ask(ctx, agent, control.LastCall{Limit: completeMost}, &list)
	for _, p := range list {
		ids = append(ids, cobra.CompletionWithDesc(p.ID, NameOf(message.Purchase{ID: p.ID, RFQ: p.RFQ})+", "+p.State))
	}
	return ids, err
}

func runIDs(ctx context.Context, agent *control.Client) (ids []cobra.Completion, err error) {
	var list []message.Run
	err = control.Runs.Ask(ctx, agent, control.LastCall{Limit: completeMost}, &list)
	for _, r := range list {
		ids = append(ids, cobra.CompletionWithDesc(r.ID, NameOf(message.Purchase{ID: r.ID, RFQ: r.Name})+", "+r.State))
	}
	return ids, err
}

// idsOf lists the latest first, or nothing if the journal cannot be read just now.
func idsOf(c *cobra.Command, list listIDs) []cobra.Completion {
	agent, done, err := OpenUserRecords(c)
	if err != nil {
		return nil
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	ids, err := list(ctx, agent)
	if err != nil {
		return nil
	}
	slices.Reverse(ids)
	return ids
}
