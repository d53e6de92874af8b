package reserve

import (
	"encoding/json"
	"fmt"
	"time"

	"ramp/protocol/contract"
)

// TableBundles has one record per signed bundle of this user, by conversation.
const TableBundles = "bundles"

// Saved is the journal's form of a bundle that the user has signed.
type Saved struct {
	State    CoordinatorState `json:"state"`
	Bundle   []byte           `json:"bundle"`            // the user's SignedData
	SignedAt time.Time        `json:"signed_at"`         // when its certificate was valid
	Sales    [][]byte         `json:"sales,omitempty"`   // countersigned copies that arrived
	Receipt  []byte           `json:"receipt,omitempty"` // from the bank, once decided
}

// ReadSaved decodes a record of TableBundles.
func ReadSaved(value []byte) (Saved, error) {
	var s Saved
	if err := json.Unmarshal(value, &s); err != nil {
		return Saved{}, fmt.Errorf("record of a signed bundle: %w", err)
	}
	if s.State < Confirming || s.State > Void {
		return Saved{}, fmt.Errorf("record of a signed bundle: state %d, want %d..%d", s.State, Confirming, Void)
	}
	return s, nil
}

// Reopened is the content of a Saved, verified as of SignedAt.
type Reopened struct {
	Bundle  contract.Verified
	Sales   []contract.Sale
	Receipt *contract.VerifiedReceipt // nil: no receipt was saved
}
