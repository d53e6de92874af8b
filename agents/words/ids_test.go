package words_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/words"
)

// A short ID has at least eight letters, unless the ID itself is shorter, and means that ID only.
func TestAShortIDMeansOneOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringMatching(`p[01]{7,12}(\.again[12])?`)
		ids := rapid.SliceOfNDistinct(letters, 1, 30, rapid.ID[string]).Draw(t, "ids")
		var list []words.Named
		for _, id := range ids {
			list = append(list, words.Named{ID: id, Name: rapid.SampledFrom(append([]string{"job"}, ids...)).Draw(t, "name")})
		}
		for i, short := range words.ShortenAll(list, ids) {
			base, _, _ := strings.Cut(ids[i], ".")
			if got, _ := words.Meant(list, short); !slices.Equal(got, ids[i:i+1]) {
				t.Fatalf("%s, the short form of %s, means %q", short, ids[i], got)
			}
			if begin, _, _ := strings.Cut(short, "."); len(begin) < 8 || !strings.HasPrefix(base, begin) {
				t.Fatalf("%s is shortened to %s", ids[i], short)
			}
		}
	})
}

func TestWhatAWordMeans(t *testing.T) {
	t.Parallel()
	list := []words.Named{
		{ID: "p1234567890", Name: "render", Created: time.Unix(1, 0)},
		{ID: "p1234567890.again1", Name: "render", Created: time.Unix(2, 0)},
		{ID: "p1239999999", Name: "p12", Created: time.Unix(3, 0)},
		{ID: "later", Name: "", Created: time.Unix(4, 0)},
	}
	for word, want := range map[string]string{
		"p1234567890":     "[p1234567890] false",
		"p1234567":        "[p1234567890] false",                   // the first attempt
		"p1234567.again1": "[p1234567890.again1] false",            // a short form
		"render":          "[p1234567890.again1 p1234567890] true", // the latest first
		"p12":             "[p1239999999] true",                    // a name counts before a beginning
		"p123":            "[p1239999999 p1234567890.again1 p1234567890] false",
		"lat":             "[later] false",
		"none":            "[] false",
		"":                "[] false",
	} {
		ids, named := words.Meant(list, word)
		if got := fmt.Sprint(ids, named); got != want {
			t.Errorf("%q means %s, want %s", word, got, want)
		}
	}
}

func TestASentenceLeavesIDsAsTheyAre(t *testing.T) {
	for given, want := range map[string]string{
		"": "", "the site is away": "The site is away.", "over.": "Over.", "why?": "Why?", "élan": "Élan.",
		"p502fff69 awaits no approval": "p502fff69 awaits no approval.",
	} {
		if got := words.Sentence(given); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}

// Bids after lost races and what --retry bought are attempts at the same job; the last one counts.
func TestTheLatestAttemptCounts(t *testing.T) {
	t.Parallel()
	known := []string{"raced", "raced.bid2", "raced.bid3", "failed", "failed.retry1", "failed.retry2", "both", "both.bid2", "both.bid2.retry1", "both.bid2.retry1.bid2"}
	for id, want := range map[string]string{
		"raced":            "raced.bid3",
		"failed":           "failed.retry2",
		"failed.retry1":    "failed.retry1", // a whole ID means that attempt
		"both":             "both.bid2.retry1.bid2",
		"both.bid2.retry1": "both.bid2.retry1.bid2",
		"unknown":          "unknown",
	} {
		if got := words.Latest(id, func(id string) bool { return slices.Contains(known, id) }); got != want {
			t.Errorf("the latest attempt at %s is %s, want %s", id, got, want)
		}
	}
}
