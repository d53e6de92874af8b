/*
 * RAMP's vote, commit and settlement of one bundle: a user, K sellers of one
 * unit each, one bank. Spin visits every state of it; see docs/MODEL.md.
 *
 * The code that it stands for: protocol/reserve (User: Coordinator; Seller:
 * Participant), bank/ledger and agents/bank (Bank), agents/runner.go (what is
 * saved is durable before anything is sent). Names are those of the code.
 *
 * THE NETWORK is the set of all messages that were ever sent. Receiving takes
 * nothing out. So any message may come late, in any order, again and again, or
 * never: delay, reordering, duplication, replay and loss without any bound.
 *
 * EVERY AGENT has a memory and a journal. An event changes the memory and
 * puts messages into the outbox. Later one step makes the memory durable and
 * lets the outbox go. A crash before that loses both. (That step takes all that
 * waits. A step that took only the first half would do what the same step does
 * when it comes before the second half.)
 *
 * CLOCKS are not to be relied on: a hold may end, and settle-by may pass,
 * whenever they like. What must hold does so for any clocks.
 *
 * FAULTS come in any number until `calm`: crashes of everybody, take-overs of
 * the bank that leave a deposed leader at work, lost journals of sellers. At
 * calm all messages under way are lost, or none; the user, a seller, both or
 * neither have left for ever; after it nothing goes wrong.
 *
 * LIVENESS is checked in a safety form. After calm every step adds something:
 * a message to the network, or progress to a memory or a journal. So each run
 * ends (spin proves that too: there is no cycle after calm), and where no step
 * is left, Quiescence below looks at what became of everybody. That is liveness
 * under one assumption: a step that stays possible is taken at last. A timer
 * fires, and a message that is sent often enough arrives once.
 *
 * MUTANTS are options of this model, one rule broken each: -DMUTANT_...
 * Spin must find every one of them.
 */

#ifndef K
#define K 2			/* sellers, 1..3 */
#endif

/* Messages, one bit each. A seller's have one bit per seller. */
#define AGREE(i)	(1 << (i))	/* Ri -> U: its vote; the slot is held */
#define SALE(i)		(8 << (i))	/* Ri -> U and B, U -> B: countersigned copy */
#define FAILURE(i)	(64 << (i))	/* Ri -> U: never countersigns */
#define ACCEPT		512		/* U -> all: accept-proposal */
#define CONFIRM		1024		/* U -> all: the bundle signed by U */
#define CANCEL		2048		/* U -> all: free what is held */
#define QUERY		4096		/* U -> B: what is the outcome? */
#define UNKNOWN		8192		/* B -> U: no such contract; decides nothing */
#define ANNULMENT	16384		/* U or any Ri -> B: please void */
#define RECEIPT_SETTLED	32768		/* B -> all, whoever brings it */
#define RECEIPT_VOID	65536
#define PREPARE		131072		/* U -> all: the signed bundle, before U has saved it */
#define ALL_AGREE	(AGREE(K) - AGREE(0))
#define ALL_SALES	(SALE(K) - SALE(0))
#define ALL_FAILURES	(FAILURE(K) - FAILURE(0))
#define ALL_COPIES	((1 << K) - 1)

mtype = { Voting, Confirming, Deciding, Failed };		/* the user's, with Settled, Void */
mtype = { None, Held, Prepared, Silent, Countersigned, Sold, Freed, Stranger };	/* a claim's */
mtype = { Unknown, Gathering, Settled, Void };			/* the bank's */
mtype = { Left };	/* instead of the memory of a user or seller that never comes back */

int net = ACCEPT;	/* the auction is over: the offers are accepted */
bool calm = false;	/* no more faults */

/* The user. Voting is not saved: until it signs, the user may forget. */
mtype state = Voting, state_saved = Failed;
int user_outbox = 0;

/* The sellers. */
mtype claim[K] = None, claim_saved[K] = None;
int outbox[K] = 0;
byte released = 0;	/* bit i: the batch system has given Ri's slot away */

/* The bank: 0 leads; 1 was deposed, does not know it, and goes on. */
mtype outcome[2] = Unknown, outcome_saved = Unknown;
byte copies[2] = 0, copies_saved = 0;	/* bit i: Ri's copy is there */
int bank_outbox[2] = 0;
bool unsaved[2] = false;
bool deposed = false;	/* there is a leader 1 */
bool late = false;	/* settle-by is over, by the clock of the bank */
byte moved = 0;		/* how often money was moved, durably */

hidden byte j, sold;

