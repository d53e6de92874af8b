package plan

import (
	"bytes"
	"encoding/csv"
	"errors"
	"hash/fnv"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"ramp/protocol"
	"ramp/rfql/jobfile"
)

// Keys of a parameter.
const keyValues, keyRange, keyStep, keyRandom, keyCount, keySeed, keyFile, keyZip = "values", "range", "step", "random", "count", "seed", "file", "zip"

var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

func (r *reader) parameters(n *yaml.Node) {
	r.Each(n, "angle: {range: [-45, 45], step: 2.5}", func(key, value *yaml.Node) {
		switch {
		case key.Value == keyZip && value.Kind == yaml.SequenceNode:
			r.zips = append(r.zips, value)
		case value.Kind != yaml.MappingNode:
			r.Fault(value, "%s: want {values: [a, b]}, {range: [1, 9], step: 2}, {random: [0, 1], count: 20, seed: 7} or {file: cases.csv}", jobfile.Clip(key.Value))
		default:
			r.parameter(key, value)
		}
	})
	if len(r.plan.Axes) > MaxParameters {
		r.Fault(n, "parameters: there are %d: want at most %d", len(r.plan.Axes), MaxParameters)
	}
	if len(r.plan.Axes) == 0 && len(r.Faults) == 0 {
		r.Fault(n, "parameters: want at least one, such as angle: {values: [1, 2]}")
	}
}

// parameter reads one parameter, or the file that has several.
func (r *reader) parameter(key, value *yaml.Node) {
	kinds := map[string][]string{keyValues: {keyValues}, keyRange: {keyRange, keyStep}, keyRandom: {keyRandom, keyCount, keySeed}, keyFile: {keyFile}}
	given := map[string]*yaml.Node{}
	kind, known := "", []string{keyValues, keyRange, keyStep, keyRandom, keyCount, keySeed, keyFile}
	before := len(r.Faults)
	r.Each(value, "values: [a, b]", func(k, v *yaml.Node) {
		if !slices.Contains(known, k.Value) {
			r.unknown(k, known)
		}
		if given[k.Value] = v; kinds[k.Value] != nil && kind == "" {
			kind = k.Value
		}
	})
	name := jobfile.Clip(key.Value)
	for _, k := range known {
		if given[k] != nil && kind != "" && !slices.Contains(kinds[kind], k) {
			r.Fault(given[k], "%s: %s does not go with %s: want one of values, range, random and file", name, k, kind)
			return
		}
	}
	switch kind {
	case keyValues:
		r.values(key, given[keyValues])
	case keyRange:
		r.span(key, given[keyRange], given[keyStep])
	case keyRandom:
		r.random(key, given)
	case keyFile:
		r.rows(key, given[keyFile])
	default:
		if len(r.Faults) == before { // an unknown key may have been meant
			r.Fault(value, "%s: want values, range, random or file", name)
		}
	}
}

// axis adds a parameter. count, if not nil, is the number of its values where those are too many to
// be listed.
func (r *reader) axis(key *yaml.Node, name string, values []string, count *big.Int) {
	clipped := jobfile.Clip(name)
	switch {
	case !parameterName.MatchString(name):
		r.Fault(key, "parameter %q: want a letter or '_', then letters, digits, '_' and '-', at most 64", clipped)
	case name == taskReference:
		r.Fault(key, "parameter %q: ${task} is the number of the task: want another name", clipped)
	case slices.ContainsFunc(r.plan.Axes, func(a Axis) bool { return a.Name == name }):
		r.Fault(key, "parameter %q is there already: want each once", clipped)
	}
	if count == nil {
		count = big.NewInt(int64(len(values)))
	}
	r.counts = append(r.counts, count)
	r.plan.Axes = append(r.plan.Axes, Axis{Name: name, Values: values, With: len(r.plan.Axes)})
}

func (r *reader) values(key, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.Fault(n, "%s: values: want a list such as [none, fence]", jobfile.Clip(key.Value))
		return
	}
	r.axis(key, key.Value, r.list(key.Value+": "+keyValues, n), nil)
}

// decimal is a number as it was written.
type decimal struct {
	*big.Rat
	places int // behind the point
}

