package command

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ramp/protocol/invitation"
)

func newUserInit() *cobra.Command {
	var j joining
	c := &cobra.Command{
		Use: "init --join INVITATION", Short: "Join a market: key, certificate, account and configuration", Args: cobra.NoArgs,
		Long: `Makes a user agent of the market that INVITATION is to. It makes a key, which never
leaves its directory, and a certificate request; if the invitation has a token, its bank
certifies it and opens an account at once. With --cert and --key it takes a credential
that is there already. Then it writes config.yaml, with comments. The same command goes
on where it was interrupted, and changes nothing once it is done.

An invitation without a token leaves a request to be signed (exit code 3).`,
		Example: "  ramp user init --join invitation.ramp\n  ramp user quote --cores 1 --wall 1h --within 12h --max-price 60",
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if j.dir, err = dirOf(c, "user"); err != nil {
				return err
			}
			return initUser(c, j)
		},
	}
	j.register(c)
	_ = c.MarkFlagRequired("join") // the flag is there: it was made above
	return c
}

func initUser(c *cobra.Command, j joining) error {
	v, err := readInvitation(c, j.file)
	if err != nil {
		return err
	}
	j.name = agentName(j.name, userName(), "user")
	a, err := j.run(c, v)
	if err != nil {
		return err
	}
	if a.State == stateRequest {
		if err := said(c, a, "%s", a.words("")); err != nil {
			return err
		}
		return silent(exitNothing)
	}
	path := filepath.Join(j.dir, configName)
	if isThere(path) {
		a.Again = true
	} else if err := putFile(path, []byte(userConfigText(v)), 0o600); err != nil {
		return err
	}
	if _, err := readConfig(path); err != nil {
		return err
	}
	return said(c, a, "%s", a.words(self()+" user quote --cores 1 --wall 1h --within 12h --max-price 60"+dirWords(c)))
}

// userName is who runs the program.
func userName() string {
	if u, err := user.Current(); err == nil {
		return filepath.Base(u.Username)
	}
	return ""
}

// dirWords repeat --dir in a command to give next, if it was given.
func dirWords(c *cobra.Command) string {
	if d, err := c.Flags().GetString("dir"); err == nil && d != "" {
		return " --dir " + d
	}
	return ""
}

// self is how this program was called, so that what it says to do next can be typed
// as it stands: bin/ramp where it lies in no directory of $PATH.
func self() string {
	if filepath.Base(os.Args[0]) == "ramp" {
		return os.Args[0]
	}
	return "ramp"
}

// userConfigText is the configuration of a new user agent, with comments.
func userConfigText(v invitation.Invitation) string {
	var b strings.Builder
	b.WriteString("# Configuration of a user agent, made by 'ramp user init'. docs/OPERATIONS.md lists every key.\n")
	b.WriteString("# Its credential is in agent.pem and agent.key, whom it trusts in ca.pem.\n\n")
	b.WriteString(bootstrapText(v))
	b.WriteString("user:\n")
	if len(v.Banks) > 0 {
		b.WriteString("  # Banks and currencies to pay with, in order of preference.\n  pay:\n")
	}
	b.WriteString(payText(v))
	b.WriteString("  # How long sellers are asked to hold what is bought while others vote.\n  # hold: 60s\n")
	b.WriteString("  # From the last vote to the bank's deadline.\n  # settle: 30s\n")
	b.WriteString("  # Up to so many sellers are all called; of more, so many are asked in a round.\n  # call_at_most: 64\n  # response_budget: 64\n")
	return b.String()
}

// bootstrapText are the addresses to join by.
func bootstrapText(v invitation.Invitation) string {
	var b strings.Builder
	b.WriteString("# Where the market is joined; any one of them that answers will do.\nbootstrap:\n")
	for _, a := range v.Bootstrap {
		fmt.Fprintf(&b, "  - %s\n", a)
	}
	b.WriteString("\n# Where others reach this agent. It works without: it then connects outwards only.\n# listen: [/ip4/0.0.0.0/tcp/4101]\n" + mdnsText + "\n")
	return b.String()
}

// mdnsText stands in configurations that are made.
const mdnsText = "# Find agents of this local network without an address, and be found by them.\n# mdns: true\n"

// payText are the banks of an invitation, each with its currencies.
func payText(v invitation.Invitation) string {
	var b strings.Builder
	for _, k := range v.Banks {
		for _, cur := range k.Currencies {
			fmt.Fprintf(&b, "    - {bank: %s, currency: %s}\n", k.ID, cur)
		}
	}
	return b.String()
}
