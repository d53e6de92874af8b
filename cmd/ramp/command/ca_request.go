package command

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol/identity"
)

// maxCSR bounds a certificate request, in bytes.
const maxCSR = 1 << 16

func newCARequest() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "request NAME --out DIR", Short: "Make a key and a request for an authority to sign; the key stays here", Args: cobra.ExactArgs(1),
		Long: `Makes a private key (agent.key, P-256) and a PKCS#10 request for NAME (agent.csr) in
DIR. A key that is there already is kept: so a certificate that runs out is renewed over
the same key, and the agent stays the same. Give agent.csr, and only that, to the
authority; it answers with agent.pem ('ramp ca sign').`,
		RunE: func(c *cobra.Command, args []string) error {
			j := joining{dir: out, name: args[0]}
			if err := makeDir(out); err != nil {
				return err
			}
			key, err := j.ownKey()
			if err != nil {
				return err
			}
			a, err := j.leaveRequest(key, joinAnswer{Dir: out})
			if err != nil {
				return err
			}
			return said(c, map[string]any{"request": a.Request, "key": filepath.Join(out, agentKey)},
				"wrote %s: give it to the authority ('ramp ca sign'); the key stays in %s", a.Request, filepath.Join(out, agentKey))
		},
	}
	c.Flags().StringVar(&out, "out", "", "directory to write to")
	_ = c.MarkFlagRequired("out") // the flag is there: it was made above
	return c
}

func newCASign() *cobra.Command {
	var out string
	var lifetime time.Duration
	c := &cobra.Command{
		Use: "sign REQUEST", Short: "Certify a PKCS#10 request; the key stays with its owner", Args: cobra.ExactArgs(1),
		Long: `Certifies the name and key of a PKCS#10 request ('-': standard input), and writes the
certificate, with those between it and the root, to --out. What else the request asks
for is ignored.`,
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
			id, err := certificateID(cert)
			if err != nil {
				return err
			}
			if err := writeNew(file, cert, 0o644); err != nil {
				return err
			}
			until, err := goodUntil(c, cert, lifetime)
			if err != nil {
				return err
			}
			return said(c, map[string]any{"agent": id, "certificate": file, "not_after": until}, "certified %s in %s: give it to its owner, as agent.pem", id, file)
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write (default: REQUEST, with .pem at its end)")
	durationVar(c.Flags(), &lifetime, "lifetime", leafLifetime, "how long the certificate is valid")
	return c
}

// cutShort is by how much a certificate may end sooner than was asked for before that
// is told: it takes a while to make one, and its times are whole seconds.
const cutShort = time.Minute

// goodUntil is when a certificate ends. No certificate outlasts its authority's: of one
// that is cut short by that, standard error says so.
func goodUntil(c *cobra.Command, certPEM []byte, asked time.Duration) (time.Time, error) {
	cert, err := parseCertificate(certPEM)
	if err != nil {
		return time.Time{}, err
	}
	until := cert.NotAfter.UTC()
	if wanted := time.Now().Add(asked); wanted.Sub(until) > cutShort {
		fmt.Fprintf(stderr(c), "note: the certificate ends with its authority's, at %s, not %s from now\n", until.Format(time.RFC3339), shortTime(asked))
	}
	return until, nil
}

// checkLifetime refuses a certificate that would never be valid.
func checkLifetime(d time.Duration) error {
	if d <= 0 {
		return fail(exitUsage, "", "--lifetime %s: want more than 0s", d)
	}
	return nil
}

// certificateFile is where the certificate of a request goes.
func certificateFile(request, out string) string {
	if out != "" {
		return out
	}
	if request == "-" {
		return agentCert
	}
	return strings.TrimSuffix(request, filepath.Ext(request)) + ".pem"
}

func certifyRequest(c *cobra.Command, ca *identity.CA, path string, lifetime time.Duration) ([]byte, error) {
	csr, err := readInput(c, path, maxCSR)
	if err != nil {
		return nil, err
	}
	cert, err := ca.SignRequest(csr, time.Now(), lifetime)
	if err != nil {
		return nil, fail(exitUsage, "'ramp ca request NAME --out DIR' makes one", "%w", fmt.Errorf("%s: %w", path, err))
	}
	return cert, nil
}
