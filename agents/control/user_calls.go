package control

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"time"

	"ramp/agents/config"
	"ramp/protocol"
	"ramp/protocol/acl"
	"ramp/protocol/message"
)

// BankStatement is the statement of one bank.
type BankStatement struct {
	Bank protocol.AgentID `json:"bank"`
	message.Statement
	// Purchases are the IDs of a user's purchases, and Names their names, by contract.
	Purchases map[protocol.ContractID]string `json:"purchases,omitempty"`
	Names     map[protocol.ContractID]string `json:"names,omitempty"`
}

// NewPurchaseID draws a globally unique ID of 128 random bits.
func NewPurchaseID(quote bool) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	if quote {
		return protocol.QuotePrefix + hex.EncodeToString(b[:])
	}
	return "p" + hex.EncodeToString(b[:])
}

// ExchangeCall asks for a quote, and with Least has it carried out.
type ExchangeCall struct {
	ID    string           `json:"id,omitempty"`   // its owner's name for the order, which is carried out once, ever
	Key   string           `json:"key,omitempty"`  // of an order without an ID; the same key means the same order until it is confirmed
	Bank  string           `json:"bank,omitempty"` // name or agent ID; empty: the first that exchanges these
	From  string           `json:"from"`
	To    string           `json:"to"`
	Gives protocol.Credits `json:"gives"`
	Least protocol.Credits `json:"least,omitempty"` // of To; 0: only a quote
}

// Exchanged is a quote that a bank signed, in JSON; the names are fixed.
type Exchanged struct {
	ID    string           `json:"id"` // of the quote
	Bank  protocol.AgentID `json:"bank"`
	From  string           `json:"from"`
	To    string           `json:"to"`
	Gives protocol.Credits `json:"gives"`
	Gets  protocol.Credits `json:"gets"`
	Until time.Time        `json:"until"`
	Entry uint64           `json:"entry,omitempty"` // that carried it out
	Quote []byte           `json:"quote,omitempty"` // signed, DER
	Again bool             `json:"again,omitempty"` // an earlier command ordered it
}

// FindCall asks for the purchase, or run, that has the ID or the name given, or else whose ID
// begins so.
type FindCall struct {
	Interrupted string   `json:"interrupted,omitempty"` // the key of a program: the jobs of the same command, interrupted in another session
	ID          string   `json:"id"`
	Run         bool     `json:"run,omitempty"`     // only purchases with a program
	Shorten     []string `json:"shorten,omitempty"` // IDs to shorten for a person
}

// IDsFound are the IDs that are meant.
type IDsFound struct {
	IDs   []string `json:"ids"` // the first few; shortened if they are several
	All   int      `json:"all"`
	Named bool     `json:"named,omitempty"` // they have this name
	Short []string `json:"short,omitempty"` // those to shorten, in their order
}

// UsageCall agrees to usage records or disputes them: of one unit, from 1, or of all.
type UsageCall struct {
	ID     string `json:"id"`
	Unit   int    `json:"unit"`
	Record string `json:"record,omitempty"` // its hash; empty: the one that is filed
	Agree  bool   `json:"agree"`
	Why    string `json:"why,omitempty"`
}

// About reports whether the call means the record of a unit.
func (q UsageCall) About(u message.PurchasedUnit) bool {
	return (q.Unit == 0 || u.Unit == q.Unit-1) && (q.Record == "" || u.Record == q.Record)
}

// BuyCall is an order over the control socket.
type BuyCall struct {
	ID       string           `json:"id"`
	Name     string           `json:"name"`
	Document string           `json:"document"`
	Options  message.Options  `json:"options"`
	StartNow bool             `json:"start_now,omitempty"` // the document's start was written in now, where it had none
	Moving   bool             `json:"moving,omitempty"`    // the document's times were counted from now
	Program  *message.Program `json:"program,omitempty"`   // to run in the purchase
	Resume   bool             `json:"resume,omitempty"`    // follow the purchase of this ID, or an undecided one of the same request
	Session  string           `json:"session,omitempty"`   // where it was given: Resume finds only what was ordered there; "": only the ID
	Command  string           `json:"command,omitempty"`   // CommandKey of the command that follows it
	Named    bool             `json:"named,omitempty"`     // its owner chose the ID: Resume finds only the purchase of this ID
	Follows  bool             `json:"follows,omitempty"`   // it accepts counter-offers to a named order: the ID alone identifies it
}

// ProgressLine is a change of a purchase.
type ProgressLine struct {
	Event    string           `json:"event"`
	Done     bool             `json:"done"`
	Purchase message.Purchase `json:"purchase"`
	Error    string           `json:"error,omitempty"` // why the stream ends
}

// IDCall names a purchase.
type IDCall struct {
	ID   string `json:"id"`
	Unit int    `json:"unit"` // cancel: from 1; 0: all
	Yes  bool   `json:"yes"`  // approve
}

// OrderView is what was ordered.
type OrderView struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Document string          `json:"document"`
	Options  message.Options `json:"options"`
	// Program is what runs in it; nil: nothing.
	Program *message.Program `json:"program,omitempty"`
}

