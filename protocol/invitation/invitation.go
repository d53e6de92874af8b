package invitation

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// Version is the version of the file that is written, and the newest that is read.
const Version = 1

// Bounds of an invitation.
const (
	MaxSize       = 256 << 10 // bytes of the file
	MaxAddresses  = 32        // to join by
	MaxBanks      = 16
	MaxCurrencies = 64  // of a bank
	MaxMarket     = 100 // bytes of the market's name
	maxLine       = 2048
	maxAddress    = 512 // bytes of an address
)

// Errors on which a caller can act.
var (
	ErrNotInvitation = errors.New("not an invitation: want a file that begins with the line 'ramp invitation 1'")
	ErrNewer         = errors.New("written by a newer version of this program")
)

// Invitation is the content of the file.
type Invitation struct {
	Market    string   // its name for people; may be empty
	Bootstrap []string // addresses to join by, each with /p2p/ID; 1..MaxAddresses
	Banks     []Bank   // at most MaxBanks
	Enrol     *Enrol   // nil: the invitation enrols nobody
	Anchors   []byte   // trust anchors, PEM
}

// Bank is a bank of the market.
type Bank struct {
	ID         protocol.AgentID
	Currencies []string // 1..MaxCurrencies, the default first
}

// Enrol is how a newcomer gets a certificate and an account.
type Enrol struct {
	Bank     protocol.AgentID // the bank that enrols
	Token    Token
	Expires  time.Time        // UTC, whole seconds
	Credit   protocol.Credits // initial credit; may be zero
	Currency string           // of the credit
}

// Token admits a newcomer: tokenLen letters of base32, 160 random bits.
type Token string

const tokenLen = 32

var tokenLetters = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewToken draws a token: 20 bytes of random.
func NewToken(random io.Reader) (Token, error) {
	var b [20]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("new token: %w", err)
	}
	return Token(strings.ToLower(tokenLetters.EncodeToString(b[:]))), nil
}

// Validate reports whether t has the form of a token.
func (t Token) Validate() error {
	if len(t) != tokenLen || strings.Trim(string(t), "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return fmt.Errorf("token of %d bytes: want %d letters of base32", len(t), tokenLen)
	}
	return nil
}

// Hash is the form in which a bank stores a token.
func (t Token) Hash() [32]byte {
	return sha256.Sum256([]byte("ramp: token of an invitation, version 1\n" + string(t)))
}

// Validate reports a missing or invalid field.
func (v Invitation) Validate() error {
	switch {
	case len(v.Market) > MaxMarket || strings.TrimSpace(v.Market) != v.Market || !printable(v.Market, true):
		return fmt.Errorf("market: want at most %d letters on one line", MaxMarket)
	case len(v.Bootstrap) < 1 || len(v.Bootstrap) > MaxAddresses:
		return fmt.Errorf("bootstrap: %d addresses, want 1..%d", len(v.Bootstrap), MaxAddresses)
	case len(v.Banks) > MaxBanks:
		return fmt.Errorf("bank: %d banks, want at most %d", len(v.Banks), MaxBanks)
	}
	for _, a := range v.Bootstrap {
		if !strings.HasPrefix(a, "/") || !strings.Contains(a, "/p2p/") || len(a) > maxAddress || !printable(a, false) {
			return fmt.Errorf("bootstrap: %q: want an address such as /ip4/192.0.2.7/tcp/4101/p2p/ID", protocol.Clip(a))
		}
	}
	for _, b := range v.Banks {
		if err := b.validate(); err != nil {
			return err
		}
	}
	if _, err := identity.NewTrust(v.Anchors, nil); err != nil {
		return err
	}
	return v.Enrol.validate(v.Banks)
}

func (b Bank) validate() error {
	if err := b.ID.Validate(); err != nil {
		return fmt.Errorf("bank: %w", err)
	}
	if len(b.Currencies) < 1 || len(b.Currencies) > MaxCurrencies {
		return fmt.Errorf("bank: %d currencies, want 1..%d", len(b.Currencies), MaxCurrencies)
	}
	for _, c := range b.Currencies {
		if !validCurrency(c) {
			return fmt.Errorf("bank: currency %q: want 3..8 capital letters", protocol.Clip(c))
		}
	}
	return nil
}

func (e *Enrol) validate(banks []Bank) error {
	if e == nil {
		return nil
	}
	if err := e.Token.Validate(); err != nil {
		return err
	}
	named := false
	for _, b := range banks {
		named = named || b.ID == e.Bank
	}
	switch {
	case !named:
		return fmt.Errorf("enrol: %q is not one of the banks", protocol.Clip(string(e.Bank)))
	case e.Expires.IsZero() || !e.Expires.Equal(e.Expires.Truncate(time.Second)) || e.Expires.Year() > 9999:
		return errors.New("expires: want a time such as 2026-12-01T08:00:00Z")
	case e.Credit < 0 || e.Credit > 0 && !validCurrency(e.Currency) || e.Credit == 0 && e.Currency != "":
		return errors.New("credit: want an amount and its currency, such as 100 CPU")
	}
	return nil
}

// validCurrency applies the rule of a bank's configuration.
func validCurrency(s string) bool {
	return len(s) >= 3 && len(s) <= 8 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// printable reports whether s has only visible ASCII, and spaces if allowed.
func printable(s string, spaces bool) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' || c == ' ' && !spaces })
}
