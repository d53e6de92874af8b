package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/protocol"
)

// intOf reads a whole number of a form; without it, or empty, it is otherwise.
func intOf(form url.Values, name string, otherwise int) (int, error) {
	text := strings.TrimSpace(form.Get(name))
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, exit.Fail(exit.Usage, "go back and mend it; nothing was done", "%s %.40q: want a whole number", name, text)
	}
	return n, nil
}

// unitOf reads the number of a unit from an address.
func unitOf(r *http.Request) (int, error) {
	return intOf(url.Values{"unit": {r.PathValue("unit")}}, "unit", 0)
}

// amountOf reads an amount above zero.
func amountOf(form url.Values, name string) (protocol.Credits, error) {
	c, err := protocol.ParseCredits(strings.TrimSpace(form.Get(name)))
	if err != nil || c <= 0 {
		return 0, exit.Fail(exit.Usage, "go back and mend it; nothing was done", "%s %.40q: want a number above zero, at most %s, with at most six decimals", name, form.Get(name), protocol.MaxCredits)
	}
	return c, nil
}

// perHour is a price. Where the currency is not known, its word is credits.
func perHour(c protocol.Credits, currency string) string {
	return c.Cents() + " " + cmp.Or(currency, "credits") + " per core-hour"
}

func memory(mb int) string {
	switch {
	case mb == 0:
		return "-"
	case mb%1024 == 0:
		return fmt.Sprintf("%d GB", mb/1024)
	}
	return fmt.Sprintf("%d MB", mb)
}

func bytesOf(n int64) string {
	switch {
	case n < 10_000:
		return words.Plural(int(n), "byte")
	case n < 10_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 10_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// exitWords are the exit code of a program, if it has ended.
func exitWords(code *int) string {
	if code == nil {
		return "-"
	}
	return fmt.Sprintf("exit %d", *code)
}