// Traced is one message of a trace, as a FIPA string and as JSON.
type Traced struct {
	At      time.Time   `json:"at"`
	Dir     string      `json:"dir"`
	Message acl.Message `json:"message"`
	Text    string      `json:"text"`
}

// SignedFiles are the documents of a purchase, as they are on disk.
type SignedFiles struct {
	Sales   [][]byte `json:"sales"`
	Receipt []byte   `json:"receipt"`
	Anchors []byte   `json:"anchors"`
	Missing int      `json:"missing"` // sellers whose signature is missing
	Proof   []byte   `json:"proof"`   // of the receipt; null if the bank has not proved it yet
}

// ResourceLine is a seller that the agent knows.
type ResourceLine struct {
	ID      protocol.AgentID    `json:"id"`
	Name    string              `json:"name"`
	Cores   int                 `json:"cores"`
	Start   protocol.Credits    `json:"start_price"`
	Min     protocol.Credits    `json:"minimum_price"`
	Props   protocol.Properties `json:"properties"`
	Terms   []protocol.Terms    `json:"terms"`
	Expires time.Time           `json:"expires"`
	// Failures is how often it has lately not answered when it should have held or signed
	// what it had offered.
	Failures int `json:"failures"`
}

// RunCall names a run and what to do with it.
type RunCall struct {
	ID     string             `json:"id"`
	Verb   message.LaunchVerb `json:"verb,omitempty"`   // control
	Unit   int                `json:"unit,omitempty"`   // log, fetch: from 1
	Follow bool               `json:"follow,omitempty"` // log
	Dir    string             `json:"dir,omitempty"`    // fetch: an absolute path
}

// LogLine is a piece of a unit's output.
type LogLine struct {
	Stream string `json:"stream"` // stdout or stderr
	Data   []byte `json:"data"`
}

// UploadCall brings a piece of a file that the program of a purchase needs, before it is ordered.
type UploadCall struct {
	ID   string `json:"id"`   // of the purchase
	Path string `json:"path"` // of the file in the program's directory
	Part string `json:"part"` // 32 hex digits, the same for all pieces of one upload
	At   int64  `json:"at"`   // where the piece begins: at the end of the last one
	Data []byte `json:"data"`
	Last bool   `json:"last,omitempty"`
}

// RunFileCall names an output of a run.
type RunFileCall struct {
	ID   string `json:"id"`
	Unit int    `json:"unit"` // from 1
	Path string `json:"path"`
}

// FilePiece is a piece of an output.
type FilePiece struct {
	Size int64  `json:"size"` // of the whole file
	Data []byte `json:"data"`
}

// ControlTime is how long a run may take to obey a command.
const ControlTime = 10 * time.Second

// Bounds of a runway.
const (
	RunwayOver = 7 * 24 * time.Hour // the period that gives the present rate
	Day        = 24 * time.Hour
)

// RunwayCall asks how long the money lasts at the rate of a period up to now.
type RunwayCall struct {
	Over config.Span `json:"over"`
}

// RunwayLine says how long the money of one currency lasts, in JSON; the names are fixed.
type RunwayLine struct {
	Bank      protocol.AgentID `json:"bank"`
	Currency  string           `json:"currency"`
	Available protocol.Credits `json:"available"`
	Held      protocol.Credits `json:"held"`
	Spent     protocol.Credits `json:"spent"`            // for jobs, and held for them, less what jobs brought
	OverS     float64          `json:"over_s"`           // in the last OverS seconds
	Counts    string           `json:"counts"`           // whose money: own, own+group or group
	Group     string           `json:"group,omitempty"`  // which
	Income    protocol.Credits `json:"income,omitempty"` // per day
	Decay     protocol.Credits `json:"decay,omitempty"`  // part of the balance, per day
	LastsS    *float64         `json:"lasts_s"`          // null: it never ends
	Ends      time.Time        `json:"ends,omitzero"`    // the time then
	Low       bool             `json:"low"`
}

// Whose money a runway counts: the money that pays for the owner's jobs.
const (
	CountsOwn   = "own"
	CountsBoth  = "own+group"
	CountsGroup = "group"
)

// MaxID bounds the ID of a purchase that its owner chooses, in bytes.
const MaxID = 64

var idLetters = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// ValidID reports whether a caller may choose an ID: 1 to most letters, digits, '.', '_' or '-'.
func ValidID(id string, most int) bool {
	return idLetters.MatchString(id) && len(id) <= most && !protocol.IsQuote(id)
}

// SweepCall orders a sweep.
type SweepCall struct {
	ID     string          `json:"id,omitempty"` // empty: of the plan, its inputs and the directory
	Plan   json.RawMessage `json:"plan"`         // as package plan has it in JSON
	Out    string          `json:"out"`          // the directory for results: an absolute path
	Dir    string          `json:"dir"`          // of the inputs: an absolute path
	DryRun bool            `json:"dry_run,omitempty"`
}