#define there(m)	((net & (m)) != 0)
#define absent(m)	((net & (m)) != (m))	/* at least one of them */
#define decided(o)	((o) == Settled || (o) == Void)
#define in_doubt(i)	(claim[i] == Countersigned || claim[i] == Silent)
#define promised(i)	(claim_saved[i] == Held || claim_saved[i] == Prepared || claim_saved[i] == Countersigned || claim_saved[i] == Sold)
#define receipt(o)	((o) == Settled -> RECEIPT_SETTLED : RECEIPT_VOID)

/* All or nothing. Looked at after every change of a journal or of the network.
 * A released slot is offered to the next buyer: it is freed for ever. */
inline consistent() {
	sold = 0;
	for (j : 0 .. K - 1) {
		sold = sold + (claim_saved[j] == Sold);
	}
	assert(!(sold > 0 && released));				/* no half-commit */
	assert(!(outcome_saved == Settled && released));		/* nobody pays for a freed slot */
	assert(!(sold > 0 && outcome_saved != Settled));		/* nobody sells without money */
	assert(!(there(RECEIPT_SETTLED) && there(RECEIPT_VOID)));	/* the bank does not contradict itself */
	assert(moved <= 1);						/* money moves once at most */
	assert(!(outcome_saved == Settled && state_saved == Failed));	/* nobody pays for a forgotten bundle */
	j = 0; sold = 0;
}

/* ---- the user: protocol/reserve, Coordinator ---- */

inline user_sends(m) {
#ifdef MUTANT_USER_SENDS_BEFORE_SAVE
	net = net | (m);
#else
	user_outbox = user_outbox | (m);
#endif
}

#define undecided_user	(state == Confirming || state == Deciding)
#define user_clean	(state == state_saved && user_outbox == 0)

proctype User() {
end:	do
	/* becomeConfirming: all votes are there; the bundle is signed, saved, sent. The
	 * sellers may prepare meanwhile. */
	:: d_step { state == Voting && !absent(ALL_AGREE) ->
		state = Confirming; net = net | PREPARE; user_sends(CONFIRM); consistent() }
	/* becomeFailed: a vote was refused or too late, or the owner gives up. */
	:: d_step { state == Voting -> state = Failed; net = net | CANCEL }
	/* A vote in a conversation that is over is answered with cancel. */
	:: d_step { state == Failed && there(ALL_AGREE) && absent(CANCEL) -> net = net | CANCEL }
	/* A buyer may cancel when it likes, after signing too. */
	:: d_step { !calm && absent(CANCEL) -> net = net | CANCEL }
	/* countersigned: all copies are there. */
	:: d_step { state == Confirming && !absent(ALL_SALES) -> state = Deciding }
	/* refusedConfirm: a named seller never countersigns. */
	:: d_step { state == Confirming && there(ALL_FAILURES) && absent(ANNULMENT) && !(user_outbox & ANNULMENT) ->
		user_sends(ANNULMENT) }
	/* decided: unknown decides nothing; after settle-by the user asks for void. */
	:: d_step { state == Confirming && there(UNKNOWN) && absent(ANNULMENT) && !(user_outbox & ANNULMENT) ->
		user_sends(ANNULMENT) }
	/* Annul, the owner's wish; or a seller that has lost its slot asks. */
	:: d_step { !calm && there(CONFIRM) && absent(ANNULMENT) ->
		net = net | ANNULMENT }
	/* becomeDecided: a receipt of the bank, whoever brings it. */
	:: d_step { undecided_user && there(RECEIPT_SETTLED) -> state = Settled }
	:: d_step { undecided_user && there(RECEIPT_VOID) -> state = Void }
	/* retry: ask again for what is missing; bring the bank the copies. */
	:: d_step { state == Confirming && user_clean && absent(CONFIRM | QUERY) ->
		net = net | CONFIRM | QUERY }
	:: d_step { state == Deciding && user_clean && absent(ALL_SALES) -> net = net | ALL_SALES }
	/* save, then send */
	:: d_step { state != Voting && state != Left && !user_clean ->
		state_saved = state; net = net | user_outbox; user_outbox = 0; consistent() }
	/* crash and restart: Resume; a vote that was not signed is forgotten */
	:: d_step { !calm && (state == Voting || !user_clean) -> state = state_saved; user_outbox = 0 }
	od
}

/* ---- a seller: protocol/reserve, Participant ---- */

inline seller_sends(i, m) {
#ifdef MUTANT_SELLER_SENDS_BEFORE_SAVE
	net = net | (m); consistent();
#else
	outbox[i] = outbox[i] | (m);
#endif
}

