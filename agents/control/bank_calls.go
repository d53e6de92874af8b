package control

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"ramp/agents/config"
	"ramp/protocol"
)

type (
	BackupCall struct {
		File string `json:"file"` // an absolute path
	}
	BackupAnswer struct {
		File    string `json:"file"`
		Entries uint64 `json:"entries"`
	}
	CompactAnswer struct {
		Before int64 `json:"before"` // bytes
		After  int64 `json:"after"`
	}
)

// ClaimView is a usage record that is filed and not paid yet, in JSON; the names are fixed.
type ClaimView struct {
	Contract protocol.ContractID `json:"contract"`
	Unit     int                 `json:"unit"`
	State    string              `json:"state"` // filed or disputed
	User     protocol.AgentID    `json:"user"`
	Seller   protocol.AgentID    `json:"seller"`
	Currency string              `json:"currency"`
	Held     protocol.Credits    `json:"held"`
	Due      protocol.Credits    `json:"due"`            // by the record
	Until    time.Time           `json:"until,omitzero"` // if filed: then silence means consent
	Record   string              `json:"record"`         // hash of the signed record
	Why      string              `json:"why,omitempty"`  // the user's reason, if disputed
}

// ArbitrateCall decides what a held unit is paid.
type ArbitrateCall struct {
	Contract protocol.ContractID `json:"contract"` // or a prefix of one with a claim
	Unit     int                 `json:"unit"`
	Paid     protocol.Credits    `json:"paid"`
	Ref      string              `json:"ref"`
}

// Arbitrated is the result of an arbitration.
type Arbitrated struct {
	Entry    uint64              `json:"entry"`
	Contract protocol.ContractID `json:"contract"`
	Unit     int                 `json:"unit"`
	Paid     protocol.Credits    `json:"paid"`
	Time     time.Time           `json:"time"`
}

// Invitations over the control socket.
type (
	InviteCall struct {
		Uses      int              `json:"uses"`    // 0: an invitation without a token
		Expires   time.Time        `json:"expires"` // of the token
		Credit    protocol.Credits `json:"credit"`
		Currency  string           `json:"currency,omitempty"`
		Market    string           `json:"market,omitempty"`
		Addresses []string         `json:"addresses,omitempty"` // instead of the bank's own
		Ref       string           `json:"ref,omitempty"`
	}
	InviteAnswer struct {
		Invitation string           `json:"invitation"` // the file's text
		ID         string           `json:"id,omitempty"`
		Uses       int              `json:"uses,omitempty"`
		Expires    time.Time        `json:"expires,omitzero"`
		Credit     protocol.Credits `json:"credit,omitempty"`
		Currency   string           `json:"currency,omitempty"`
		Entry      uint64           `json:"entry,omitempty"`
		File       string           `json:"file,omitempty"` // written by the command
	}
	InvitationView struct {
		ID       string           `json:"id"`
		State    string           `json:"state"` // open, used up or over
		Uses     int              `json:"uses"`
		Used     int              `json:"used"`
		Expires  time.Time        `json:"expires"`
		Credit   protocol.Credits `json:"credit,omitempty"`
		Currency string           `json:"currency,omitempty"`
	}
	WithdrawCall struct {
		ID  string `json:"id"`
		Ref string `json:"ref,omitempty"`
	}
)

// Words describe an invitation to the operator.
func (a InviteAnswer) Words() string {
	if a.ID == "" {
		return fmt.Sprintf("wrote %s; it has no token: newcomers need a certificate and an account by other means", a.File)
	}
	credit := ""
	if a.Credit > 0 {
		credit = fmt.Sprintf(", each with %s %s", a.Credit.Cents(), a.Currency)
	}
	return fmt.Sprintf("wrote %s: invitation %s admits %d until %s%s\n  Anybody with the file can join, so pass it on as carefully as a key.\n  They run: ramp user init --join %s",
		a.File, a.ID, a.Uses, a.Expires.Local().Format("Jan 2 15:04 MST"), credit, filepath.Base(a.File))
}

