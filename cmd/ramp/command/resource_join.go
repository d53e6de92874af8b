package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/protocol/invitation"
)

// siteJoin lets the agents of a site join a market by an invitation.
type siteJoin struct {
	file, cert, key string
	c               *cobra.Command
	to              invitation.Invitation
	requests        []joinAnswer // that an authority must sign first
}

func (j *siteJoin) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&j.file, "join", "", "invitation to a market (a file; '-': standard input): its addresses, bank and authority")
	f.StringVar(&j.cert, "cert", "", "with --join: certificate (PEM) that is there already; needs --key")
	f.StringVar(&j.key, "key", "", "with --join: its private key (PEM)")
}

// asked reports whether there is an invitation.
func (j *siteJoin) asked() bool { return j.file != "" }

// read reads the invitation; what it says stands where the flags say nothing.
func (j *siteJoin) read(c *cobra.Command, s *siteInit) error {
	if !j.asked() {
		if j.cert != "" || j.key != "" {
			return fail(exitUsage, "", "--cert and --key go with --join")
		}
		return nil
	}
	if s.ca != "" {
		return fail(exitUsage, "", "--join and --ca do not go together: the invitation names the authority")
	}
	var err error
	if j.to, err = readInvitation(c, j.file); err != nil {
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

// join lets one agent join.
func (j *siteJoin) join(a *madeAgent, name string, several bool) error {
	if several && j.cert != "" {
		return fail(exitUsage, "give --partition, and one certificate for each", "--cert is for one agent, and there are several")
	}
	one := joining{file: j.file, dir: a.Dir, name: name, cert: j.cert, key: j.key}
	got, err := one.run(j.c, j.to)
	if err != nil {
		return err
	}
	a.Agent, a.Credit = got.Agent, got.Credit
	if got.State == stateRequest {
		j.requests = append(j.requests, got)
		a.Missing = append(a.Missing, "a certificate: the authority signs "+got.Request+" ('ramp ca sign'); put agent.pem into "+a.Dir)
	}
	return nil
}

// tell prints what was made. Agents that an authority must certify first end it
// with the code for what needs approval.
func (j *siteJoin) tell(c *cobra.Command, m madeSite) error {
	if !wantsJSON(c) && j.asked() {
		for _, a := range m.Agents {
			if a.Agent != "" {
				fmt.Fprintf(stdout(c), "joined %sas %s\n", marketWords(j.to.Market), a.Agent)
			}
		}
	}
	if err := printMade(c, m); err != nil {
		return err
	}
	if len(j.requests) > 0 {
		return silent(exitNothing)
	}
	return nil
}

func marketWords(market string) string {
	if market == "" {
		return ""
	}
	return market + " "
}
