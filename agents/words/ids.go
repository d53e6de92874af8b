package words

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// shortID is the length of an ID for people, if no other begins so.
const shortID = 8

// Named is something with an ID and a name that people give it.
type Named struct {
	ID, Name string
	Created  time.Time
}

// Meant are the IDs that a person means by a word: the one with this ID, or those with this name,
// the latest first, or else those that begin so. named reports that it is a name.
func Meant(list []Named, word string) (ids []string, named bool) {
	var called, begun []Named
	for _, n := range list {
		switch {
		case word == "":
		case n.ID == word:
			return []string{n.ID}, false
		case n.Name == word:
			called = append(called, n)
		case begins(n.ID, word):
			begun = append(begun, n)
		}
	}
	if named = len(called) > 0; !named {
		called = first(begun)
	}
	slices.SortStableFunc(called, func(a, b Named) int { return b.Created.Compare(a.Created) })
	ids = []string{}
	for _, n := range called {
		ids = append(ids, n.ID)
	}
	return ids, named
}

// begins reports whether an ID begins with a word. That of a later attempt has its number behind
// a dot, and may be shortened before it.
func begins(id, word string) bool {
	if strings.HasPrefix(id, word) {
		return true
	}
	base, number, attempt := strings.Cut(id, ".")
	begin, of, asked := strings.Cut(word, ".")
	return attempt && asked && number == of && strings.HasPrefix(base, begin)
}

// first leaves only the first attempt of a list, if all others are later ones of it.
func first(list []Named) []Named {
	for _, n := range list {
		if !slices.ContainsFunc(list, func(other Named) bool { return other.ID != n.ID && !strings.HasPrefix(other.ID, n.ID+".") }) {
			return []Named{n}
		}
	}
	return list
}

// Latest is the last known attempt at a job: a bid after lost races, or what --retry bought after
// failures and a bid for that.
func Latest(id string, known func(id string) bool) string {
	for _, later := range []string{".bid", ".retry", ".bid"} {
		first := id
		for n := 1; n <= 2 || known(fmt.Sprint(first, later, n)); n++ { // bids count from 2
			if next := fmt.Sprint(first, later, n); known(next) {
				id = next
			}
		}
	}
	return id
}

// ShortenAll shortens IDs to at least eight letters, so that each means no other in the list.
func ShortenAll(list []Named, ids []string) []string {
	head := func(s string) string { return s[:min(len(s), shortID)] }
	near := map[string][]Named{} // only these may be meant by a word that begins so
	for _, n := range list {
		near[head(n.ID)] = append(near[head(n.ID)], n)
		if head(n.Name) != head(n.ID) {
			near[head(n.Name)] = append(near[head(n.Name)], n)
		}
	}
	short := make([]string, len(ids))
	for i, id := range ids {
		short[i] = shorten(near[head(id)], id)
	}
	return short
}

func shorten(list []Named, id string) string {
	base, number, attempt := strings.Cut(id, ".")
	for n := shortID; n < len(base); n++ {
		word := base[:n]
		if attempt {
			word += "." + number
		}
		if ids, _ := Meant(list, word); len(ids) == 0 || len(ids) == 1 && ids[0] == id {
			return word
		}
	}
	return id
}

// OutName is a directory's name for what one of many programs has left.
func OutName(name, short string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name)
	return strings.TrimLeft(plain+"-"+short, ".-")
}
