package command_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
)

// forged ends a line, forges another, colours it, clears the screen with a byte that no
// newline filter sees, and turns the direction of text.
const forged = "evil\x1b[31m\rramp: all is well\u009b2J\u202egnp.exe\u2028"

// Files from elsewhere hold what would control a terminal. No command prints it.
func TestNoForeignFileControlsATerminal(t *testing.T) {
	p := newPlace(t)
	certificate, request := forgedCertificate(t)
	p.good("bank invite --uses 1 --out DIR/good.ramp --dir DIR/bank")
	invitation, err := os.ReadFile(filepath.Join(p.dir, "good.ramp"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(invitation), "\n")
	for name, text := range map[string]string{
		"cert.pem": certificate, "cert.csr": request,
		"market.ramp": "ramp invitation 1\nmarket: " + forged + "\n" + rest,
		"line.ramp":   "ramp invitation 1\n" + forged + ": x\n" + rest,
		"first.ramp":  forged + "\n" + rest,
		"log.swf":     "; Computer: " + forged + "\n; Installation: " + forged + "\n; MaxJobs: " + forged + "\n1 0 1 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1\n",
		"odd.swf":     forged + "\n",
		"job.xml":     "<RFQ><" + forged + "/></RFQ>",
		"msg.acl":     "(inform :sender " + forged,
		"config.yaml": forged + ": x\n",
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"ca show DIR/cert.pem", "ca sign DIR/cert.csr --dir DIR/ca", "bank account open eve --cert DIR/cert.pem --dir DIR/bank",
		"user init --join DIR/market.ramp --name u --dir DIR/u1", "user init --join DIR/line.ramp --name u --dir DIR/u2",
		"user init --join DIR/first.ramp --name u --dir DIR/u3", "user init --join DIR/good.ramp --name " + forged + " --dir DIR/u4",
		"swf info DIR/log.swf", "swf validate DIR/log.swf", "swf info DIR/odd.swf", "swf validate DIR/odd.swf",
		"rfql validate DIR/job.xml", "rfql show DIR/job.xml", "acl parse DIR/msg.acl", "bank verify DIR/job.xml", forged, "--" + forged,
		"bank account open " + forged + " --cert DIR/ann/agent.pem --dir DIR/bank", "bank balance " + forged + " --dir DIR/bank",
	} {
		_, out, told := p.run(line)
		if out+told == "" {
			t.Errorf("ramp %q prints nothing", line)
		}
		for _, c := range out + told {
			if c != '\n' && c != '\t' && unicode.In(c, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
				t.Errorf("ramp %q prints %q:\n%q", line, c, out+told)
				break
			}
		}
	}
}

// forgedCertificate is one with a name that no agent has, and a request for one, in PEM.
func forgedCertificate(t *testing.T) (certificate, request string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	name := pkix.Name{CommonName: forged, Organization: []string{forged}}
	c := &x509.Certificate{Subject: name, SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return block("CERTIFICATE", der), block("CERTIFICATE REQUEST", csr)
}
