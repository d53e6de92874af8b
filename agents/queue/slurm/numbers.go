package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// number is a figure in Slurm's JSON: bare or null in 22.05, an object
// {"set","infinite","number"} since 23.02. none means unset or infinite.
type number struct {
	n    int64
	none bool
}

func (x *number) UnmarshalJSON(b []byte) error {
	*x = number{none: true}
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	if b[0] != '{' {
		x.none = false
		var f float64
		if err := json.Unmarshal(b, &f); err != nil {
			return err
		}
		return x.set(f)
	}
	var o struct {
		Set, Infinite bool
		Number        float64
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	x.none = !o.Set || o.Infinite
	return x.set(o.Number)
}

// set takes a whole number of at most 2^53, the most that JSON carries exactly.
func (x *number) set(f float64) error {
	const most = 1 << 53
	if f < -most || f > most || f != float64(int64(f)) {
		return fmt.Errorf("%g: want a whole number of at most 2^53", f)
	}
	x.n = int64(f)
	return nil
}

// instant is a number of Unix seconds; unset and zero give the zero time.
func (x number) instant() time.Time {
	if x.none || x.n <= 0 {
		return time.Time{}
	}
	return time.Unix(x.n, 0).UTC()
}

// words are one word or a list of words in Slurm's JSON, in upper case.
type words []string

func (w *words) UnmarshalJSON(b []byte) error {
	var one string
	var list []string
	if err := json.Unmarshal(b, &one); err == nil {
		list = []string{one}
	} else if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	for i := range list {
		list[i] = strings.ToUpper(list[i])
	}
	*w = list
	return nil
}

func (w words) has(those ...string) bool {
	return slices.ContainsFunc(w, func(x string) bool { return slices.Contains(those, x) })
}
