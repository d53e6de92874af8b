package command

import (
	"net/http"
	"strconv"
)

// controlVersion is that of the calls under /v1. A call or a field that is added
// leaves it; one that changes its meaning, or goes, raises it and the path.
const (
	controlVersion = 1
	controlHeader  = "Ramp-Control" // the version that a side speaks
)

// versioned refuses callers that speak another version, and calls that this
// version does not have, in words that say what to do.
func versioned(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(controlHeader, strconv.Itoa(controlVersion))
		if told := r.Header.Get(controlHeader); told != "" && told != strconv.Itoa(controlVersion) {
			refuseCall(w, fail(exitFailed, "after an upgrade, restart the daemon, or use the program that started it",
				"the command speaks version %.10q of the control socket, the daemon version %d", told, controlVersion))
			return
		}
		if _, pattern := mux.Handler(r); pattern == "" {
			refuseCall(w, fail(exitFailed, "is it the directory of another kind of agent ('ramp status' says)? After an upgrade, restart the daemon; docs/CONTROL.md lists the calls",
				"the daemon has no call %s %.100s in version %d of the control socket", r.Method, r.URL.Path, controlVersion))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// sameVersion reports whether a daemon speaks this version; one that does not say
// is older than the header, and speaks version 1.
func sameVersion(resp *http.Response) error {
	told := resp.Header.Get(controlHeader)
	if told == "" || told == strconv.Itoa(controlVersion) {
		return nil
	}
	return fail(exitFailed, "after an upgrade, restart the daemon, or use the program that started it",
		"the daemon speaks version %.10q of the control socket, this program version %d", told, controlVersion)
}
