package rfql

import (
	"cmp"
	"time"

	"ramp/protocol"
)

// The namespaces: that of the first implementation, and ours for additions, which older
// readers may ignore.
const (
	Namespace          = "http://www.realitygrid.org/AHE/RFQ"
	ExtensionNamespace = "urn:ramp:rfql:2"
)

// Bounds of a document, in addition to protocol.MaxDocument and protocol.MaxUnits.
const (
	MaxDepth      = 16                // levels of elements
	MaxAttributes = 32                // of one element, with namespace declarations
	MaxBindings   = 64                // namespace prefixes in scope at once
	MaxFaults     = 64                // of one document; reading stops there
	MaxNotices    = 16                // of one document; further ones are dropped
	MaxWord       = 128               // characters of a word or label
	MaxDigits     = 24                // characters of a number, without its sign
	MaxCount      = protocol.MaxCores // of any term with a number
	MaxMinutes    = 3650 * 24 * 60    // of WallTime: ten years
	MaxWall       = MaxMinutes * time.Minute
	MinYear       = 1970 // of a date: nanoseconds since 1970 in
	MaxYear       = 2199 // 63 bits hold these and their zones
)

// Term is the name of an element or attribute of the language.
type Term string

// The terms with a value (002 §5.2). Units are those of rfql.xsd.
const (
	CPUHourCost        Term = "CPUHourCost"        // credits per core-hour, at most
	EndDate            Term = "EndDate"            // the deadline
	EndTime            Term = "EndTime"            //
	StartDate          Term = "StartDate"          // not before
	StartTime          Term = "StartTime"          //
	OperatingSystem    Term = "OperatingSystem"    // equal, with aliases
	OSVersion          Term = "OSVersion"          // prefix
	Architecture       Term = "Architecture"       // equal, with aliases
	CPUSpeed           Term = "CPUSpeed"           // MHz, at least
	WallTime           Term = "WallTime"           // minutes
	InterNodeBandwidth Term = "InterNodeBandwidth" // Mbit/s, at least
	RAMPerCore         Term = "RAMPerCore"         // MB, at least
	TotalDiskSpace     Term = "TotalDiskSpace"     // GB, at least
	NodeDiskSpace      Term = "NodeDiskSpace"      // GB, at least
	TotalCores         Term = "TotalCores"
	NodeCount          Term = "NodeCount"
	NodeCores          Term = "NodeCores" // per node
)

// The elements with child elements, and our attributes.
const (
	RequestForQuotation Term = "RequestForQuotation"
	RequestElement      Term = "Request"
	Disk                Term = "Disk"
	Cores               Term = "Cores"
	Nodes               Term = "Nodes"
	Optimize            Term = "optimize"
	SameStart           Term = "sameStart"
	Name                Term = "name"
	Application         Term = "application"
	Zone                Term = "zone"
	document            Term = "XML" // faults of the XML itself
)

// inOrder are the elements in and below a Request in their required order, from 1. The last
// one is of another namespace: its position is only for its line.
var inOrder = [...]Term{
	"", CPUHourCost, EndDate, EndTime, StartDate, StartTime, OperatingSystem, OSVersion, Architecture, CPUSpeed,
	WallTime, InterNodeBandwidth, RAMPerCore, Disk, Cores,
	TotalDiskSpace, NodeDiskSpace, TotalCores, Nodes, NodeCount, NodeCores, ContractElement,
}

// positions bounds the results of position.
const positions = len(inOrder)

var places = func() map[Term]int {
	m := map[Term]int{TimeLimit: positions - 1, Prepay: positions - 1} // inside the last one
	for i, t := range inOrder {
		m[t] = i
	}
	return m
}()

func (t Term) position() int { return places[t] }

func termAt(position int) Term { return inOrder[position] }

var units = map[Term]string{
	CPUSpeed: "MHz", WallTime: "minutes", InterNodeBandwidth: "Mbit/s", RAMPerCore: "MB",
	TotalDiskSpace: "GB", NodeDiskSpace: "GB", NodeCount: "nodes", NodeCores: "cores per node",
}

func (t Term) unit() string { return cmp.Or(units[t], "cores") }

// most is the largest allowed number of t.
func (t Term) most() int {
	if t == WallTime {
		return MaxMinutes
	}
	return MaxCount
}
