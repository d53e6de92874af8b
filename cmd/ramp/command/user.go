package command

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
)

func newUser() *cobra.Command {
	c := &cobra.Command{
		Use:   "user",
		Short: "Ask for quotes, buy, and look at what was bought",
		Long: `A user agent buys computing time for its owner. Its directory has its credential,
its configuration (config.yaml) and its journal. Commands talk to the agent's
daemon when it runs ('ramp user serve') and otherwise do the work themselves.
Where they take the ID of a purchase, its first letters do.`,
	}
	c.PersistentFlags().String("dir", "", "the agent's directory (default $RAMP_DIR, or ramp/user below the data directory)")
	c.AddCommand(newUserInit(), newUserQuote(), newUserBuy(), newUserList(), newUserShow(), newUserTrace(),
		newUserReceipt(), newUserCancel(), newUserRun(), newUserJobs(), newUserStatus(), newUserLogs(),
		newUserSuspend(), newUserResume(), newUserKill(), newUserExchange(), newUserAgree(), newUserDispute(), newUserFetch(), newUserResources(), newBalance(askUserWith), newStatement(askUserWith), newUserRunway(), newUserServe(), newConfig("user", configsIn("user")))
	return c
}

// dirOf is the agent's directory that a command is for.
func dirOf(c *cobra.Command, kind string) (string, error) {
	flag, err := c.Flags().GetString("dir")
	if err != nil {
		return "", err
	}
	return agentDir(flag, kind)
}

// openUserRecords reaches the journal of the command's user agent.
func openUserRecords(c *cobra.Command) (*caller, func(), error) {
	dir, err := dirOf(c, "user")
	if err != nil {
		return nil, nil, err
	}
	return userRecordsOf(dir)
}

// openUser reaches the command's user agent, or starts it in this process.
func openUser(c *cobra.Command) (*caller, func(), error) { return openUserBy(c, startUser) }

// openUserServing is openUser for a command that stays: an agent in this process
// answers other commands meanwhile, as a daemon does.
func openUserServing(c *cobra.Command) (*caller, func(), error) {
	return openUserBy(c, startUserServing)
}

// startsUser starts a user agent in this process.
type startsUser func(ctx context.Context, dir string, logTo io.Writer) (*caller, func(), error)

func openUserBy(c *cobra.Command, start startsUser) (*caller, func(), error) {
	dir, err := dirOf(c, "user")
	if err != nil {
		return nil, nil, err
	}
	return reachUserBy(c, dir, start)
}

// reachUserBy reaches the user agent of a directory, or starts it.
func reachUserBy(c *cobra.Command, dir string, start startsUser) (*caller, func(), error) {
	if err := meant(filepath.Join(dir, configName), "user"); err != nil {
		return nil, nil, err
	}
	if d, ok := awaitDaemon(c, dir); ok {
		return d, func() {}, nil
	}
	defer awaiting(c, "looking for the market", joinTime)()
	return start(c.Context(), dir, stderr(c))
}
