package invitation_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/invitation"
)

// digits replaces a random source, so that every run has the same keys.
type digits struct{ next byte }

func (d *digits) Read(b []byte) (int, error) {
	for i := range b {
		d.next = d.next*5 + 3
		b[i] = d.next
	}
	return len(b), nil
}

func anchors(t testing.TB) []byte {
	t.Helper()
	ca, err := identity.NewCA("test-ca", time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), 24*time.Hour, &digits{})
	if err != nil {
		t.Fatal(err)
	}
	return ca.CertPEM()
}

const (
	bankID  = protocol.AgentID("bank@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	address = "/ip4/192.0.2.7/tcp/4101/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
)

func whole(t testing.TB) invitation.Invitation {
	t.Helper()
	token, err := invitation.NewToken(&digits{9})
	if err != nil {
		t.Fatal(err)
	}
	return invitation.Invitation{
		Market: "a market", Bootstrap: []string{address}, Anchors: anchors(t),
		Banks: []invitation.Bank{{ID: bankID, Currencies: []string{"CPU", "GPU"}}},
		Enrol: &invitation.Enrol{
			Bank: bankID, Token: token, Expires: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), Credit: 100 * protocol.Credit, Currency: "CPU",
		},
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	good := anchors(t)
	rapid.Check(t, func(t *rapid.T) {
		v := invitation.Invitation{Market: rapid.StringMatching(`([a-z]([ a-z#:]{0,20}[a-z])?)?`).Draw(t, "market"), Anchors: good}
		for i := range rapid.IntRange(1, 5).Draw(t, "addresses") {
			v.Bootstrap = append(v.Bootstrap, fmt.Sprintf("/dns4/site%d.example.org/tcp/4001/p2p/Qm", i))
		}
		for range rapid.IntRange(0, 3).Draw(t, "banks") {
			id := protocol.AgentID(rapid.StringMatching(`[a-z][a-z0-9._-]{0,20}@[a-z2-7]{32}`).Draw(t, "bank"))
			v.Banks = append(v.Banks, invitation.Bank{ID: id, Currencies: rapid.SliceOfN(rapid.StringMatching(`[A-Z]{3,8}`), 1, 4).Draw(t, "currencies")})
		}
		if len(v.Banks) > 0 && rapid.Bool().Draw(t, "enrols") {
			token, _ := invitation.NewToken(&digits{rapid.Byte().Draw(t, "seed")})
			v.Enrol = &invitation.Enrol{Bank: v.Banks[0].ID, Token: token, Expires: time.Unix(rapid.Int64Range(1, 1<<37).Draw(t, "expires"), 0).UTC()}
			if v.Enrol.Credit = protocol.Credits(rapid.Int64Range(0, 1<<62).Draw(t, "credit")); v.Enrol.Credit > 0 {
				v.Enrol.Currency = "CPU"
			}
		}
		if err := v.Validate(); err != nil {
			t.Fatal(err)
		}
		got, err := invitation.Parse(v.Text())
		if err != nil {
			t.Fatalf("%v\n%s", err, v.Text())
		}
		if d := cmp.Diff(v, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestAFileThatIsNoInvitationIsRefusedInOneLine(t *testing.T) {
	good := string(whole(t).Text())
	change := func(old, with string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in it", old)
		}
		return strings.Replace(good, old, with, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "not an invitation"},
		{"another file", "bank: {currencies: [CPU]}\n", "not an invitation"},
		{"a later version", change("invitation 1", "invitation 2"), "written by a newer version"},
		{"version nought", change("invitation 1", "invitation 0"), "not an invitation"},
		{"too long", good + strings.Repeat("\n", invitation.MaxSize), "not an invitation"},
		{"a misspelt key", change("bootstrap:", "bootstarp:"), `line 5: unknown key "bootstarp"`},
		{"no address", change("bootstrap: "+address+"\n", ""), "bootstrap: 0 addresses, want 1..32"},
		{"an address without a peer", change("/p2p/", "/p2/"), "bootstrap: "},
		{"a bank that is none", change("bank: bank@", "bank: bank"), "bank: "},
		{"a currency that is none", change("CPU,GPU", "cpu"), `currency "cpu": want 3..8 capital letters`},
		{"a short token", change("\ntoken: ", "\ntoken: a"), "token of 33 bytes: want 32 letters of base32"},
		{"two tokens", change("\ntoken: ", "\ntoken: abc\ntoken: "), "given twice"},
		{"an empty token", change("\ntoken: ", "\ntoken: \n#"), "line 8: it has no value"},
		{"a token of a bank that is not there", change("enrol: bank", "enrol: other"), "is not one of the banks"},
		{"a time that is none", change("2026-12-01T08", "2026-12-01 08"), "line 9: expires: "},
		{"a credit of nothing", change("credit: 100", "credit: 0"), "line 10: credit: "},
		{"no certificate", good[:strings.Index(good, "-----BEGIN")], "no PEM block of a certificate"},
		{"a certificate that was cut off", good[:len(good)-40], "want complete PEM blocks"},
		{"a second one that was cut off", good + good[strings.Index(good, "-----BEGIN"):len(good)-40], "want complete PEM blocks"},
		{"a key behind the certificates", good + "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n", "want complete PEM blocks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := invitation.Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := invitation.Parse([]byte(change("invitation 1", "invitation 2"))); !errors.Is(err, invitation.ErrNewer) {
		t.Error(err)
	}
}

func TestATokenIsKeptAsItsHashOnly(t *testing.T) {
	v := whole(t)
	if h := v.Enrol.Token.Hash(); bytes.Contains(h[:], []byte(v.Enrol.Token)[:8]) || h == (invitation.Token("x")).Hash() {
		t.Error("the hash tells the token")
	}
}

func TestTheExchangeReadsBack(t *testing.T) {
	q := invitation.Request{Version: 1, Token: whole(t).Enrol.Token, CSR: "pem"}
	if got, err := invitation.ParseRequest(q.Encode()); err != nil || got != q {
		t.Errorf("%+v, %v", got, err)
	}
	for _, a := range []invitation.Answer{
		{Version: 1, Agent: bankID, Certificate: "pem", Credit: 5, Currency: "CPU", Again: true},
		{Version: 1, Refused: protocol.CodeLimit, Note: "used up"},
	} {
		if got, err := invitation.ParseAnswer(a.Encode()); err != nil || got != a {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for _, b := range []string{"", "{}", `{"version":2}`, `{"version":1,"token":"x","csr":""}`, `{"version":1,"tokens":1}`, string(q.Encode()) + "{}", strings.Repeat(" ", invitation.MaxRequest) + "{}"} {
		if got, err := invitation.ParseRequest([]byte(b)); err == nil {
			t.Errorf("%.40q is read as the request %+v", b, got)
		}
		if got, err := invitation.ParseAnswer([]byte(b)); err == nil {
			t.Errorf("%.40q is read as the answer %+v", b, got)
		}
	}
}

// An accepted file is valid, and writing and reading it gives the same invitation.
func FuzzInvitation(f *testing.F) {
	f.Add(whole(f).Text())
	plain := whole(f)
	plain.Enrol, plain.Market = nil, ""
	f.Add(plain.Text())
	f.Add([]byte("ramp invitation 1\nbank: x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := invitation.Parse(b)
		if err != nil {
			return
		}
		again, err := invitation.Parse(v.Text())
		if err != nil || !cmp.Equal(v, again) {
			t.Fatalf("%v\n%s", err, cmp.Diff(v, again))
		}
	})
}

// Bytes from a stranger are refused or are a request that is written back unchanged.
func FuzzRequest(f *testing.F) {
	f.Add(invitation.Request{Token: whole(f).Enrol.Token, CSR: "pem"}.Encode())
	f.Add(invitation.Answer{Refused: protocol.CodeUnknown, Note: "no"}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := invitation.ParseRequest(b); err == nil {
			if again, err := invitation.ParseRequest(q.Encode()); err != nil && len(q.Encode()) <= invitation.MaxRequest || err == nil && again != q {
				t.Fatalf("%+v, %v", again, err)
			}
		}
		if a, err := invitation.ParseAnswer(b); err == nil {
			if again, err := invitation.ParseAnswer(a.Encode()); err != nil && len(a.Encode()) <= invitation.MaxAnswer || err == nil && again != a {
				t.Fatalf("%+v, %v", again, err)
			}
		}
	})
}
