package dbc

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"ramp/agents/user/sweep"
	"ramp/protocol"
)

// Bounds of a problem.
const (
	MaxResources = 10_000
	MaxJobs      = 100_000
	maxPEs       = 1_000_000
	maxNumber    = 1_000_000_000 * protocol.Credit // of MIPS, lengths and prices
)

// million is the number of parts in which MIPS and lengths are given.
const million = int64(protocol.Credit)

// Table1 are the resources of 004's table 1.
func Table1() []Resource {
	var list []Resource
	for i, r := range []struct {
		pes, mips, price int
		shared           bool
	}{
		{4, 515, 8, true}, {4, 377, 4, true}, {4, 377, 3, true}, {2, 377, 3, true}, {2, 380, 1, true}, {6, 410, 5, true},
		{16, 410, 5, true}, {16, 410, 4, false}, {2, 380, 1, true}, {4, 410, 6, true}, {8, 377, 3, true},
	} {
		list = append(list, Resource{fmt.Sprintf("R%d", i), r.pes, int64(r.mips) * million, r.shared, protocol.Credits(r.price) * protocol.Credit})
	}
	return list
}

// Jobs are the lengths of 004's 200 jobs: 10,000 million instructions and up to 10 % more.
func Jobs(seed uint64) []int64 {
	r := rand.New(rand.NewPCG(seed, 4))
	list := make([]int64, 200)
	for i := range list {
		list[i] = 10_000*million + r.Int64N(1_000*million+1)
	}
	return list
}

// reader reads a CSV file whose columns a header names.
func reader(r io.Reader, columns ...string) (*csv.Reader, error) {
	c := csv.NewReader(r)
	c.TrimLeadingSpace, c.FieldsPerRecord = true, len(columns)
	head, err := c.Read()
	if err == io.EOF {
		return nil, fmt.Errorf("line 1: want the header %s", strings.Join(columns, ","))
	}
	if err != nil {
		return nil, inLine(err)
	}
	for i, name := range columns {
		if !strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(head[i]), "\ufeff"), name) {
			return nil, fmt.Errorf("line 1: column %d is %q: want the header %s", i+1, protocol.Clip(head[i]), strings.Join(columns, ","))
		}
	}
	return c, nil
}

// inLine says in one line what is wrong where.
func inLine(err error) error {
	var e *csv.ParseError
	if errors.As(err, &e) {
		return fmt.Errorf("line %d: %w", e.Line, e.Err)
	}
	return err
}

// rows calls f with each row of a file, and says in which line it failed.
func rows(c *csv.Reader, most int, f func(row []string) error) error {
	for n := 0; ; n++ {
		row, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return inLine(err)
		}
		line, _ := c.FieldPos(0)
		if n == most {
			return fmt.Errorf("line %d: at most %d rows", line, most)
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if err := f(row); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// number reads a positive decimal number in millionths.
func number(what, s string) (int64, error) {
	n, err := protocol.ParseCredits(s)
	if err != nil || n <= 0 || n > maxNumber {
		return 0, fmt.Errorf("%s %q: want a number above 0, at most %d, with at most six decimal places", what, protocol.Clip(s), int64(maxNumber/protocol.Credit))
	}
	return int64(n), nil
}

// ReadResources reads a CSV file with the header name,pes,mips,policy,price. A policy is TS or SS; a
// price is that of a processor for a time unit.
func ReadResources(r io.Reader) ([]Resource, error) {
	c, err := reader(r, "name", "pes", "mips", "policy", "price")
	if err != nil {
		return nil, err
	}
	var list []Resource
	seen := map[string]bool{}
	err = rows(c, MaxResources, func(row []string) error {
		x := Resource{Name: row[0], Shared: row[3] == "TS"}
		if x.Name == "" || seen[x.Name] {
			return fmt.Errorf("name %q: want a name of its own for each resource", protocol.Clip(x.Name))
		}
		seen[x.Name] = true
		if x.PEs, err = strconv.Atoi(row[1]); err != nil || x.PEs < 1 || x.PEs > maxPEs {
			return fmt.Errorf("pes %q: want 1..%d", protocol.Clip(row[1]), maxPEs)
		}
		if x.MIPS, err = number("mips", row[2]); err != nil {
			return err
		}
		if !x.Shared && row[3] != "SS" {
			return fmt.Errorf("policy %q: want TS (time-shared) or SS (space-shared)", protocol.Clip(row[3]))
		}
		price, err := protocol.ParseCredits(row[4])
		if err != nil || price < 0 || price > maxNumber {
			return fmt.Errorf("price %q: want a number from 0 to %d", protocol.Clip(row[4]), int64(maxNumber/protocol.Credit))
		}
		x.Price = price
		list = append(list, x)
		return nil
	})
	if err == nil && len(list) == 0 {
		err = errors.New("no resources")
	}
	return list, err
}

// ReadLengths reads a CSV file with the header mi and the length of a job in each line.
func ReadLengths(r io.Reader) ([]int64, error) {
	c, err := reader(r, "mi")
	if err != nil {
		return nil, err
	}
	var list []int64
	err = rows(c, MaxJobs, func(row []string) error {
		n, err := number("mi", row[0])
		list = append(list, n)
		return err
	})
	if err == nil && len(list) == 0 {
		err = errors.New("no jobs")
	}
	return list, err
}

// Terms reads a strategy, a deadline in time units and a budget.
func Terms(strategy, deadline, budget string) (sweep.Terms, error) {
	s, err := sweep.ParseStrategy(strategy)
	if err != nil {
		return sweep.Terms{}, err
	}
	d, err := number("deadline", deadline)
	if err != nil {
		return sweep.Terms{}, err
	}
	b, err := number("budget", budget)
	return sweep.Terms{Strategy: s, Deadline: time.Duration(d) * (Unit / time.Duration(million)), Budget: protocol.Credits(b)}, err
}
