package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// shownValue is a flag's value as help shows it: with a word of what it is in place of
// the name of a type of Go.
type shownValue struct {
	pflag.Value
	word string
}

func (v shownValue) Type() string { return v.word }

// flagUsages lists flags with a word for the value of each.
func flagUsages(flags *pflag.FlagSet) string {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	shown.SortFlags = flags.SortFlags
	flags.VisitAll(func(f *pflag.Flag) { shown.AddFlag(shownFlag(f)) })
	return strings.TrimRight(shown.FlagUsages(), " \n")
}

// shownFlag is a copy of a flag for people to read.
func shownFlag(f *pflag.Flag) *pflag.Flag {
	g := *f
	switch kind := f.Value.Type(); kind {
	case "bool":
		if f.Name == "help" {
			g.Usage = "say this"
		}
		return &g
	case "duration":
		g.DefValue = shortDuration(f.DefValue)
		g.NoOptDefVal = shortDuration(f.NoOptDefVal)
	case "stringArray", "stringSlice", "stringToInt", "int64Slice":
		g.DefValue = strings.Trim(f.DefValue, "[]")
	}
	g.Value = shownValue{f.Value, valueWord(f)}
	return &g
}

// shortDuration says a time in days, if it is some, or drops what is zero: 24h0m0s is
// 24h.
func shortDuration(d string) string {
	if n, err := time.ParseDuration(d); err == nil && n > 24*time.Hour && n%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", n/(24*time.Hour))
	}
	for _, zero := range []string{"0s", "0m"} {
		if short := strings.TrimSuffix(d, zero); short == "" || strings.HasSuffix(short, "m") || strings.HasSuffix(short, "h") {
			d = short
		}
	}
	return d
}

// valueWord says what the value of a flag is.
func valueWord(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "duration":
		return "D"
	case "int", "int64", "uint", "uint64", "int64Slice":
		return numberWord(f.Name)
	case "float64":
		return "F"
	case "string", "stringArray", "stringSlice", "stringToInt":
		return textWord(f)
	}
	return f.Value.Type()
}

// numberWord says what a whole number counts.
func numberWord(name string) string {
	switch name {
	case "at", "from", "to":
		return "S"
	}
	return "N"
}

// textWord says what a text is; the name of most flags tells it.
func textWord(f *pflag.Flag) string {
	switch f.Name {
	case "dir", "logs", "demo", "claims", "user":
		return "DIR"
	case "join", "config", "cert", "key", "request", "crl", "heads", "proof", "log", "program", "conf", "plot":
		return "FILE"
	case "out", "ca":
		if strings.Contains(f.Usage, "directory") {
			return "DIR"
		}
		return "FILE"
	case "in":
		return "PATH"
	case "from", "to":
		return "TIME"
	case "listen", "bootstrap", "address":
		return "ADDR"
	case "currency":
		return "CUR"
	case "set", "param", "adversaries":
		return "NAME=VALUE"
	case "member":
		return "USER=SHARE"
	case "seeds":
		return "A-B"
	case "ref", "why":
		return "TEXT"
	case "prefix", "users", "rounds", "buyers", "clients":
		return "LIST"
	}
	return moneyWord(f.Name)
}

// moneyWord says which of the remaining texts are amounts.
func moneyWord(name string) string {
	switch name {
	case "credit", "max-cost", "start-price", "minimum-price", "overdraft", "least", "accept-counter":
		return "C"
	case "decay", "shared":
		return "P"
	case "seed":
		return "N"
	case "expires":
		return "D"
	case "bank", "id", "contract":
		return "ID"
	case "cluster":
		return "ACCOUNT"
	case "name", "app", "market", "partition":
		return "NAME"
	}
	return "WORD"
}
