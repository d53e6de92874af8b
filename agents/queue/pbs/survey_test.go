package pbs_test

import (
	"strings"
	"testing"

	"ramp/agents/queue/pbs"
)

func TestASurveyTellsTheLeastOfNodesThatDiffer(t *testing.T) {
	const nodes = `{"pbs_server":"south","nodes":{
"a":{"state":"free","resources_available":{"arch":"linux","mem":"16gb","ncpus":16}},
"b":{"state":"job-busy","resources_available":{"arch":"linux","mem":"4194304kb","ncpus":"8"}},
"c":{"state":"offline","resources_available":{"mem":"1gb","ncpus":64}},
"d":{"state":"free","resources_available":{"ncpus":0}}}}`
	got, err := pbs.ReadSite([]byte(nodes))
	want := pbs.Site{Nodes: 2, Cores: 24, NodeCores: 8, RAMPerCore: 512, Arch: "linux"}
	if err != nil || got != want {
		t.Fatalf("%+v, %v; want %+v", got, err, want)
	}
}

func TestASurveyRefusesWhatIsNoListOfNodes(t *testing.T) {
	for bad, says := range map[string]string{
		"": "printed nothing", "<html>": "instead of JSON", `{"nodes":{`: "invalid JSON", `{"nodes":{}}`: "no usable nodes",
		`{"nodes":{"a":{"state":"free","resources_available":{"ncpus":-1}}}}`:   "want a whole number",
		`{"nodes":{"a":{"state":"down","resources_available":{"ncpus":8}}}}`:    "no usable nodes",
		`{"nodes":{"a":{"state":"free","resources_available":{"ncpus":"8 "}}}}`: "want a whole number",
	} {
		if _, err := pbs.ReadSite([]byte(bad)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", bad, err, says)
		}
	}
}
