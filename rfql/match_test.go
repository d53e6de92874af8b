package rfql_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/rfql"
)

func machine() protocol.Properties {
	return protocol.Properties{
		OS: "Linux", OSVersion: "5.8.2", Arch: "amd64", CPUSpeed: 2400, Bandwidth: 10000, RAMPerCore: 2048,
		TotalDisk: 1000, NodeDisk: 100, Cores: 1000, NodeCores: 48,
	}
}

func TestMatch(t *testing.T) {
	same := func(r *rfql.Request) {}
	tests := []struct {
		name string
		ask  func(*rfql.Request)
		have func(*protocol.Properties)
		want []protocol.Reason
	}{
		{"cores alone match any machine that has them", func(r *rfql.Request) { *r = rfql.Request{Cores: 1000} }, nil, nil},
		{"every term is met exactly", same, nil, nil},
		{"an alias of the architecture matches", func(r *rfql.Request) { r.Arch = "Intel" }, nil, nil},
		{"one core too many", func(r *rfql.Request) { r.Cores = 1001 }, nil, []protocol.Reason{{Code: protocol.CodeSize, Unit: 3, Term: "TotalCores", Want: "1001 cores", Have: "1000 cores"}}},
		{"another system", func(r *rfql.Request) { r.OS = "AIX" }, nil, []protocol.Reason{{Code: protocol.CodeOS, Unit: 3, Term: "OperatingSystem", Want: "AIX", Have: "Linux"}}},
		{"a newer version", func(r *rfql.Request) { r.OSVersion = "6" }, nil, []protocol.Reason{{Code: protocol.CodeOSVersion, Unit: 3, Term: "OSVersion", Want: "6", Have: "5.8.2"}}},
		{"another architecture", func(r *rfql.Request) { r.Arch = "sparc" }, nil, []protocol.Reason{{Code: protocol.CodeArchitecture, Unit: 3, Term: "Architecture", Want: "sparc", Have: "amd64"}}},
		{"a faster processor", func(r *rfql.Request) { r.CPUSpeed = 2401 }, nil, []protocol.Reason{{Code: protocol.CodeCPUSpeed, Unit: 3, Term: "CPUSpeed", Want: "2401 MHz", Have: "2400 MHz"}}},
		{"a faster network", func(r *rfql.Request) { r.Bandwidth = 10001 }, nil, []protocol.Reason{{Code: protocol.CodeBandwidth, Unit: 3, Term: "InterNodeBandwidth", Want: "10001 Mbit/s", Have: "10000 Mbit/s"}}},
		{"more memory", func(r *rfql.Request) { r.RAMPerCore = 2049 }, nil, []protocol.Reason{{Code: protocol.CodeRAM, Unit: 3, Term: "RAMPerCore", Want: "2049 MB", Have: "2048 MB"}}},
		{"more disk in total", func(r *rfql.Request) { r.TotalDisk = 1001 }, nil, []protocol.Reason{{Code: protocol.CodeDisk, Unit: 3, Term: "TotalDiskSpace", Want: "1001 GB", Have: "1000 GB"}}},
		{"more disk on a node", func(r *rfql.Request) { r.TotalDisk, r.NodeDisk = 0, 101 }, nil, []protocol.Reason{{Code: protocol.CodeDisk, Unit: 3, Term: "NodeDiskSpace", Want: "101 GB", Have: "100 GB"}}},
		{"an unknown property meets no term", same, func(p *protocol.Properties) { p.OS, p.RAMPerCore = "", 0 }, []protocol.Reason{
			{Code: protocol.CodeOS, Unit: 3, Term: "OperatingSystem", Want: "linux", Have: "unknown"},
			{Code: protocol.CodeRAM, Unit: 3, Term: "RAMPerCore", Want: "2048 MB", Have: "unknown"},
		}},
		{"all whole nodes match", func(r *rfql.Request) { r.Cores, r.Nodes, r.NodeCores = 960, 20, 48 }, nil, nil},
		{"what is left of the last node is no node", func(r *rfql.Request) { r.Cores, r.Nodes, r.NodeCores = 21*48, 21, 48 }, nil, []protocol.Reason{{Code: protocol.CodeSize, Unit: 3, Term: "NodeCount", Want: "21 nodes", Have: "20 nodes"}}},
		{"two halves of a node are not two nodes", func(r *rfql.Request) { r.Cores, r.Nodes, r.NodeCores = 960, 40, 24 }, nil, []protocol.Reason{{Code: protocol.CodeSize, Unit: 3, Term: "NodeCores", Want: "24 cores per node", Have: "48 cores per node"}, {Code: protocol.CodeSize, Unit: 3, Term: "NodeCount", Want: "40 nodes", Have: "20 nodes"}}},
		{"nobody pays for the other half of a node", func(r *rfql.Request) { r.Cores, r.Nodes, r.NodeCores = 24, 1, 24 }, nil, []protocol.Reason{{Code: protocol.CodeSize, Unit: 3, Term: "NodeCores", Want: "24 cores per node", Have: "48 cores per node"}}},
		{"larger nodes", func(r *rfql.Request) { r.Cores, r.Nodes, r.NodeCores = 64, 1, 64 }, nil, []protocol.Reason{{Code: protocol.CodeSize, Unit: 3, Term: "NodeCores", Want: "64 cores per node", Have: "48 cores per node"}}},
		{"unknown nodes", func(r *rfql.Request) { r.Cores, r.Nodes, r.NodeCores = 2, 1, 2 }, func(p *protocol.Properties) { p.NodeCores = 0 }, []protocol.Reason{
			{Code: protocol.CodeSize, Unit: 3, Term: "NodeCores", Want: "2 cores per node", Have: "unknown"},
			{Code: protocol.CodeSize, Unit: 3, Term: "NodeCount", Want: "1 node", Have: "unknown"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := rfql.Request{Unit: 3, Cores: 1000, OS: "linux", OSVersion: "5.8", Arch: "X86_64", CPUSpeed: 2400, Bandwidth: 10000, RAMPerCore: 2048, TotalDisk: 1000}
			p := machine()
			tt.ask(&r)
			if tt.have != nil {
				tt.have(&p)
			}
			if diff := cmp.Diff(tt.want, rfql.Match(r, p)); diff != "" {
				t.Errorf("reasons differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMoreIsNeverWorse: a machine that has more of anything that is counted
// meets every term that it met before.
func TestMoreIsNeverWorse(t *testing.T) {
	small := rapid.IntRange(0, 4)
	rapid.Check(t, func(t *rapid.T) {
		r := rfql.Request{CPUSpeed: small.Draw(t, "a"), Bandwidth: small.Draw(t, "b"), RAMPerCore: small.Draw(t, "c"), TotalDisk: small.Draw(t, "d"), NodeDisk: small.Draw(t, "e"), Cores: 1 + small.Draw(t, "f")}
		p := protocol.Properties{CPUSpeed: small.Draw(t, "A"), Bandwidth: small.Draw(t, "B"), RAMPerCore: small.Draw(t, "C"), TotalDisk: small.Draw(t, "D"), NodeDisk: small.Draw(t, "E"), Cores: small.Draw(t, "F")}
		failed := 0
		for _, f := range [][2]int{{r.CPUSpeed, p.CPUSpeed}, {r.Bandwidth, p.Bandwidth}, {r.RAMPerCore, p.RAMPerCore}, {r.TotalDisk, p.TotalDisk}, {r.NodeDisk, p.NodeDisk}, {r.Cores, p.Cores}} {
			if f[0] > f[1] {
				failed++
			}
		}
		before := rfql.Match(r, p)
		if len(before) != failed {
			t.Fatalf("%d terms fail, but %v", failed, before)
		}
		for _, n := range []*int{&p.CPUSpeed, &p.Bandwidth, &p.RAMPerCore, &p.TotalDisk, &p.NodeDisk, &p.Cores} {
			*n++
			if after := rfql.Match(r, p); len(after) > len(before) {
				t.Fatalf("%v, but with more %v", before, after)
			}
		}
	})
}

func TestVersionMeets(t *testing.T) {
	for _, tt := range []struct {
		want, have string
		ok         bool
	}{
		{"5", "5", true}, {"5", "5.8", true}, {"5", "58", false}, {"5", "5-rc1", true}, {"5", "5rc1", true},
		{"5.8", "5.8.2", true}, {"5.8", "5.80", false}, {"5.", "5.8", true}, {"5.8", "5", false},
		{"RHEL", "rhel 7.9", true}, {"rhel", "RHEL7", true}, {"deb", "debian", false}, {"7 ", "7", false}, {"", "7", false},
		{"é", "éa", false}, {"v2", "v2~beta", true},
	} {
		if got := rfql.VersionMeets(tt.want, tt.have); got != tt.ok {
			t.Errorf("%q is met by %q: %t", tt.want, tt.have, got)
		}
	}
}

func TestSameNames(t *testing.T) {
	for _, group := range []string{"x86_64 x86-64 AMD64 x64 EM64T intel64 Intel", "x86 x86_32 i386 i686 IA32", "arm64 aarch64", "powerpc PPC", "ia64 Itanium", "sparc SPARC", "Cray-1 CRAY-1"} {
		words := strings.Fields(group)
		for _, w := range words {
			if !rfql.SameArchitecture(words[0], w) {
				t.Errorf("%s and %s are different architectures", words[0], w)
			}
			if w != words[0] && rfql.SameArchitecture(w, "arm") {
				t.Errorf("%s is arm", w)
			}
		}
	}
	if !rfql.SameOS("LINUX", "GNU/Linux") || !rfql.SameOS("MACOS", "Darwin") || rfql.SameOS("Solaris", "SunOS") || !rfql.SameOS("plan 9", "Plan 9") {
		t.Error("systems are mixed up")
	}
}
