package user

import (
	"github.com/spf13/cobra"

	"ramp/cmd/ramp/cli"
)

func New() *cobra.Command {
	c := &cobra.Command{
		Use: "user", Short: "Ask for quotes, buy, run programs, and see what was bought", GroupID: "trade",
		Long: `A user agent buys computing time for its owner. Its directory holds its credential, its
configuration (config.yaml) and its journal. Commands talk to the agent's daemon, and start it
in the background if it does not run. Where a command takes the ID of a purchase, any unique
prefix works, and so does the purchase's name.`,
	}
	c.PersistentFlags().String("dir", "", dirUsage)
	c.AddGroup(
		&cobra.Group{ID: "join", Title: "Join a market"},
		&cobra.Group{ID: "buy", Title: "Buy time"},
		&cobra.Group{ID: "run", Title: "Run programs in it"},
		&cobra.Group{ID: "records", Title: "Past purchases"},
		&cobra.Group{ID: "money", Title: "Money"},
	)
	cli.Add(c, newUserInit(), newUserServe(), newUserStop(), cli.NewConfig("user", cli.ConfigsIn("user")),
		newUserResources(), newUserQuote(), newUserBuy(), newUserCancel(),
		newUserRun(), newUserSubmit(), newUserAuction(), newUserJobs(), newUserStatus(), newUserLogs(), newUserWait(), newUserFetch(),
		newUserSuspend(), newUserResume(), newUserKill(), newUserSweep(), newUserSweeps(),
		cli.NewWeb("user", "records", cli.ConfigsIn("user")), newUserList(), newUserShow(), newUserReceipt(), newUserTrace(),
		cli.NewBalance("user", askBalance), cli.NewStatement("user", askStatements), newUserRunway(), newUserExchange(), newUserAgree(), newUserDispute())
	return c
}

const dirUsage = "`DIR` of the agent (default: $RAMP_DIR, or ramp/user below the data directory)"

// Short lists the commands for jobs that people use every day, beside 'ramp user'.
func Short() []*cobra.Command {
	list := []*cobra.Command{newUserRun(), newUserSubmit(), newUserJobs(), newUserLogs(), newUserWait(), newUserFetch(), newUserKill()}
	for _, c := range list {
		c.Flags().String("dir", "", dirUsage)
	}
	return list
}
