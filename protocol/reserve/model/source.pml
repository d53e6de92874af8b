/*
 * The commit of the source (002, sections 5.1.1 and 5.1.2): a seller that gets
 * the user's confirm has sold, and one that does not frees its slot in time. The
 * bank pays each seller by itself; nobody decides for all. Numbers of steps are
 * those of 5.1.1.
 *
 * This model is kind to it. Channels keep their order, nothing is duplicated,
 * sellers and bank never crash, accounts have the money, and a timer fires only
 * when nothing else can happen any more (Promela's `timeout`). Options:
 *
 *   (none)    no fault: all or nothing holds
 *   -DLOSS    one message may be lost
 *   -DCRASH   the user may crash once, for good
 *
 * With either, spin finds one unit sold and the other freed.
 */

#ifndef K
#define K 2
#endif

mtype = { accept, agree, confirm, cancel, request };	/* messages */
mtype = { none, held, sold, freed };			/* a slot's states */

chan to_seller[K] = [3] of { mtype };
chan to_user = [2 * K] of { mtype, byte };
chan to_bank = [K] of { byte };

mtype slot[K] = none;
bool paid[K] = false;

#ifdef LOSS
byte losses = 1;
#define MAY_BE_LOST(what)	:: losses > 0 -> losses = losses - 1; printf("%e of R%d is lost\n", what, i)
#else
#define MAY_BE_LOST(what)
#endif

inline tell(i, m) {
	if
	:: to_seller[i] ! m -> printf("U: %e to R%d\n", m, i)
	MAY_BE_LOST(m)
	fi
}

/* No bundle has one unit sold and another freed for ever. */
inline all_or_nothing() {
	byte j, sales, losers;
	d_step {
		sales = 0; losers = 0;
		for (j : 0 .. K - 1) {
			sales = sales + (slot[j] == sold);
			losers = losers + (slot[j] == freed)
		}
		assert(!(sales > 0 && losers > 0))
	}
}

proctype User() {
	byte i, from, votes = 0;
	for (i : 0 .. K - 1) { tell(i, accept) }	/* step 5 */
	do
	:: to_user ? agree, from -> votes++
	:: votes == K -> break
	:: votes < K && timeout -> goto cancelling
	od;
	for (i : 0 .. K - 1) {						/* step 8 */
		if
		:: true -> tell(i, confirm)
#ifdef CRASH
		:: printf("U crashes\n"); goto crashed
#endif
		fi
	}
	goto done;
cancelling:
	for (i : 0 .. K - 1) { tell(i, cancel) }		/* step 9 */
crashed:
done:
end:	do
	:: to_user ? _, _	/* acknowledgements */
	od
}

proctype Seller(byte i) {
end_waiting:
	to_seller[i] ? accept ->
	slot[i] = held;								/* step 6 */
	if
	:: to_user ! agree, i -> printf("R%d: agree, the slot is held\n", i)
	MAY_BE_LOST(agree)
	fi;
	if
	:: to_seller[i] ? confirm ->						/* step 8 */
		slot[i] = sold; printf("R%d: confirm, the slot is sold\n", i);
		to_user ! confirm, i;
		to_bank ! i							/* 5.1.2 */
	:: to_seller[i] ? cancel -> slot[i] = freed; printf("R%d: cancelled, the slot is freed\n", i)
	:: timeout -> slot[i] = freed; printf("R%d: no confirm in time, the slot is freed\n", i)	/* step 10 */
	fi;
	all_or_nothing();
end:	do
	:: to_seller[i] ? _
	od
}

proctype Bank() {
	byte i;
end:	do
	:: to_bank ? i -> paid[i] = true; printf("B: U pays R%d\n", i)
	od
}

init {
	byte i;
	atomic {
		run User(); run Bank();
		for (i : 0 .. K - 1) { run Seller(i) }
	}
}