/* What is freed by the journal is then released by the batch system. A seller that was
 * silent is prepared for its journal. */
inline save(i) {
	claim_saved[i] = (claim[i] == Silent -> Prepared : claim[i]);
	released = released | (claim[i] == Freed) << i;
}

#define durable(i)	(claim[i] == claim_saved[i] || claim[i] == Silent)
#define clean(i)	(durable(i) && outbox[i] == 0)

#ifdef MUTANT_PREPARED_IS_SENT
#define prepares(i)	seller_sends(i, SALE(i))
#else
#define prepares(i)	skip
#endif

#ifdef MUTANT_FORGETS_PREPARED
#define reload(i)	(claim_saved[i] == Prepared -> Held : claim_saved[i])
#else
#define reload(i)	(claim_saved[i] == Prepared -> Silent : claim_saved[i])
#endif

#ifdef MUTANT_COUNTERSIGNS_LATE
#define confirmable(i)	(claim[i] == Held || claim[i] == Freed)
#else
#define confirmable(i)	(claim[i] == Held)
#endif

#ifdef MUTANT_FREES_ON_TIMEOUT
#define expirable(i)	(claim[i] == Held || in_doubt(i))
#else
#define expirable(i)	(claim[i] == Held || claim[i] == Prepared)
#endif

#ifdef MUTANT_FREES_ON_CANCEL
#define cancellable(i)	(claim[i] == Held || in_doubt(i))
#else
#define cancellable(i)	(claim[i] == Held || claim[i] == Prepared)
#endif

#ifdef MUTANT_SELLER_ANSWER_OVERTAKES_SAVE
#define may_answer(i)	true
#else
#define may_answer(i)	clean(i)
#endif

proctype Seller(byte i) {
end:	do
	/* Accept, reserve, granted: the slot is reserved, and the vote is yes. */
	:: d_step { claim[i] == None && there(ACCEPT) -> claim[i] = Held; seller_sends(i, AGREE(i)) }
	/* voteAgain */
	:: d_step { claim[i] == Held && clean(i) && there(ACCEPT) && absent(AGREE(i)) -> net = net | AGREE(i) }
	/* expire: before it has countersigned, a seller may forget. */
	:: d_step { expirable(i) -> claim[i] = Freed }
	/* cancel: frees only what is held. */
	:: d_step { cancellable(i) && there(CANCEL) -> claim[i] = Freed }
	/* confirm, kept, countersign: from here on only the bank decides. */
	:: d_step { confirmable(i) && there(CONFIRM) -> claim[i] = Countersigned; seller_sends(i, SALE(i)) }
	/* prepare: countersigned for nobody yet. It is held as before. */
	:: d_step { claim[i] == Held && there(PREPARE) -> claim[i] = Prepared; prepares(i) }
	/* release: it may be shown once it is durable, whatever else is. */
	:: d_step { claim[i] == Prepared && there(CONFIRM) && claim_saved[i] == Prepared ->
		claim[i] = Countersigned; net = net | SALE(i); consistent() }
	/* After a restart nobody knows whether it was shown. It is in doubt, and shown when
	 * the user confirms. */
	:: d_step { claim[i] == Silent && there(CONFIRM) -> claim[i] = Countersigned; net = net | SALE(i); consistent() }
	/* confirm: settle-by is too near, or the batch system lost the slot. */
	:: d_step { (claim[i] == Held || claim[i] == Prepared) && there(CONFIRM) -> claim[i] = Freed; seller_sends(i, FAILURE(i)) }
	/* confirm and confirmAgain: a confirm that finds no slot */
	:: d_step { (claim[i] == None || claim[i] == Freed || claim[i] == Stranger) && clean(i) && there(CONFIRM) && absent(FAILURE(i)) ->
		net = net | FAILURE(i) }
	/* confirmAgain: the same copy again */
	:: d_step { (claim[i] == Countersigned || claim[i] == Sold) && may_answer(i) && there(CONFIRM) && absent(SALE(i)) ->
		net = net | SALE(i); consistent() }
#ifndef MUTANT_SELLER_DOES_NOT_ASK
	/* ask: in doubt, the copy goes to the bank until it has decided. */
	:: d_step { claim[i] == Countersigned && clean(i) && absent(SALE(i)) -> net = net | SALE(i) }
	/* A silent one asks for void after settle-by. */
	:: d_step { claim[i] == Silent && absent(ANNULMENT) -> net = net | ANNULMENT }
#endif
	/* becomeDecided, and informUser */
	:: d_step { in_doubt(i) && there(RECEIPT_SETTLED) -> claim[i] = Sold; seller_sends(i, RECEIPT_SETTLED) }
	:: d_step { in_doubt(i) && there(RECEIPT_VOID) -> claim[i] = Freed; seller_sends(i, RECEIPT_VOID) }
	/* save, then send; a freed slot is released here too */
	:: d_step { !clean(i) && claim[i] != Left ->
		save(i); net = net | outbox[i]; outbox[i] = 0; consistent() }
	/* crash and restart: NewParticipant */
	:: d_step { !calm && (!clean(i) || claim[i] == Prepared) -> claim[i] = reload(i); outbox[i] = 0 }
#ifdef MUTANT_FORGETS_DOUBT
	:: d_step { !calm && claim_saved[i] == Countersigned -> claim[i] = Held; outbox[i] = 0 }
#endif
	/* The journal is lost. What the batch system still has is a stranger: left
	 * alone until its own end, for a bank may have a contract for it. */
	:: d_step { !calm && promised(i) ->
#ifdef MUTANT_FORGETS_AFTER_RESTORE
		claim[i] = Freed;
#else
		claim[i] = Stranger;
#endif
		outbox[i] = 0; save(i); consistent() }
#ifdef MUTANT_RESTORES_HELD
	/* An old journal that still says held is taken for the truth. */
	:: d_step { !calm && (claim_saved[i] == Countersigned || claim_saved[i] == Sold) ->
		claim[i] = Held; claim_saved[i] = Held; outbox[i] = 0; consistent() }
#endif
	od
}