// OpenAccountCall and CreditCall are an operator's orders.
type OpenAccountCall struct {
	Account protocol.AgentID `json:"account"`
	Name    string           `json:"name"`
	Limit   protocol.Credits `json:"limit"`
}

type CreditCall struct {
	Account  string           `json:"account"` // name or agent ID
	Currency string           `json:"currency"`
	Amount   protocol.Credits `json:"amount"`
	Ref      string           `json:"ref"`
	// Key makes a repeated order the same one (1..64 bytes, unique to this order), until
	// it is confirmed or three days old; none: each call is an order of its own.
	Key string `json:"key,omitempty"`
}

// KeyCall names an order that moves money.
type KeyCall struct {
	Key string `json:"key"`
}

// StatementCall asks for an account's lines.
type StatementCall struct {
	Account string    `json:"account"`
	From    time.Time `json:"from,omitzero"`
	To      time.Time `json:"to,omitzero"`
	After   uint64    `json:"after"`
	Before  uint64    `json:"before,omitempty"` // only the last entries before this number
	Limit   int       `json:"limit"`
}

// OperatorEntry is the entry that an order made.
type OperatorEntry struct {
	Entry   uint64           `json:"entry"`
	Account protocol.AgentID `json:"account"`
	Time    time.Time        `json:"time"`
	// Again: it was carried out before, and the answer was lost.
	Again bool `json:"again,omitempty"`
}

// AuditCall asks for an audit.
type AuditCall struct {
	Signatures bool `json:"signatures"`
}

// AuditReport is the audit in JSON; the names are fixed.
type AuditReport struct {
	Entries  uint64            `json:"entries"`
	Accounts int               `json:"accounts"`
	Sum      map[string]string `json:"sum"`
	Bad      []string          `json:"bad"`
	Signed   uint64            `json:"signed"` // acts whose signature was verified
	Log      uint64            `json:"log"`    // entries in the Merkle log
	Root     string            `json:"root"`   // of the log
	Heads    int               `json:"heads"`  // signed heads that are kept
	// PerCore is how many signatures one core verified per second; 0 without signatures.
	PerCore float64 `json:"signatures_per_second_per_core,omitempty"`
}

// Problems joins the problems of a report in one line.
func (a AuditReport) Problems() string { return strings.Join(a.Bad, "; ") }

// Acts of an operator: each makes one signed entry.
type (
	PolicyCall struct {
		Currency string           `json:"currency"`
		Policy   string           `json:"policy"`
		Decay    protocol.Credits `json:"decay"` // part of a balance, per day
	}
	LimitCall struct {
		Account  string           `json:"account"`
		Currency string           `json:"currency"`
		Limit    protocol.Credits `json:"limit"`
	}
	StandingCall struct {
		Account  string `json:"account"`
		Standing string `json:"standing"`
		Ref      string `json:"ref"`
	}
	AllowanceCall struct {
		Account  string           `json:"account"`
		Currency string           `json:"currency"`
		PerDay   protocol.Credits `json:"per_day"`
		Ref      string           `json:"ref"`
	}
	RateCall struct {
		From string           `json:"from"`
		To   string           `json:"to"`
		Rate protocol.Credits `json:"rate"`
		Ref  string           `json:"ref"`
	}
	TransferCall struct {
		From     string              `json:"from"`
		To       string              `json:"to"`
		Currency string              `json:"currency"`
		Amount   protocol.Credits    `json:"amount"`
		Contract protocol.ContractID `json:"contract,omitempty"` // disputed
		Unit     int                 `json:"unit,omitempty"`
		Ref      string              `json:"ref"`
		Key      string              `json:"key,omitempty"` // as of CreditCall
	}
	RecoveryCall struct {
		On  bool   `json:"on"`
		Ref string `json:"ref"`
	}
	// GroupView is a group, in calls and answers; shares are parts per million.
	GroupView struct {
		Group    string       `json:"group"`
		Shared   int64        `json:"shared"`
		Members  []MemberView `json:"members"`
		Clusters []string     `json:"clusters"`
		Ref      string       `json:"ref,omitempty"` // of a call
	}
	MemberView struct {
		User  string `json:"user"`
		Share int64  `json:"share"`
		Pays  string `json:"pays"`
	}
	NameCall struct {
		Name string `json:"name"`
	}
)

