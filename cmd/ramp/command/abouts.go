package command

// abouts say of a command what its line in a list has no room for, and which exit codes
// mean something of its own; commands that have a text where they are made are not here.
func abouts() map[string]string {
	all := map[string]string{}
	for _, part := range []map[string]string{usersAbouts(), jobAbouts(), moneyAbouts(), sitesAbouts(), banksAbouts(), booksAbouts(), papersAbouts(), logsAbouts()} {
		for command, about := range part {
			all[command] = about
		}
	}
	return all
}

// aboutCheck is that of the three 'config check'.
const aboutCheck = `Says what is wrong with a configuration, by default config.yaml in the directory, and
starts nothing: keys that are not known, with their line, values, with what is allowed,
and a certificate that does not count. Ends with 2 if something is wrong.`

func usersAbouts() map[string]string {
	return map[string]string{
		"user config check": aboutCheck,
		"user serve": `Runs the user agent as a daemon until SIGINT or SIGTERM. The other commands then talk to
it, over a socket in its directory; it carries on what was signed, and buys again what
a site has lost. SIGHUP reads the configuration again. Its log goes to stderr.`,
		"user resources": `Lists the resources that are known now, with their cores, the credits per core-hour at
which they open and below which they never go, what they are, and which currencies they
take at which banks.`,
		"user cancel": `Stops a purchase that goes on, so that nothing is bought, or asks the sellers to take
settled units back. Each says in its offer until when it does so, and at what fee. The
command waits for about a minute and a half; a seller that does not answer by then is
asked on until its slot is over, and the same command waits again.

Ends with 3 if there is nothing to cancel, with 4 if a seller refuses, and with 5 if one
does not answer.`,
		"user list": `Lists the purchases there were, the oldest first, with how each ended and what it cost.
It needs only the journal, and asks nobody.`,
		"user show": `Shows one purchase: rounds, units, prices, and why it failed or what would help. It needs
only the journal, and asks nobody. --json has more of it. Ends with 2 if there is none.`,
		"user trace": `Prints what was said with other agents for a purchase as FIPA-ACL strings, each below a
comment that says when it was sent ('out') or came ('in'). 'ramp acl parse' reads all of
it. It needs only the journal.`,
	}
}

func jobAbouts() map[string]string {
	return map[string]string{
		"user jobs": `Lists the programs that run, or ran, in what was bought, the oldest first, as far as was
heard of them: it asks nobody. 'ramp user status ID' asks the sites.`,
		"user status": `Asks the sites how the program of a purchase stands: its state, the time it used, and the
files that it left. Of one that is over it says how it ended. Ends with 5 if a site has
not answered within 10 s.`,
		"user logs": `Prints what the program of a purchase has printed so far, its stdout to stdout and its
stderr to stderr. With --follow it stays until the program is over; an interrupt leaves
that running. Of a program that has not begun it says when it will.

Ends with 3 if it never ran, and with 5 if its site does not answer.`,
		"user fetch": `Fetches the files that the program of a purchase has left, of several units each into a
directory of its own below --out (unit-1 and so on). Sites keep them for a while, a day
if they do not say otherwise. What is there already is left alone, so the same command
goes on where it was interrupted.

Ends with 3 if the program is not over, or its files are kept no longer, and with 5 if a
site does not answer.`,
		"user suspend": `Suspends the program of a purchase in all its units, until 'ramp user resume'. The slot,
and what it costs, go on.

Ends with 1 where a site's batch system does not suspend, with 3 if the program has not
begun or is over, and with 5 if a site has not answered within 10 s.`,
		"user resume": `Lets the suspended program of a purchase go on in all its units. Ends with 3 if it has
not begun or is over, and with 5 if a site has not answered within 10 s.`,
		"user kill": `Ends the program of a purchase in all its units. What was paid for the slot stays paid;
of a metered purchase only what was used is.

Ends with 3 if it is over already, and with 5 if a site has not answered within 10 s: it
is asked until it does.`,
	}
}

func moneyAbouts() map[string]string {
	return map[string]string{
		"user balance": `Asks the banks for the agent's own balances, in credits: what is there, what is held for
what is not decided or not done yet, and what can be spent. Ends with 5 if a bank has not
answered within 30 s.`,
		"user statement": `Asks the banks for the entries of the agent's own accounts, the oldest first: by how many
credits each moved the balance, and what it held. Times are as 2026-11-01T00:00:00Z. Ends
with 5 if a bank has not answered within 30 s.`,
		"user runway": `Tells how long the money lasts if it is spent as in the time of --over up to now: what was
paid for jobs and is held for them, less what came back. An income counts. Of a member of
a bartering group the money counts that its jobs are paid of, its own and its group's,
whoever of the group spends it. What lasts less than three days is marked LOW. Ends with 5
if a bank has not answered within 30 s.`,
	}
}