/* ---- the bank: bank/ledger, agents/bank ---- */

inline bank_sends(b, m) {
#ifdef MUTANT_BANK_SENDS_BEFORE_SAVE
	net = net | (m); consistent();
#else
	bank_outbox[b] = bank_outbox[b] | (m);
#endif
}

/* close: the outcome and the money are one record. */
inline close(b, o) {
	assert(o == Void || !late);	/* nothing is settled when settle-by is over */
	outcome[b] = o; copies[b] = 0; unsaved[b] = true;
#ifdef MUTANT_SETTLES_TWICE
	moved = moved + (o == Settled);	/* two records: the money first */
#endif
	bank_sends(b, receipt(o));
}

inline load() {
	outcome[0] = outcome_saved; copies[0] = copies_saved; bank_outbox[0] = 0; unsaved[0] = false;
}

inline drop_deposed() {
	deposed = false; outcome[1] = Unknown; copies[1] = 0; bank_outbox[1] = 0; unsaved[1] = false;
}

inline append(b) {
	assert(!decided(outcome_saved) || outcome_saved == outcome[b]);	/* one decision, ever */
#ifndef MUTANT_SETTLES_TWICE
	moved = moved + (outcome[b] == Settled && outcome_saved != Settled);
#endif
	outcome_saved = outcome[b]; copies_saved = copies[b];
	net = net | bank_outbox[b]; bank_outbox[b] = 0; unsaved[b] = false;
}

#ifdef MUTANT_ACCEPTS_PAST_SETTLE_BY
#define in_time	true
#else
#define in_time	(!late)
#endif

#ifdef MUTANT_SETTLES_WITHOUT_LAST_COPY
#define complete(b, i)	((copies[b] | 1 << (i)) != 0)
#else
#define complete(b, i)	((copies[b] | 1 << (i)) == ALL_COPIES)
#endif

#ifdef MUTANT_BANK_ANSWER_OVERTAKES_SAVE
#define may_tell(b)	true
#else
#define may_tell(b)	(!unsaved[b])
#endif

#define at_work(b)	((b) == 0 || deposed)
#define open(b)		(at_work(b) && !decided(outcome[b]))
#define new_copy(b, i)	(open(b) && there(SALE(i)) && !(copies[b] & 1 << (i)))
#define asked		there(ALL_SALES | QUERY | ANNULMENT)

/* Copy of seller i: too late; not the last; the last, and it can be paid or not. */
#define TAKES_COPY(b, i) \
	:: d_step { new_copy(b, i) && !in_time -> close(b, Void) } \
	:: d_step { new_copy(b, i) && in_time && !complete(b, i) -> \
		outcome[b] = Gathering; copies[b] = copies[b] | 1 << (i); unsaved[b] = true } \
	:: d_step { new_copy(b, i) && in_time && complete(b, i) -> close(b, Settled) } \
	:: d_step { new_copy(b, i) && in_time && complete(b, i) -> close(b, Void) }

