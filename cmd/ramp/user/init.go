package user

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/invitation"
)

func newUserInit() *cobra.Command {
	var j join.Joining
	c := &cobra.Command{
		Use: "init --join INVITATION", Short: "Join a market: key, certificate, account and configuration", Args: cobra.NoArgs, GroupID: "join",
		Long: `Create a user agent in the market that INVITATION leads to: a key, which never leaves its
directory, a certificate and a commented config.yaml. If the invitation has a token, the bank
certifies the agent and opens an account at once. With --cert and --key the agent uses a
credential that exists already. Without either, the command leaves agent.csr for an authority to
sign and ends with 3; run it again once agent.pem is there. It also continues wherever it was
interrupted, and changes nothing once it is done.`,
		Example: "  ramp user init --join invitation.ramp\n  ramp user init --join invitation.ramp --name ann --dir ann",
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if j.Dir, err = cli.DirOf(c, "user"); err != nil {
				return err
			}
			return initUser(c, j)
		},
	}
	cli.RegisterJoining(c, &j)
	_ = c.MarkFlagRequired("join") // the flag is there: it was made above
	return c
}

func initUser(c *cobra.Command, j join.Joining) error {
	v, err := join.ReadInvitation(c.Context(), c.InOrStdin(), j.File)
	if err != nil {
		return err
	}
	j.Name = join.AgentName(j.Name, cli.UserName(), "user")
	done := cli.Awaiting(c, "waiting for the market to answer", join.MarketPatience)
	a, err := j.Run(c.Context(), v)
	done()
	if err != nil {
		return err
	}
	if a.State == join.StateRequest {
		if err := cli.ShowLine(c, a, "%s", a.Words("")); err != nil {
			return err
		}
		return exit.Silent(exit.Nothing)
	}
	path := filepath.Join(j.Dir, config.Name)
	if config.IsThere(path) {
		a.Again = true
	} else if err := join.PutFile(path, []byte(userConfigText(v)), 0o600); err != nil {
		return err
	}
	if _, err := config.Read(path); err != nil {
		return err
	}
	return cli.ShowLine(c, a, "%s", a.Words(cli.Self()+" user quote --cores 1 --wall 1h --within 12h"+cli.DirWords(c)))
}

// userConfigText is the configuration of a new user agent, with comments.
func userConfigText(v invitation.Invitation) string {
	var b strings.Builder
	b.WriteString("# Configuration of a user agent, made by 'ramp user init'. docs/OPERATIONS.md lists every key.\n")
	b.WriteString("# Its credential is in agent.pem and agent.key, the authorities that it trusts in ca.pem.\n\n")
	b.WriteString(bootstrapText(v))
	b.WriteString("user:\n")
	if len(v.Banks) > 0 {
		b.WriteString("  # Banks and currencies to pay with, the most widely accepted first, then in this order.\n  pay:\n")
	}
	b.WriteString(payText(v))
	b.WriteString("  # How long sellers hold an offer while the others vote.\n  # hold: 60s\n")
	b.WriteString("  # From the last vote to the bank's deadline.\n  # settle: 30s\n")
	b.WriteString("  # Up to call_at_most sellers are all called; of more, response_budget are asked in each round.\n  # call_at_most: 64\n  # response_budget: 64\n")
	return b.String()
}

func bootstrapText(v invitation.Invitation) string {
	var b strings.Builder
	b.WriteString("# Addresses to join the market by; one that answers is enough.\nbootstrap:\n")
	for _, a := range v.Bootstrap {
		fmt.Fprintf(&b, "  - %s\n", a)
	}
	b.WriteString("\n# Where others reach this agent. Optional: without, it only makes outgoing connections.\n# listen: [/ip4/0.0.0.0/tcp/4101]\n" + mdnsText + "\n")
	return b.String()
}

// mdnsText is part of generated configurations.
const mdnsText = "# Find agents on the local network without their addresses, and be found by them.\n# mdns: true\n"

func payText(v invitation.Invitation) string {
	var b strings.Builder
	for _, k := range v.Banks {
		for _, cur := range k.Currencies {
			fmt.Fprintf(&b, "    - {bank: %s, currency: %s}\n", k.ID, cur)
		}
	}
	return b.String()
}