// Answers to an operator, in JSON; the names are fixed.
type (
	AccountView struct {
		Account  protocol.AgentID `json:"account"`
		Name     string           `json:"name"`
		Opened   time.Time        `json:"opened"`
		Standing string           `json:"standing"`
		Group    string           `json:"group,omitempty"`
		Lines    []LineView       `json:"lines"`
	}
	LineView struct {
		Currency  string           `json:"currency"`
		Balance   protocol.Credits `json:"balance"`
		Held      protocol.Credits `json:"held"`
		Limit     protocol.Credits `json:"limit"`
		Available protocol.Credits `json:"available"`
		PerDay    protocol.Credits `json:"per_day"`
	}
	HoldView struct {
		Hold     uint64           `json:"hold"`
		Account  protocol.AgentID `json:"account"`
		Currency string           `json:"currency"`
		Amount   protocol.Credits `json:"amount"`
		Until    time.Time        `json:"until"`
		Ref      string           `json:"ref"`
	}
	PolicyView struct {
		Currency string           `json:"currency"`
		Policy   string           `json:"policy"`
		Decay    protocol.Credits `json:"decay"`
	}
	RateView struct {
		From string           `json:"from"`
		To   string           `json:"to"`
		Rate protocol.Credits `json:"rate"`
	}
	PoliciesView struct {
		Policies   []PolicyView                `json:"policies"`
		Rates      []RateView                  `json:"rates"`
		Recovering bool                        `json:"recovering"`
		Sums       map[string]protocol.Credits `json:"sums"`            // of all entered balances, by currency; zero in sound books
		Latest     time.Time                   `json:"latest,omitzero"` // of the last entry, if the clock is behind it
	}
	ReportCall struct {
		From time.Time   `json:"from,omitzero"`
		To   time.Time   `json:"to,omitzero"`
		Step config.Span `json:"step"`
		Top  int         `json:"top"`
	}
	EntriesCall struct {
		From   uint64 `json:"from"`
		Before uint64 `json:"before,omitempty"` // only entries before this number; without from, the last ones of them
		Limit  int    `json:"limit"`
	}
)

// EntryView is an entry of the ledger in JSON.
type EntryView struct {
	Entry    uint64              `json:"entry"`
	Time     time.Time           `json:"time"`
	What     string              `json:"what"`
	Contract protocol.ContractID `json:"contract,omitempty"`
	Unit     int                 `json:"unit,omitempty"`
	Hold     uint64              `json:"hold,omitempty"`
	Ref      string              `json:"ref,omitempty"`
	Signed   bool                `json:"signed"` // an act of the operator has its signature
	Legs     []LegView           `json:"legs"`
	Journal  string              `json:"journal,omitempty"` // as a transaction of plain-text accounting
}

type LegView struct {
	Account  protocol.AgentID `json:"account"`
	Currency string           `json:"currency"`
	Amount   protocol.Credits `json:"amount"`
	Held     protocol.Credits `json:"held"`
	Balance  protocol.Credits `json:"balance"`
}

// ProofCall asks for a proof: of a contract, or the newest head only. Bank is for
// the calls of users.
type ProofCall struct {
	Bank     protocol.AgentID    `json:"bank,omitempty"`
	Contract protocol.ContractID `json:"contract,omitempty"`
	From     uint64              `json:"from"` // size of the log when last seen
}

// ProofAnswer is a document of package audit.
type ProofAnswer struct {
	Bank  protocol.AgentID `json:"bank"`
	Proof []byte           `json:"proof"`
}
