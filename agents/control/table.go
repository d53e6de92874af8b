package control

import (
	"reflect"
	"strings"

	"ramp/bank/books"
	"ramp/protocol/message"
)

// The calls of agents. Each row makes the server's route, the client's method, and a line
// of docs/CONTROL.md and docs/openapi.json.
var (
	Agent  = reads[None, LiveStatus](Every, "/v1/agent", "the agent's addresses and peers; of a bank agent that does not lead, who does")
	Web    = changes[None, WebLink](Every, "/v1/web", "make a link that logs a browser in once, through the socket of the pages")
	Clocks = reads[None, []ClockView](Every, "/v1/clocks", "how far the clocks of up to 16 connected agents are ahead of this one")
	Reload = changes[None, Reloaded](Every, "/v1/reload", "read trust anchors, revocation list and configuration again, as SIGHUP does")

	Balance     = reads[None, []message.Balance](User|Resource, "/v1/balance", "the agent's accounts, asked of its banks")
	Statements  = reads[StatementCall, []BankStatement](User|Resource, "/v1/statement", "the entries of the agent's accounts, asked of its banks")
	SignedParts = reads[IDCall, SignedFiles](User|Resource, "/v1/signed", "the signed documents of a purchase, or of a contract sold")

	Buy          = streams[BuyCall, ProgressLine](User, "/v1/buy", "buy or ask for a quote; answers every change until it is over, and goes on if the caller leaves").page()
	Approve      = changes[IDCall, None](User, "/v1/approve", "answer a purchase that awaits approval").page()
	Cancel       = streams[IDCall, ProgressLine](User, "/v1/cancel", "ask the sellers of a purchase, or of one unit (from 1; 0: all), to take it back").page()
	Exchange     = changes[ExchangeCall, Exchanged](User, "/v1/exchange", "get a quote for an exchange of currencies; with `least`, have it carried out")
	Joined       = reads[None, None](User, "/v1/joined", "wait until the agent has met the market")
	Usage        = changes[UsageCall, message.Purchase](User, "/v1/usage", "agree to usage records, or dispute them (unit from 1; 0: all)").page()
	Resources    = reads[None, []ResourceLine](User, "/v1/resources", "the sellers that the agent knows")
	Runway       = reads[RunwayCall, []RunwayLine](User, "/v1/runway", "how long the money lasts at the present rate")
	UserProof    = reads[ProofCall, ProofAnswer](User, "/v1/proof", "the proof of a contract, asked of the bank and not verified yet")
	Purchases    = reads[LastCall, []message.Purchase](User, "/v1/purchases", "the last purchases, oldest first")
	Find         = reads[FindCall, IDsFound](User, "/v1/find", "the purchases, or runs, with this ID or name, or whose ID begins so; short forms of IDs")
	Purchase     = reads[IDCall, message.Purchase](User, "/v1/purchase", "one purchase")
	Rounds       = reads[IDCall, []RoundView](User, "/v1/rounds", "the rounds of a purchase's auction: each call, and each seller's offers or reasons")
	Order        = reads[IDCall, OrderView](User, "/v1/order", "the request of a purchase, as it was ordered")
	Trace        = reads[IDCall, []Traced](User, "/v1/trace", "the messages of a purchase, as FIPA text and as JSON")
	Runs         = reads[LastCall, []message.Run](User, "/v1/runs", "the last runs of programs, oldest first")
	Run          = reads[RunCall, message.Run](User, "/v1/run", "one run")
	RunFollow    = readStream[RunCall, message.Run](User, "/v1/run/follow", "a run at every change, until it is over")
	RunControl   = changes[RunCall, message.Run](User, "/v1/run/control", "suspend, resume, kill, or ask for the status of a run").page()
	RunLog       = readStream[RunCall, LogLine](User, "/v1/run/log", "what a unit of a run prints")
	RunUpload    = changes[UploadCall, message.RunInput](User, "/v1/run/upload", "keep a file for the program of a purchase that is ordered next, piece by piece; the last one answers the input to order").page()
	RunFile      = readStream[RunFileCall, FilePiece](User, "/v1/run/file", "an output of a run, in pieces, verified before the first one")
	RunFetch     = changes[RunCall, message.Run](User, "/v1/run/fetch", "bring the outputs of a run to a directory of this machine")
	RunCollected = changes[RunCall, None](User, "/v1/run/collected", "note that the result was shown: the same command is a new run from now on")

	JobSubmit = changes[JobCall, JobView](User, "/v1/job/submit", "offer a job to a federation of sites; answers once its home has sold it, or refuses it")
	Jobs      = reads[LastCall, []JobView](User, "/v1/jobs", "the last jobs offered to federations, oldest first, as this agent knows them")
	JobShow   = reads[IDCall, JobView](User, "/v1/job", "a job of a federation: who bid for it, who has it and how it stands, asked of its home")

	Sweep       = changes[SweepCall, message.Sweep](User, "/v1/sweep", "begin a sweep, or go on with it; with `dry_run`, only forecast what each strategy would cost")
	Sweeps      = reads[None, []message.Sweep](User, "/v1/sweeps", "the sweeps, the oldest first")
	SweepShow   = reads[IDCall, message.Sweep](User, "/v1/sweep/show", "one sweep")
	SweepTasks  = reads[IDCall, []message.SweepTask](User, "/v1/sweep/tasks", "the tasks of a sweep")
	SweepLedger = reads[IDCall, []message.SweepEntry](User, "/v1/sweep/ledger", "the leases of a sweep, and what was paid for them")
	SweepSet    = changes[message.SweepSet, message.Sweep](User, "/v1/sweep/set", "change deadline, budget or strategy of a sweep; pause, resume, kill, retry").page()

	Check           = reads[CheckCall, []message.QuoteLine](Resource, "/v1/check", "what the site would offer for a document, round by round")
	DryRun          = reads[None, DryRunAnswer](Resource, "/v1/dryrun", "what the site would offer for typical requests, and whether it could reserve")
	Offers          = reads[LastCall, []message.QuoteLine](Resource, "/v1/offers", "the last offers and refusals, oldest first")
	Reservations    = reads[LastCall, []message.ReservationLine](Resource, "/v1/reservations", "the reservations in the journal, oldest first")
	Calendar        = reads[CalendarCall, []message.CalendarBin](Resource, "/v1/calendar", "free, held, sold and other cores over time")
	Status          = reads[None, message.ResourceStatus](Resource, "/v1/status", "what the site sells, holds and has sold")
	Drain           = changes[DrainCall, message.ResourceStatus](Resource, "/v1/drain", "sell nothing until resumed").page()
	Resume          = changes[None, message.ResourceStatus](Resource, "/v1/resume", "sell again").page()
	FederationQueue = reads[None, SiteQueue](Resource, "/v1/queue", "the jobs of its federation at the site, and who has the same rules")

	OpenAccount  = changes[OpenAccountCall, OperatorEntry](Bank, "/v1/account", "open an account")
	Credit       = changes[CreditCall, OperatorEntry](Bank, "/v1/credit", "issue money to an account").page()
	Confirm      = changes[KeyCall, None](User|Bank, "/v1/confirm", "forget the key of an order whose answer has arrived: the same order is a new one from now on")
	LastEntry    = reads[None, OperatorEntry](Bank, "/v1/last", "the last entry")
	Balances     = reads[StatementCall, []message.Balance](Bank, "/v1/balances", "one account, or all")
	Statement    = reads[StatementCall, message.Statement](Bank, "/v1/statement", "the entries of an account")
	Audit        = reads[AuditCall, AuditReport](Bank, "/v1/audit", "recompute every balance and sum from the entries")
	BankProof    = reads[ProofCall, ProofAnswer](Bank, "/v1/proof", "the proof of a contract, or the newest head; Base64 of a document of PROOFS.md")
	SetPolicy    = changes[PolicyCall, OperatorEntry](Bank, "/v1/policy", "set a currency's policy: plain, barter or allowance")
	SetLimit     = changes[LimitCall, OperatorEntry](Bank, "/v1/limit", "set how far below zero an account may go")
	SetStanding  = changes[StandingCall, OperatorEntry](Bank, "/v1/standing", "freeze, open or close an account")
	SetAllowance = changes[AllowanceCall, OperatorEntry](Bank, "/v1/allowance", "set an account's income per day")
	SetRate      = changes[RateCall, OperatorEntry](Bank, "/v1/rate", "set the rate at which two currencies are exchanged")
	Transfer     = changes[TransferCall, OperatorEntry](Bank, "/v1/transfer", "move money between accounts").page()
	SetRecovery  = changes[RecoveryCall, OperatorEntry](Bank, "/v1/recovery", "begin or end the recovery of a restored bank")
	OpenGroup    = changes[NameCall, OperatorEntry](Bank, "/v1/opengroup", "open a cluster group")
	SetGroup     = changes[GroupView, OperatorEntry](Bank, "/v1/group", "set a whole group; shares in parts per million")
	Accounts     = reads[None, []AccountView](Bank, "/v1/accounts", "all accounts")
	Groups       = reads[NameCall, []GroupView](Bank, "/v1/groups", "one group, or all")
	Holds        = reads[None, []HoldView](Bank, "/v1/holds", "what is held, and for which contract")
	Policies     = reads[None, PoliciesView](Bank, "/v1/policies", "policies, rates, and whether the bank recovers")
	Report       = reads[ReportCall, []books.Currency](Bank, "/v1/report", "contracts and money per period")
	Entries      = reads[EntriesCall, []EntryView](Bank, "/v1/entries", "entries of the ledger, at most 1024 at a time")
	Backup       = changes[BackupCall, BackupAnswer](Bank, "/v1/backup", "copy the ledger to a new file on the bank's machine")
	Invite       = changes[InviteCall, InviteAnswer](Bank, "/v1/invite", "make an invitation; no uses: one without a token")
	Invitations  = reads[None, []InvitationView](Bank, "/v1/invitations", "the invitations with a token")
	Withdraw     = changes[WithdrawCall, OperatorEntry](Bank, "/v1/withdraw", "withdraw an invitation")
	Claims       = reads[None, []ClaimView](Bank, "/v1/claims", "usage records that are filed and not paid yet")
	Arbitrate    = changes[ArbitrateCall, Arbitrated](Bank, "/v1/arbitrate", "decide what a disputed unit is paid (unit from 0)")

	Events = readStream[EventsCall, Event](Every, "/v1/events", "what happens from now on, or after number `since`, as server-sent events")
)

