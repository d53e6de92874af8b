package bank

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
)

func newBankGroup() *cobra.Command {
	c := &cobra.Command{Use: "group", Short: "Manage groups of users who barter with their clusters", GroupID: "rules"}
	c.AddCommand(newBankGroupOpen(), newBankGroupSet(), newBankGroupShow())
	return c
}

func newBankGroupOpen() *cobra.Command {
	return &cobra.Command{
		Use: "open NAME", Short: "Open the account of a group, group:NAME", Args: cobra.ExactArgs(1),
		Example: "  ramp bank group open A",
		RunE: func(c *cobra.Command, args []string) error {
			return operate(c, control.OpenGroup, control.NameCall{Name: args[0]}, "opened group:%s", args[0])
		},
	}
}

func newBankGroupSet() *cobra.Command {
	var shared, ref string
	var members, clusters []string
	c := &cobra.Command{
		Use: "set NAME", Short: "Set the members of a group, their shares, and its clusters", Args: cobra.ExactArgs(1),
		Long: `Set a whole group at once: members and clusters that are not named leave it. Of what a cluster
earns, --shared per cent go to the group's account and the rest to its members, whose shares sum
to 100. A member is USER=SHARE or USER=SHARE:PAYS, where PAYS says whose money pays for its
jobs: user-then-group (the default), user or group.`,
		Example: "  ramp bank group set A --shared 50 --member a1=60 --member a2=40:user --cluster atlas",
		RunE: func(c *cobra.Command, args []string) error {
			q := control.GroupView{Group: args[0], Clusters: clusters, Members: []control.MemberView{}, Ref: ref}
			var err error
			if q.Shared, err = share("--shared", shared); err != nil {
				return err
			}
			for _, m := range members {
				v, err := memberOf(m)
				if err != nil {
					return err
				}
				q.Members = append(q.Members, v)
			}
			return operate(c, control.SetGroup, q, "set group %s: %s, %s", args[0], words.Plural(len(members), "member"), words.Plural(len(clusters), "cluster"))
		},
	}
	c.Flags().StringVar(&shared, "shared", "0", "`PERCENT` of each job's price that the group's account earns, at most four decimals")
	c.Flags().StringArrayVar(&members, "member", nil, "a member, `USER=SHARE[:PAYS]`, with its share in per cent; repeatable")
	c.Flags().StringArrayVar(&clusters, "cluster", nil, "`ACCOUNT` of a seller that earns for the group; repeatable")
	flagRef(c, &ref)
	return c
}

// memberOf reads USER=SHARE[:PAYS].
func memberOf(s string) (v control.MemberView, err error) {
	user, rest, ok := strings.Cut(s, "=")
	if !ok || user == "" {
		return v, exit.Fail(exit.Usage, "", "--member %q: want USER=SHARE or USER=SHARE:PAYS", s)
	}
	part, pays, _ := strings.Cut(rest, ":")
	v = control.MemberView{User: user, Pays: pays}
	v.Share, err = share("--member "+user, part)
	return v, err
}

// share reads a percentage as parts per million.
func share(what, s string) (int64, error) {
	const ppm = protocol.Credit / 10_000 // of one per cent
	p, err := protocol.ParseCredits(s)
	if err != nil || p < 0 || p > 100*protocol.Credit || p%ppm != 0 {
		return 0, exit.Fail(exit.Usage, "", "%s: share %q: want 0..100 per cent, at most four decimals", what, s)
	}
	return int64(p / ppm), nil
}

func perCent(ppm int64) string { return (protocol.Credits(ppm) * 100).String() + " %" }

func newBankGroupShow() *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Show one group, or all", Args: cobra.MaximumNArgs(1),
		Example: "  ramp bank group show A",
		RunE: func(c *cobra.Command, args []string) error {
			var list []control.GroupView
			if err := askBank(c, control.Groups, control.NameCall{Name: strings.Join(args, "")}, &list); err != nil {
				return err
			}
			return cli.Show(c, list, func(w io.Writer) {
				for _, g := range list {
					printGroup(w, g)
				}
			})
		},
	}
}

func printGroup(w io.Writer, g control.GroupView) {
	fmt.Fprintf(w, "group:%s shares %s of its earnings\n", g.Group, perCent(g.Shared))
	var rows [][]string
	for _, m := range g.Members {
		rows = append(rows, []string{"member", m.User, perCent(m.Share), "pays " + m.Pays})
	}
	for _, s := range g.Clusters {
		rows = append(rows, []string{"cluster", s})
	}
	cli.Table(w, rows...)
}
