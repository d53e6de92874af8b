package user

import (
	"github.com/spf13/cobra"

	"ramp/cmd/ramp/cli"
)

func New() *cobra.Command {
	c := &cobra.Command{
		Use: "user", Short: "Ask for quotes, buy, run programs, and see what was bought", GroupID: "trade",
		Long: `A user agent buys computing time for its owner. Its directory holds its credential, its
configuration (config.yaml) and its journal. Commands talk to the agent's daemon
('ramp user serve') if it runs, and do the work themselves otherwise. Any unique prefix of a
purchase ID works.`,
	}
	c.PersistentFlags().String("dir", "", "`DIR` of the agent (default: $RAMP_DIR, or ramp/user below the data directory)")
	c.AddGroup(
		&cobra.Group{ID: "join", Title: "Join a market"},
		&cobra.Group{ID: "buy", Title: "Buy time"},
		&cobra.Group{ID: "run", Title: "Run programs in it"},
		&cobra.Group{ID: "records", Title: "Past purchases"},
		&cobra.Group{ID: "money", Title: "Money"},
	)
	cli.Add(c, newUserInit(), newUserServe(), cli.NewConfig("user", cli.ConfigsIn("user")),
		newUserResources(), newUserQuote(), newUserBuy(), newUserCancel(),
		newUserRun(), newUserJobs(), newUserStatus(), newUserLogs(), newUserFetch(), newUserSuspend(), newUserResume(), newUserKill(),
		newUserList(), newUserShow(), newUserReceipt(), newUserTrace(),
		cli.NewBalance("user", askBalance), cli.NewStatement("user", askStatements), newUserRunway(), newUserExchange(), newUserAgree(), newUserDispute())
	return c
}
