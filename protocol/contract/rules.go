package contract

import (
	"fmt"
	"strings"
	"time"

	"ramp/protocol"
)

func first(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func number(field string, got, want int) error {
	if got != want {
		return fmt.Errorf("%s %d, want %d: %w", field, got, want, ErrTerms)
	}
	return nil
}

func agent(field string, id protocol.AgentID) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("%s: %w: %w", field, ErrTerms, err)
	}
	return nil
}

// token allows printable ASCII that needs no quoting in JSON or in FIPA-ACL.
func token(field, s string, most int) error {
	ok := len(s) >= 1 && len(s) <= most && !strings.ContainsAny(s, `"\()`)
	for _, c := range []byte(s) {
		ok = ok && c > ' ' && c < 0x7f
	}
	if !ok {
		return fmt.Errorf("%s %.80q: want 1..%d printable ASCII characters without space, quote, backslash or parenthesis: %w", field, s, most, ErrTerms)
	}
	return nil
}

func currency(s string) error {
	if len(s) < 3 || len(s) > 8 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return fmt.Errorf("currency %.80q, want 3..8 capital letters: %w", s, ErrTerms)
	}
	return nil
}

func mode(m protocol.Mode) error {
	if !m.Known() {
		return fmt.Errorf("mode %.80q, want %s, %s or %s: %w", m, protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered, ErrTerms)
	}
	return nil
}

func hexDigits(field, s string, least, most int) error {
	if len(s) < least || len(s) > most || strings.Trim(s, "0123456789abcdef") != "" {
		return fmt.Errorf("%s %.80q, want %d..%d hex digits in lower case: %w", field, s, least, most, ErrTerms)
	}
	return nil
}

// instant allows only UTC, so that every moment has one form.
func instant(field string, t time.Time) error {
	if t.Location() != time.UTC {
		return fmt.Errorf("%s %s is not in UTC: %w", field, t.Format(time.RFC3339), ErrTerms)
	}
	if y := t.Year(); y < firstYear || y > lastYear {
		return fmt.Errorf("%s %s, want a year in %d..%d: %w", field, t.Format(time.RFC3339), firstYear, lastYear, ErrTerms)
	}
	return nil
}