func sitesAbouts() map[string]string {
	return map[string]string{
		"resource config check": aboutCheck,
		"resource status": `Prints whether the agent sells, and if not, why and since when; how its batch system
stands; how many slots are held, in doubt, sold and begun; and which of its banks were
heard.`,
		"resource balance": `Asks the banks that the agent deals with for its own balances, in credits: what it earned,
and what it has. Its daemon asks them: without one the command ends with 5, as when a
bank has not answered within 30 s.`,
		"resource statement": `Asks the banks that the agent deals with for the entries of its own accounts, the oldest
first: by how many credits each moved the balance, and for which contract. Its daemon
asks them: without one the command ends with 5.`,
		"resource offers": `Prints the last offers and refusals, the newest last, and why each was so. The daemon
keeps them in memory; without a daemon there are none.`,
		"resource reservations": `Prints the reservations that the journal has, with their state, whose they are, when they
are, and what they cost in credits.`,
		"resource drain": `Stops the sales until 'ramp resource resume', also across restarts. What was sold is
honoured, and what is held may still be bought. It prints the status: when 'sold' is 0,
the machine is free.`,
		"resource resume": `Sells again after 'ramp resource drain', and prints the status.`,
	}
}

func banksAbouts() map[string]string {
	return map[string]string{
		"bank config check": aboutCheck,
		"bank invite list": `Lists the invitations that are not withdrawn: how many each lets in, how many came, until
when it is good, and with how many credits each begins.`,
		"bank account list": `Lists the accounts with their balances, what is held, limits, incomes per day and groups,
all in credits and until now.`,
		"bank account open": `Opens an account NAME for the agent of a certificate. One that does not lead to the
bank's trust anchors, has expired or is revoked is refused (exit code 2).`,
		"bank account limit": `Sets how far below zero an account may go, in credits. Less than what is used already only
stops further spending.`,
		"bank credit": `Issues money to an account, given by its name or agent ID; AMOUNT is in credits, with at
most six decimals. It is safe to repeat: a command that was killed is carried on by the
same command, and nothing is credited twice; once it has answered it is a new order.`,
		"bank balance": `Shows one account, given by its name or agent ID, or all of them, in credits: what is there,
what is held, and what can be spent.`,
		"bank hold list": `Lists the open holds: credits that wait for a decision or for the end of a job, until when,
and for what.`,
	}
}

func booksAbouts() map[string]string {
	return map[string]string{
		"bank statement": `Shows the entries of an account, given by its name or agent ID, the oldest first: by how
many credits each moved the balance, and what it held. Times are as 2026-11-01T00:00:00Z.`,
		"bank audit": `Recomputes every balance and the sum of each currency from the entries, the Merkle log
with every signed head that is kept, and while no daemon runs all pages of the file. It
changes nothing. Ends with 1 if something is wrong.`,
		"bank compact": `Rewrites the ledger's file without the room that old pages take, beside the old file, which
it replaces at the end. The bank must not run.`,
	}
}

func papersAbouts() map[string]string {
	return map[string]string{
		"ca init": `Makes an authority in --dir: ca.pem, to give to everybody, and ca.key, to keep. Nothing is
overwritten. No certificate that it issues outlasts its own.`,
		"ca revoke": `Revokes certificates of this authority, and rewrites revoked.pem in its directory. Give that
file to every agent; who has it does not hear their owners any more.`,
		"ca show": `Shows certificates, without an argument the authority's own: whose they are, who issued them,
until when, and whether they count now: by their key, use and time, and with an authority
in --dir also whether they lead to it and are not revoked.`,
		"rfql validate": `Says whether a document could be bought now, and what is wrong with it: one line for each
fault, with its line and what is allowed. Ends with 2 if something is. FILE may be '-',
standard input.`,
		"rfql show": `Prints what a document asks for. Faults of meaning, such as an end that has passed, are
warnings. FILE may be '-', standard input.`,
		"version": `Says which version this is, and which versions of the protocols between agents, the control
socket and the invitation it speaks.`,
	}
}

func logsAbouts() map[string]string {
	return map[string]string{
		"swf info": `Says how long, how large and how busy logs are, and what their jobs are like: cores, run
times, waits and requested times, as median and mean. What is odd in a log is told on
stderr with its line. docs/WORKLOADS.md has the rules.`,
		"swf slice": `Writes a part of a log as a log, from a second of it (--from), or the first busy week
(--busy), for a time (--length) or a number of jobs (--jobs). Headers are made true.`,
		"swf validate": `Tells what is wrong in logs, line by line, and what is odd. Ends with 2 if one of them is
not usable.`,
		"swf forecast": `Replays the waits of logs: each job is told the upper bound on its wait that stands when it
is submitted, and a wait is learnt when the job starts. Says how many bounds were told,
and how many held. docs/FORECAST.md says how.`,
		"swf synth": `Makes a synthetic log, by the model of Lublin and Feitelson (2003) with EASY back-filling
played over it. The same seed makes the same log. Its dates mean nothing.`,
	}
}