// table has the rows above, in their order.
var table []*Call

// Table is the table of calls, in the order of the documents.
func Table() []*Call { return table }

func row[Q, A any](kind Kind, path, about string) Endpoint[Q, A] {
	c := &Call{Path: path, Kind: kind, About: about, Question: reflect.TypeFor[Q](), Answer: reflect.TypeFor[A]()}
	table = append(table, c)
	return Endpoint[Q, A]{c}
}

func changes[Q, A any](kind Kind, path, about string) Endpoint[Q, A] {
	return row[Q, A](kind, path, about)
}

// reads is a call that changes nothing, so it is available to GET and to pages.
func reads[Q, A any](kind Kind, path, about string) Endpoint[Q, A] {
	e := row[Q, A](kind, path, about)
	e.Reads, e.Browser = true, true
	return e
}

func streams[Q, A any](kind Kind, path, about string) Endpoint[Q, A] {
	e := row[Q, A](kind, path, about)
	e.Streams = true
	return e
}

func readStream[Q, A any](kind Kind, path, about string) Endpoint[Q, A] {
	e := reads[Q, A](kind, path, about)
	e.Streams = true
	return e
}

// page makes a call that changes something available to pages.
func (e Endpoint[Q, A]) page() Endpoint[Q, A] {
	e.Browser = true
	return e
}

// Kind is a set of kinds of agents.
type Kind int

// The kinds of agents that may have a call.
const (
	User Kind = 1 << iota
	Resource
	Bank
	Every = User | Resource | Bank
)

// String names the kinds, as documents and flags do.
func (k Kind) String() string {
	var names []string
	for i, name := range []string{"user", "resource", "bank"} {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// KindOf is the kind of an agent by its name.
func KindOf(name string) Kind {
	for _, k := range []Kind{User, Resource, Bank} {
		if k.String() == name {
			return k
		}
	}
	return 0
}

// Call is a row of the table of calls.
type Call struct {
	Path     string
	Kind     Kind         // of the agents that have it
	Reads    bool         // it changes nothing, so GET answers it too
	Streams  bool         // it answers one JSON value per change
	Browser  bool         // a page of the agent may make it
	About    string       // one line for the documents
	Question reflect.Type // struct{} if the call has no question
	Answer   reflect.Type
}

// None is the empty question or answer.
type None = struct{}

// Endpoint is a call with its types: the server answers it, the client makes it.
type Endpoint[Q, A any] struct{ *Call }