// written bounds what a number takes: big.Rat would compute 1e999999999.
var written = regexp.MustCompile(`^[-+]?[0-9]{1,18}(?:\.([0-9]{1,18}))?(?:[eE]([-+]?[0-9]{1,2}))?$`)

func (r *reader) decimal(key string, n *yaml.Node) (d decimal, ok bool) {
	m := written.FindStringSubmatch(n.Value)
	if n.Kind != yaml.ScalarNode || m == nil {
		r.Fault(n, "%s: %q: want a decimal number such as -2.5, of at most 18 digits", key, jobfile.Clip(n.Value))
		return d, false
	}
	exponent, _ := strconv.Atoi(m[2])
	d.Rat, ok = new(big.Rat).SetString(strings.TrimPrefix(n.Value, "+"))
	d.places = max(0, len(m[1])-exponent)
	return d, ok
}

// pair reads the two ends of a range or of random draws.
func (r *reader) pair(key string, n *yaml.Node) (a, b decimal, ok bool) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
		r.Fault(n, "%s: want the first and the last value, such as [-45, 45]", key)
		return a, b, false
	}
	a, ok1 := r.decimal(key, n.Content[0])
	b, ok2 := r.decimal(key, n.Content[1])
	return a, b, ok1 && ok2
}

// span reads a range. Its values have as many decimal places as the first one and the step, as those
// of seq have.
func (r *reader) span(key, n, stepNode *yaml.Node) {
	name := jobfile.Clip(key.Value)
	first, last, ok := r.pair(name+": range", n)
	step := decimal{Rat: big.NewRat(1, 1)}
	if ok && stepNode != nil {
		step, ok = r.decimal(name+": step", stepNode)
	}
	if !ok {
		return
	}
	way := new(big.Rat).Sub(last.Rat, first.Rat)
	switch {
	case step.Sign() == 0:
		r.Fault(stepNode, "%s: step: it is 0: want another number", name)
		return
	case way.Sign()*step.Sign() < 0 && stepNode == nil:
		r.Fault(n, "%s: range: it goes down: want a step below 0", name)
		return
	case way.Sign()*step.Sign() < 0:
		r.Fault(stepNode, "%s: step: %s leads away from the last value: want the other sign", name, stepNode.Value)
		return
	}
	way.Quo(way, step.Rat)
	count := new(big.Int).Quo(way.Num(), way.Denom())
	count.Add(count, big.NewInt(1))
	values := []string{}
	places := max(first.places, step.places)
	if count.Cmp(big.NewInt(MaxTasks)) <= 0 {
		x := new(big.Rat).Set(first.Rat)
		for range count.Int64() {
			values = append(values, unsigned(x.FloatString(places)))
			x.Add(x, step.Rat)
		}
	}
	r.axis(key, key.Value, values, count)
}

// unsigned is zero without a sign.
func unsigned(s string) string {
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return s
}

// drawSteps is how finely the interval of random draws is divided, at the least.
const drawSteps = 1_000_000

// random draws uniformly from an interval, both ends included. The draws depend on the seed and the
// parameter's name only.
func (r *reader) random(key *yaml.Node, given map[string]*yaml.Node) {
	name := jobfile.Clip(key.Value)
	low, high, ok := r.pair(name+": random", given[keyRandom])
	if given[keyCount] == nil {
		r.Fault(given[keyRandom], "%s: count: want the number of values, 1 to %d", name, MaxTasks)
		return
	}
	count, counted := r.whole(name+": count", given[keyCount], 1, MaxTasks)
	seed := 1
	if given[keySeed] != nil {
		seed, _ = r.whole(name+": seed", given[keySeed], 0, 1<<62)
	}
	if !ok || !counted {
		return
	}
	width := new(big.Rat).Sub(high.Rat, low.Rat)
	if width.Sign() <= 0 {
		r.Fault(given[keyRandom], "%s: random: want the lower end first, then the upper one", name)
		return
	}
	ten, least, places := big.NewRat(10, 1), big.NewRat(drawSteps, 1), 0
	for ; places < max(low.places, high.places) || width.Cmp(least) < 0; places++ {
		width.Mul(width, ten)
	}
	if !width.Num().IsInt64() {
		r.Fault(given[keyRandom], "%s: random: want ends of at most 18 digits together", name)
		return
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key.Value)) // so that two parameters of one seed differ
	source := rand.NewPCG(uint64(seed), h.Sum64())
	unit := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil))
	values := make([]string, count)
	for i := range values {
		// The upper half of the product is uniform over the steps but for one in 2^64 of their number.
		k, _ := bits.Mul64(source.Uint64(), width.Num().Uint64()+1)
		x := new(big.Rat).Mul(new(big.Rat).SetUint64(k), unit)
		values[i] = unsigned(x.Add(x, low.Rat).FloatString(places))
	}
	r.axis(key, key.Value, values, nil)
}

