package words

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ramp/protocol"
)

// ReasonOf describes a refusal code as the predicate of one or several sites.
func ReasonOf(c protocol.Code, one bool, deadline time.Time) string {
	forms, known := map[protocol.Code][2]string{
		protocol.CodeSize:         {"are too small", "is too small"},
		protocol.CodePrice:        {"ask more", "asks more"},
		protocol.CodeNoBank:       {"take no payment in the chosen bank and currency", "takes no payment in the chosen bank and currency"},
		protocol.CodeMode:         {"take no payment in that mode", "takes no payment in that mode"},
		protocol.CodeProgram:      {"do not run that program", "does not run that program"},
		protocol.CodeDraining:     {"sell nothing at present", "sells nothing at present"},
		protocol.CodeUnavailable:  {"cannot sell at present (no bank, disk or batch system)", "cannot sell at present (no bank, disk or batch system)"},
		protocol.CodeSilent:       {"did not answer", "did not answer"},
		protocol.CodeStands:       {"keep their last bids", "keeps its last bid"},
		protocol.CodeCeiling:      {"bid, but not below the best price", "bid, but not below the best price"},
		protocol.CodeHoldLimit:    {"hold no more for you", "holds no more for you"},
		protocol.CodeVoucher:      {"want a voucher from your bank", "wants a voucher from your bank"},
		protocol.CodeLimit:        {"will not guarantee that much", "will not guarantee that much"},
		protocol.CodeLate:         {"would start too late", "would start too late"},
		protocol.CodeWindow:       {"do not plan for that window", "does not plan for that window"},
		protocol.CodeOS:           {"lack the operating system", "lacks the operating system"},
		protocol.CodeOSVersion:    {"lack the version of the operating system", "lacks the version of the operating system"},
		protocol.CodeArchitecture: {"lack the architecture", "lacks the architecture"},
		protocol.CodeCPUSpeed:     {"lack the CPU speed", "lacks the CPU speed"},
		protocol.CodeRAM:          {"lack the memory", "lacks the memory"},
		protocol.CodeDisk:         {"lack the disk space", "lacks the disk space"},
		protocol.CodeBandwidth:    {"lack the bandwidth", "lacks the bandwidth"},
	}[c]
	switch {
	case c == protocol.CodeBusy:
		before := " too few free cores before " + AtMinute(deadline)
		forms = [2]string{"have" + before, "has" + before}
	case !known:
		forms = [2]string{"refuse: " + string(c), "refuses: " + string(c)}
	}
	if one {
		return forms[1]
	}
	return forms[0]
}

// Commonest are the codes by their number, then by name.
func Commonest(reasons map[string]int) []string {
	return slices.SortedFunc(maps.Keys(reasons), func(x, y string) int { return cmp.Or(reasons[y]-reasons[x], cmp.Compare(x, y)) })
}
