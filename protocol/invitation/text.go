package invitation

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
)

const (
	head      = "ramp invitation "
	pemBegins = "-----BEGIN "
)

// Text writes an invitation. Parse reads it back.
func (v Invitation) Text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%d\n", head, Version)
	b.WriteString("# Join with: ramp user init --join FILE, or ramp resource init --join FILE\n")
	if v.Enrol != nil {
		b.WriteString("# Whoever has this file can join by its token: keep it to yourself.\n")
	}
	line := func(key, value string) { fmt.Fprintf(&b, "%s: %s\n", key, value) }
	if v.Market != "" {
		line("market", v.Market)
	}
	for _, a := range v.Bootstrap {
		line("bootstrap", a)
	}
	for _, k := range v.Banks {
		line("bank", string(k.ID)+" "+strings.Join(k.Currencies, ","))
	}
	if e := v.Enrol; e != nil {
		line("enrol", string(e.Bank))
		line("token", string(e.Token))
		line("expires", e.Expires.UTC().Format(time.RFC3339))
		if e.Credit > 0 {
			line("credit", e.Credit.String()+" "+e.Currency)
		}
	}
	anchors, _ := certificates(v.Anchors) // Validate has checked them
	b.Write(anchors)
	return b.Bytes()
}

// Parse reads an invitation. Its error names the line and the allowed values, and may
// wrap ErrNotInvitation or ErrNewer.
func Parse(b []byte) (Invitation, error) {
	if len(b) > MaxSize {
		return Invitation{}, fmt.Errorf("%d bytes, at most %d: %w", len(b), MaxSize, ErrNotInvitation)
	}
	lines, anchors := cutPEM(b)
	if err := checkHead(lines[0]); err != nil {
		return Invitation{}, err
	}
	anchors, err := certificates(anchors)
	if err != nil {
		return Invitation{}, err
	}
	v := Invitation{Anchors: anchors}
	for i, line := range lines[1:] {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := v.line(line); err != nil {
			return Invitation{}, fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	return v, v.Validate()
}

// cutPEM separates the lines, at least one, from the certificates.
func cutPEM(b []byte) (lines []string, anchors []byte) {
	text := string(b)
	at := strings.Index("\n"+text, "\n"+pemBegins)
	if at >= 0 {
		text, anchors = text[:at], b[at:]
	}
	return strings.Split(text, "\n"), anchors
}

// certificates normalizes PEM blocks of certificates. Anything else, such as a truncated
// block, is an error, so that no anchor is lost unnoticed.
func certificates(b []byte) ([]byte, error) {
	var out []byte
	for len(bytes.TrimSpace(b)) > 0 {
		block, rest := pem.Decode(b)
		if block == nil || block.Type != "CERTIFICATE" || !bytes.HasPrefix(bytes.TrimSpace(b), []byte(pemBegins)) {
			return out, errors.New("trust anchors: want complete PEM blocks of certificates, and nothing else behind the first")
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		b = rest
	}
	return out, nil
}

func checkHead(line string) error {
	number, ok := strings.CutPrefix(strings.TrimRight(line, " \r"), head)
	n, err := strconv.ParseUint(number, 10, 31)
	switch {
	case !ok || err != nil || n == 0:
		return ErrNotInvitation
	case n > Version:
		return fmt.Errorf("invitation of version %d, this program reads up to %d: %w", n, Version, ErrNewer)
	}
	return nil
}

func (v *Invitation) line(line string) error {
	key, value, ok := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	if !ok || len(line) > maxLine {
		return fmt.Errorf("%q: want KEY: VALUE of at most %d bytes", protocol.Clip(line), maxLine)
	}
	switch key {
	case "market":
		return once(&v.Market, value)
	case "bootstrap":
		v.Bootstrap = append(v.Bootstrap, value)
		return nil
	case "bank":
		id, currencies, _ := strings.Cut(value, " ")
		v.Banks = append(v.Banks, Bank{protocol.AgentID(id), strings.Split(strings.TrimSpace(currencies), ",")})
		return nil
	case "enrol", "token", "expires", "credit":
		return v.enrolLine(key, value)
	}
	return fmt.Errorf("unknown key %q: want market, bootstrap, bank, enrol, token, expires or credit", protocol.Clip(key))
}

func (v *Invitation) enrolLine(key, value string) error {
	if v.Enrol == nil {
		v.Enrol = &Enrol{}
	}
	e := v.Enrol
	switch key {
	case "enrol":
		return once(&e.Bank, protocol.AgentID(value))
	case "token":
		return once(&e.Token, Token(value))
	case "expires":
		t, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return fmt.Errorf("expires: %q: want a time such as 2026-12-01T08:00:00Z", protocol.Clip(value))
		}
		return once(&e.Expires, t.UTC())
	}
	amount, currency, _ := strings.Cut(value, " ")
	c, err := protocol.ParseCredits(amount)
	if err != nil || c <= 0 {
		return fmt.Errorf("credit: %q: want an amount and its currency, such as 100 CPU", protocol.Clip(value))
	}
	if err := once(&e.Currency, strings.TrimSpace(currency)); err != nil {
		return err
	}
	return once(&e.Credit, c)
}

// once stores a value that may be given only once.
func once[T comparable](into *T, value T) error {
	var none T
	if *into != none {
		return fmt.Errorf("given twice")
	}
	if value == none {
		return fmt.Errorf("it has no value")
	}
	*into = value
	return nil
}