// rows reads a CSV file. Its header names parameters, and each row has a value for every one.
func (r *reader) rows(key, n *yaml.Node) {
	file, ok := r.Scalar(key, n)
	if !ok {
		return
	}
	shown := jobfile.Clip(file)
	text, err := r.read(file)
	if err != nil {
		r.Fault(n, "%s: file: %s: want a CSV file that can be read", jobfile.Clip(key.Value), jobfile.Clip(err.Error()))
		return
	}
	fault := func(line int, words string) {
		r.Faults = append(r.Faults, jobfile.Fault{File: shown, Line: line, Text: words})
	}
	if len(text) > jobfile.MaxFile {
		fault(0, strconv.Itoa(len(text))+" bytes: want at most "+strconv.Itoa(jobfile.MaxFile))
		return
	}
	c := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	c.TrimLeadingSpace = true
	records, err := c.ReadAll()
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad) && errors.Is(err, csv.ErrFieldCount):
		fault(bad.StartLine, "this row has another number of values than the header: want one for each parameter")
	case errors.As(err, &bad):
		fault(bad.Line, jobfile.Clip(bad.Err.Error())+": want values with commas between them")
	case len(records) < 2:
		fault(0, "it has no rows: want a header with names of parameters, and a row for each case")
	case bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text):
		fault(0, "it is not text: want UTF-8 without zero bytes")
	case len(records)-1 > MaxTasks:
		fault(0, strconv.Itoa(len(records)-1)+" rows: want at most "+strconv.Itoa(MaxTasks))
	default:
		r.columns(key, records)
	}
}

// columns adds the parameters of a file, which vary together.
func (r *reader) columns(key *yaml.Node, records [][]string) {
	first := len(r.plan.Axes)
	for i, name := range records[0] {
		values := make([]string, len(records)-1)
		for j, row := range records[1:] {
			values[j] = row[i]
		}
		r.axis(key, strings.TrimSpace(name), values, nil)
		r.plan.Axes[first+i].With = first
	}
}

// zip makes parameters vary together, where the first of them stands.
func (r *reader) zip(n *yaml.Node) {
	axes := r.plan.Axes
	first := -1
	for _, name := range r.list(keyZip, n) {
		i := slices.IndexFunc(axes, func(a Axis) bool { return a.Name == name })
		switch {
		case i < 0:
			r.Fault(n, "zip: %q: want names of parameters: %s", jobfile.Clip(name), r.names())
			return
		case first < 0:
			first = axes[i].With
		case r.counts[i].Cmp(r.counts[first]) != 0:
			r.Fault(n, "zip: %q has %d values and %q has %d: want as many", name, r.counts[i], axes[first].Name, r.counts[first])
			return
		}
		to, from := min(first, axes[i].With), max(first, axes[i].With)
		for j := range axes {
			if axes[j].With == from {
				axes[j].With = to
			}
		}
		first = to
	}
}

func (r *reader) names() string {
	var names []string
	for _, a := range r.plan.Axes {
		names = append(names, protocol.Clip(a.Name))
	}
	return strings.Join(names, ", ")
}

// total refuses more tasks than a sweep may have.
func (r *reader) total(n *yaml.Node) {
	total := big.NewInt(1)
	for i, a := range r.plan.Axes {
		if a.With == i {
			total.Mul(total, r.counts[i])
		}
	}
	if total.Cmp(big.NewInt(MaxTasks)) > 0 {
		r.Fault(n, "parameters: %s tasks: want at most %d", total, MaxTasks)
	}
}