proctype Bank(byte b) {
end:	do
	TAKES_COPY(b, 0)
#if K > 1
	TAKES_COPY(b, 1)
#endif
#if K > 2
	TAKES_COPY(b, 2)
#endif
	/* Void: the user or a named seller asks. */
	:: d_step { open(b) && there(ANNULMENT) -> close(b, Void) }
#ifndef MUTANT_BANK_DOES_NOT_EXPIRE
	/* Expire */
	:: d_step { at_work(b) && outcome[b] == Gathering && late -> close(b, Void) }
#endif
	/* A repeated request gets the recorded answer, which waits for its record. */
	:: d_step { at_work(b) && decided(outcome[b]) && may_tell(b) && asked && absent(receipt(outcome[b])) ->
		net = net | receipt(outcome[b]); consistent() }
#ifdef MUTANT_VOIDS_FROM_MEMORY
	:: d_step { at_work(b) && outcome[b] == Unknown && there(QUERY) && absent(RECEIPT_VOID) ->
		net = net | RECEIPT_VOID; consistent() }
#else
	/* Outcome: what memory does not have decides nothing. (Before calm the
	 * user may ask for void anyway, so this answer would add nothing.) */
	:: d_step { calm && outcome[b] == Unknown && there(QUERY) && absent(UNKNOWN) -> net = net | UNKNOWN }
#endif
#ifdef MUTANT_VOIDS_ON_REPLAY
	/* The clock is looked at before the record. */
	:: d_step { at_work(b) && outcome[b] == Settled && there(ALL_SALES) && late -> close(b, Void) }
#endif
	/* save, then send. A deposed leader finds its append fenced off, and stops. */
	:: d_step { b == 0 && unsaved[b] -> append(b); consistent() }
	:: d_step { b == 1 && unsaved[b] ->
#ifdef MUTANT_DEPOSED_LEADER_WRITES
		append(b);
#endif
		drop_deposed(); consistent() }
	/* crash and restart: Load */
	:: d_step { !calm && b == 0 && unsaved[b] -> load() }
	:: d_step { !calm && b == 1 && deposed -> drop_deposed() }
	/* A take-over: the leader is deposed and does not know it. */
	:: d_step { !calm && b == 0 && !deposed ->
		deposed = true; outcome[1] = outcome[0]; copies[1] = copies[0];
		bank_outbox[1] = bank_outbox[0]; unsaved[1] = unsaved[0];
		load() }
	od
}

/* Time, and the end of all faults. Before calm the bank's clock may step back,
 * after a take-over for instance. The label marks what happens before calm as
 * progress, so that a cycle without progress would be one after calm. */
proctype World() {
progress:
	do
	:: d_step { !late -> late = true }
	:: d_step { late -> late = false }
	:: atomic {
		calm = true; drop_deposed();
		if :: net = 0 :: skip fi;
		if :: state = Left; user_outbox = 0 :: skip fi;
		if :: claim[0] = Left; outbox[0] = 0 :: skip fi
	   } -> break
	od;
end:	do
	:: d_step { !late -> late = true }
#ifdef MUTANT_LOSES_FOR_EVER
	:: d_step { there(QUERY) -> net = net & ~QUERY }
#endif
	od
}

/* No step is left: what became of everybody? No hold, no doubt, and everybody
 * who is there has the bank's decision. */
proctype Quiescence() {
	timeout -> d_step {
		assert(calm);
		for (j : 0 .. K - 1) {
			if
			:: claim[j] == Left	/* the slot ends by itself */
			:: else ->
				assert(clean(j));
				assert(claim[j] != Held && claim[j] != Prepared);	/* no hold without bound */
				assert(!in_doubt(j));			/* every doubt ends */
				assert(outcome_saved != Settled || claim[j] == Sold || claim[j] == Stranger)
			fi
		}
		j = 0;
		assert(!unsaved[0] && outcome_saved != Gathering);	/* every bundle is decided */
		assert(moved == (outcome_saved == Settled));
		if
		:: state == Left	/* the decision waits for its return */
		:: else ->
			assert(user_clean && state != Voting && !undecided_user);
			assert((state == Settled) == (outcome_saved == Settled));
			assert(state != Void || outcome_saved == Void)
		fi;
		consistent()
	}
}

init {
	atomic {
		run User(); run Bank(0); run Bank(1); run World(); run Quiescence();
		byte i;
		for (i : 0 .. K - 1) { run Seller(i) }
		i = 0
	}
}
