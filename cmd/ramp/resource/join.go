package resource

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/invitation"
)

// siteJoin lets the agents of a site join a market by an invitation.
type siteJoin struct {
	file, cert, key string
	c               *cobra.Command
	to              invitation.Invitation
	requests        []join.Answer // certificate requests that an authority must sign first
}

func (j *siteJoin) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&j.file, "join", "", "join the market of the invitation in `FILE` ('-': standard input)")
	f.StringVar(&j.cert, "cert", "", "with --join: use the certificate in `FILE` (PEM); needs --key")
	f.StringVar(&j.key, "key", "", "with --join: its private key in `FILE` (PEM)")
}

func (j *siteJoin) asked() bool { return j.file != "" }

// read reads the invitation, which provides the values of flags that were not given.
func (j *siteJoin) read(c *cobra.Command, s *siteInit) error {
	if !j.asked() {
		if j.cert != "" || j.key != "" {
			return exit.Fail(exit.Usage, "", "--cert and --key go with --join")
		}
		return nil
	}
	if s.ca != "" {
		return exit.Fail(exit.Usage, "", "--join and --ca do not go together: the invitation names the authority")
	}
	var err error
	if j.to, err = join.ReadInvitation(c.Context(), c.InOrStdin(), j.file); err != nil {
		return err
	}
	j.c = c
	if len(s.Bootstrap) == 0 {
		s.Bootstrap = j.to.Bootstrap
	}
	if s.Bank == "" && len(j.to.Banks) > 0 {
		s.Bank = string(j.to.Banks[0].ID)
		if !c.Flags().Changed("currency") {
			s.Currency = j.to.Banks[0].Currencies[0]
		}
	}
	return nil
}

func (j *siteJoin) join(a *madeAgent, name string, several bool) error {
	if several && j.cert != "" {
		return exit.Fail(exit.Usage, "give --partition, and one certificate for each", "--cert is for one agent, and there are several")
	}
	one := join.Joining{File: j.file, Dir: a.Dir, Name: name, Cert: j.cert, Key: j.key}
	done := cli.Awaiting(j.c, "waiting for the market to answer", join.MarketPatience)
	got, err := one.Run(j.c.Context(), j.to)
	done()
	if err != nil {
		return err
	}
	a.Agent, a.Credit = got.Agent, got.Credit
	if got.State == join.StateRequest {
		j.requests = append(j.requests, got)
		a.Missing = append(a.Missing, "a certificate: the authority signs "+got.Request+" ('ramp ca sign'); put agent.pem into "+a.Dir)
	}
	return nil
}

// tell prints what was made. If an authority must certify an agent first, it ends with the exit
// code for a missing approval.
func (j *siteJoin) tell(c *cobra.Command, m madeSite) error {
	err := cli.Show(c, m, func(w io.Writer) {
		for _, a := range m.Agents {
			if j.asked() && a.Agent != "" {
				fmt.Fprintf(w, "Joined %sas %s.\n", marketWords(j.to.Market), a.Agent.Name())
			}
		}
		printMade(w, m)
	})
	if err != nil {
		return err
	}
	if len(j.requests) > 0 {
		return exit.Silent(exit.Nothing)
	}
	return nil
}

func marketWords(market string) string {
	if market == "" {
		return ""
	}
	return market + " "
}
