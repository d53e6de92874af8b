package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ramp/protocol"
)

func newBankGroup() *cobra.Command {
	c := &cobra.Command{Use: "group", Short: "Keep the groups of users that barter with their clusters"}
	c.AddCommand(newBankGroupOpen(), newBankGroupSet(), newBankGroupShow())
	return c
}

func newBankGroupOpen() *cobra.Command {
	return &cobra.Command{
		Use: "open NAME", Short: "Open a group's account, group:NAME", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var e operatorEntry
			if err := askBank(c, "/v1/opengroup", nameCall{args[0]}, &e); err != nil {
				return err
			}
			return said(c, e, "opened group:%s (entry %d)", args[0], e.Entry)
		},
	}
}

func newBankGroupSet() *cobra.Command {
	var shared, ref string
	var members, clusters []string
	c := &cobra.Command{
		Use: "set NAME", Short: "Say who is in a group, with which shares, and which clusters earn for it", Args: cobra.ExactArgs(1),
		Long: `Sets a whole group at once: who is left out leaves it. Of what a cluster earns,
--shared per cent go to the group's account and the rest to its members, whose shares
sum to 100. A member is USER=SHARE or USER=SHARE:PAYS, where PAYS says whose money its
jobs cost: user-then-group (the default), user or group.`,
		Example: "  ramp bank group set A --shared 50 --member a1=60 --member a2=40:user --cluster atlas",
		RunE: func(c *cobra.Command, args []string) error {
			q := groupView{Group: args[0], Clusters: clusters, Members: []memberView{}, Ref: ref}
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
			var e operatorEntry
			if err := askBank(c, "/v1/group", q, &e); err != nil {
				return err
			}
			return said(c, e, "set group %s: %s, %s (entry %d)", args[0], plural(len(members), "member"), plural(len(clusters), "cluster"), e.Entry)
		},
	}
	c.Flags().StringVar(&shared, "shared", "0", "per cent of each job's price that the group's account earns")
	c.Flags().StringArrayVar(&members, "member", nil, "a user, its share in per cent, and :PAYS if not user-then-group; may be given many times")
	c.Flags().StringArrayVar(&clusters, "cluster", nil, "account of a seller that earns for the group; may be given many times")
	flagRef(c, &ref)
	return c
}

// memberOf reads USER=SHARE[:PAYS].
func memberOf(s string) (v memberView, err error) {
	user, rest, ok := strings.Cut(s, "=")
	if !ok || user == "" {
		return v, fail(exitUsage, "", "--member %q: want USER=SHARE or USER=SHARE:PAYS", s)
	}
	part, pays, _ := strings.Cut(rest, ":")
	v = memberView{User: user, Pays: pays}
	v.Share, err = share("--member "+user, part)
	return v, err
}

// share reads per cent as parts per million.
func share(what, s string) (int64, error) {
	const ppm = protocol.Credit / 10_000 // of one per cent
	p, err := protocol.ParseCredits(s)
	if err != nil || p < 0 || p > 100*protocol.Credit || p%ppm != 0 {
		return 0, fail(exitUsage, "", "%s: share %q: want 0..100 per cent, at most four decimals", what, s)
	}
	return int64(p / ppm), nil
}

// perCent prints parts per million.
func perCent(ppm int64) string { return (protocol.Credits(ppm) * 100).String() + " %" }

func newBankGroupShow() *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Show one group, or all", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var list []groupView
			if err := askBank(c, "/v1/groups", nameCall{strings.Join(args, "")}, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			for _, g := range list {
				fmt.Fprintf(stdout(c), "group:%s shares %s of what it earns\n", g.Group, perCent(g.Shared))
				var rows [][]string
				for _, m := range g.Members {
					rows = append(rows, []string{"member", m.User, perCent(m.Share), "pays " + m.Pays})
				}
				for _, s := range g.Clusters {
					rows = append(rows, []string{"cluster", s})
				}
				table(stdout(c), rows...)
			}
			return nil
		},
	}
}
