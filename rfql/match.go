package rfql

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"ramp/protocol"
)

// Match compares the static terms of a request with a machine (002 §5.2). It returns one
// Reason for each term that is not met, in order of the document. Without a Reason the
// machine is suitable, apart from price and time. An unknown property meets no term.
func Match(r Request, p protocol.Properties) []protocol.Reason {
	m := matcher{unit: r.Unit}
	m.word(protocol.CodeOS, OperatingSystem, r.OS, p.OS, SameOS)
	m.word(protocol.CodeOSVersion, OSVersion, r.OSVersion, p.OSVersion, VersionMeets)
	m.word(protocol.CodeArchitecture, Architecture, r.Arch, p.Arch, SameArchitecture)
	m.least(protocol.CodeCPUSpeed, CPUSpeed, r.CPUSpeed, p.CPUSpeed)
	m.least(protocol.CodeBandwidth, InterNodeBandwidth, r.Bandwidth, p.Bandwidth)
	m.least(protocol.CodeRAM, RAMPerCore, r.RAMPerCore, p.RAMPerCore)
	m.least(protocol.CodeDisk, TotalDiskSpace, r.TotalDisk, p.TotalDisk)
	m.least(protocol.CodeDisk, NodeDiskSpace, r.NodeDisk, p.NodeDisk)
	m.size(r, p)
	return m.reasons
}

type matcher struct {
	unit    int
	reasons []protocol.Reason
}

func (m *matcher) refuse(c protocol.Code, t Term, want, have string) {
	m.reasons = append(m.reasons, protocol.Reason{Code: c, Unit: m.unit, Term: string(t), Want: want, Have: have})
}

func (m *matcher) word(c protocol.Code, t Term, want, have string, meets func(want, have string) bool) {
	if want == "" || have != "" && meets(want, have) {
		return
	}
	have = cmp.Or(have, unknownProperty)
	m.refuse(c, t, want, have)
}

const unknownProperty = "unknown"

func (m *matcher) least(c protocol.Code, t Term, want, have int) {
	if have < want {
		m.refuse(c, t, quantity(want, t), quantity(have, t))
	}
}

func quantity(n int, t Term) string {
	if n <= 0 {
		return unknownProperty
	}
	unit := t.unit()
	if n == 1 { // of minutes, nodes, cores and cores per node
		noun, per, _ := strings.Cut(unit, " ")
		unit = strings.TrimSpace(strings.TrimSuffix(noun, "s") + " " + per)
	}
	return strconv.Itoa(n) + " " + unit
}

// size compares the request with the whole machine. Nodes are whole: each must have the
// requested cores and no more, since nobody else could get the rest and nobody would pay
// for it. So two halves of a large node are not two nodes (D).
func (m *matcher) size(r Request, p protocol.Properties) {
	if r.Nodes == 0 {
		m.least(protocol.CodeSize, TotalCores, r.Cores, p.Cores)
		return
	}
	nodes := 0
	if p.NodeCores > 0 {
		nodes = p.Cores / p.NodeCores
	}
	if r.NodeCores != p.NodeCores {
		m.refuse(protocol.CodeSize, NodeCores, quantity(r.NodeCores, NodeCores), quantity(p.NodeCores, NodeCores))
	}
	if r.Nodes > nodes {
		m.refuse(protocol.CodeSize, NodeCount, quantity(r.Nodes, NodeCount), quantity(nodes, NodeCount))
	}
}

// SameOS reports whether two words name the same operating system. It ignores case and
// knows some aliases. An unknown word equals only itself.
func SameOS(a, b string) bool { return osName(a) == osName(b) }

func osName(s string) string {
	switch s = strings.ToLower(s); s {
	case "linux", "gnu/linux", "gnu-linux", "gnu_linux":
		return "linux"
	case "macos", "mac os", "mac os x", "osx", "os x", "darwin":
		return "macos"
	}
	return s
}

// SameArchitecture reports whether two words name the same architecture, like SameOS. It
// takes Intel, from the first implementation, for x86_64.
func SameArchitecture(a, b string) bool { return archName(a) == archName(b) }

func archName(s string) string {
	switch s = strings.ToLower(s); s {
	case "x86_64", "x86-64", "amd64", "x64", "em64t", "intel64", "intel 64", "intel":
		return "x86_64"
	case "x86", "x86_32", "x86-32", "ia32", "ia-32", "i386", "i486", "i586", "i686":
		return "x86"
	case "arm64", "aarch64", "armv8":
		return "arm64"
	case "powerpc", "ppc":
		return "powerpc"
	case "ppc64le", "powerpc64le":
		return "ppc64le"
	case "ia64", "ia-64", "itanium":
		return "ia64"
	}
	return s
}

// VersionMeets reports whether a version begins with the wanted one, component by
// component and ignoring case: 5, 5.8 and 5rc1 meet 5, but 58 does not. A component ends
// where digits, letters and other characters meet (D).
func VersionMeets(want, have string) bool {
	want, have = strings.ToLower(want), strings.ToLower(have)
	rest, ok := strings.CutPrefix(have, want)
	if !ok || want == "" {
		return false
	}
	return rest == "" || charSort(want[len(want)-1]) != charSort(rest[0]) || charSort(rest[0]) == 0
}

// charSort distinguishes digits (1), letters (2, with every byte of a character beyond
// ASCII) and separators of components (0).
func charSort(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return 1
	case c >= 'a' && c <= 'z' || c >= 0x80:
		return 2
	}
	return 0
}

// String is a request in one line for people.
func (r Request) String() string {
	cores := fmt.Sprintf("%d cores", r.Cores)
	if r.Nodes > 0 {
		cores = fmt.Sprintf("%d nodes with %d cores", r.Nodes, r.NodeCores)
	}
	return fmt.Sprintf("%s for %s until %s, at most %s per core-hour", cores, r.Wall, stamp(r.End), r.Price)
}
