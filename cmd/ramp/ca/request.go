package ca

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/identity"
)

func newCARequest() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "request NAME --out DIR", Short: "Create a key and a request for an authority to sign", Args: cobra.ExactArgs(1),
		Long: `Create a private key (agent.key, P-256) and a PKCS#10 request for NAME (agent.csr) in DIR. An
existing key is kept: a renewed certificate for the same key leaves the agent's ID unchanged.
Give agent.csr, and nothing else, to the authority; it answers with agent.pem ('ramp ca sign').`,
		Example: "  ramp ca request ann --out ann",
		RunE: func(c *cobra.Command, args []string) error {
			j := join.Joining{Dir: out, Name: args[0]}
			if _, err := protocol.NewAgentID(j.Name, strings.Repeat("a", protocol.FingerprintLen)); err != nil {
				return exit.Fail(exit.Usage, "", "%w", err)
			}
			if err := join.MakeDir(out); err != nil {
				return err
			}
			key, err := j.OwnKey()
			if err != nil {
				return err
			}
			a, err := j.LeaveRequest(key, join.Answer{Dir: out})
			if err != nil {
				return err
			}
			return cli.ShowLine(c, map[string]any{"request": a.Request, "key": filepath.Join(out, join.AgentKeyFile)},
				"wrote %s: give it to the authority ('ramp ca sign'); the key stays in %s", a.Request, filepath.Join(out, join.AgentKeyFile))
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `DIR`")
	_ = c.MarkFlagRequired("out") // the flag is there: it was made above
	return c
}

func newCASign() *cobra.Command {
	var out string
	var lifetime time.Duration
	c := &cobra.Command{
		Use: "sign REQUEST", Short: "Certify a PKCS#10 request; the key stays with its owner", Args: cobra.ExactArgs(1),
		Long: `Certify the name and key of a PKCS#10 request ('-': standard input), and write the certificate
and its intermediates to --out, which must not exist. Other contents of the request are ignored.
If the authority expires sooner than --lifetime, so does the certificate, and the command says
so.`,
		Example: "  ramp ca sign agent.csr --dir ca\n  ramp ca sign - --dir ca --out ann.pem < ann.csr",
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkLifetime(lifetime); err != nil {
				return err
			}
			ca, _, err := openCA(c)
			if err != nil {
				return err
			}
			file := certificateFile(args[0], out)
			cert, err := certifyRequest(c, ca, args[0], lifetime)
			if err != nil {
				return err
			}
			if err := join.WriteNew(file, cert, 0o644); err != nil {
				return err
			}
			id, until, err := issued(c, cert, lifetime)
			if err != nil {
				return err
			}
			return cli.ShowLine(c, map[string]any{"agent": id, "certificate": file, "not_after": until}, "certified %s in %s: give it to its owner, as agent.pem", id, file)
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `FILE` (default: REQUEST with the suffix .pem)")
	cli.DurationVar(c.Flags(), &lifetime, "lifetime", join.LeafLifetime, "how long the certificate is valid")
	return c
}

// cutShort is how much sooner than requested a certificate may end without a note: making one takes
// a moment, and its times are whole seconds.
const cutShort = time.Minute

// issued is the agent and the end of a new certificate. It prints a note if that ends sooner than
// requested because the authority's own certificate does.
func issued(c *cobra.Command, certPEM []byte, asked time.Duration) (id string, until time.Time, err error) {
	if id, err = join.CertificateID(certPEM); err != nil {
		return "", until, err
	}
	cert, err := join.ParseCertificate(certPEM)
	if err != nil {
		return "", until, err
	}
	until = cert.NotAfter.UTC()
	if wanted := time.Now().Add(asked); wanted.Sub(until) > cutShort {
		fmt.Fprintf(cli.Stderr(c), "note: the certificate ends with its authority's, at %s, rather than in %s\n", words.Moment(until), words.ShortDuration(asked))
	}
	return id, until, nil
}

// checkLifetime rejects a certificate that would never be valid.
func checkLifetime(d time.Duration) error {
	if d <= 0 {
		return exit.Fail(exit.Usage, "", "--lifetime %s: want more than 0s", d)
	}
	return nil
}

func certificateFile(request, out string) string {
	if out != "" {
		return out
	}
	if request == "-" {
		return join.CertificateFile
	}
	return strings.TrimSuffix(request, filepath.Ext(request)) + ".pem"
}

func certifyRequest(c *cobra.Command, ca *identity.CA, path string, lifetime time.Duration) ([]byte, error) {
	csr, err := words.ReadInput(c.Context(), c.InOrStdin(), path, join.MaxCSR)
	if err != nil {
		return nil, err
	}
	cert, err := ca.SignRequest(csr, time.Now(), lifetime)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "'ramp ca request NAME --out DIR' makes one", "%s: %w", path, err)
	}
	return cert, nil
}
