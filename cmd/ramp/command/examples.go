package command

// examples are what people type, by command. Every command that does something has
// at least one, and each is one that the program takes.
func examples() map[string]string {
	all := map[string]string{}
	for _, part := range []map[string]string{anybodysExamples(), usersExamples(), jobExamples(), sitesExamples(), banksExamples(), booksExamples(), papersExamples()} {
		for command, example := range part {
			all[command] = example
		}
	}
	return all
}

func anybodysExamples() map[string]string {
	return map[string]string{
		"demo":       "ramp demo\nramp demo --keep --dir market\nramp demo --stop --dir market",
		"status":     "ramp status\nramp status --dir site --watch",
		"doctor":     "ramp doctor\nramp doctor --dir site",
		"version":    "ramp version\nramp version --json",
		"help":       "ramp help user buy",
		"completion": "ramp completion bash > ~/.local/share/bash-completion/completions/ramp",
	}
}

func usersExamples() map[string]string {
	return map[string]string{
		"user init":         "ramp user init --join invitation.ramp\nramp user init --join invitation.ramp --name ann --dir ann",
		"user serve":        "ramp user serve",
		"user config check": "ramp user config check",
		"user resources":    "ramp user resources\nramp user resources --watch=10s",
		"user cancel":       "ramp user cancel p23e5\nramp user cancel p23e5 --unit 2",
		"user list":         "ramp user list\nramp user list --limit 10 --watch",
		"user show":         "ramp user show p23e5 --json",
		"user receipt":      "ramp user receipt p23e5 --out receipt\nramp user receipt p23e5 --out receipt --proof",
		"user trace":        "ramp user trace p23e5",
		"user balance":      "ramp user balance --watch",
		"user statement":    "ramp user statement\nramp user statement --from 2026-11-01T00:00:00Z --json",
		"user runway":       "ramp user runway\nramp user runway --over 24h",
	}
}

func jobExamples() map[string]string {
	return map[string]string{
		"user jobs":    "ramp user jobs --watch",
		"user status":  "ramp user status p23e5",
		"user logs":    "ramp user logs p23e5 --follow",
		"user fetch":   "ramp user fetch p23e5 --out results",
		"user suspend": "ramp user suspend p23e5",
		"user resume":  "ramp user resume p23e5",
		"user kill":    "ramp user kill p23e5",
	}
}

func sitesExamples() map[string]string {
	return map[string]string{
		"resource config check": "ramp resource config check --dir site",
		"resource check":        "ramp resource check --dry-run\nramp resource check job.xml --rounds 5",
		"resource serve":        "ramp resource serve --dir site",
		"resource status":       "ramp resource status",
		"resource offers":       "ramp resource offers --limit 20\nramp resource offers --watch",
		"resource reservations": "ramp resource reservations --watch",
		"resource balance":      "ramp resource balance --watch",
		"resource statement":    "ramp resource statement --from 2026-11-01T00:00:00Z --json",
		"resource receipt":      "ramp resource receipt atlas-2f921340-0-2 --out sold",
		"resource drain":        "ramp resource drain --why 'new cooling'",
		"resource resume":       "ramp resource resume",
	}
}

func banksExamples() map[string]string {
	return map[string]string{
		"bank serve":            "ramp bank serve --dir bank",
		"bank config check":     "ramp bank config check --dir bank",
		"bank invite list":      "ramp bank invite list",
		"bank invite withdraw":  "ramp bank invite withdraw 5b6cfa1c --ref 'course is over'",
		"bank account open":     "ramp bank account open ann --cert ann.pem",
		"bank account list":     "ramp bank account list",
		"bank account limit":    "ramp bank account limit ann 500",
		"bank account freeze":   "ramp bank account freeze ann --ref 'key lost'",
		"bank account unfreeze": "ramp bank account unfreeze ann",
		"bank account close":    "ramp bank account close ann",
		"bank balance":          "ramp bank balance\nramp bank balance ann --watch",
		"bank credit":           "ramp bank credit ann 1000 --ref 'grant 12'",
		"bank transfer":         "ramp bank transfer ann group:A 12.50 --ref 'half of job 7'",
		"bank hold list":        "ramp bank hold list",
		"bank dispute list":     "ramp bank dispute list --json",
		"bank dispute settle":   "ramp bank dispute settle 25a6514d7191 1.5 --ref 'half of it ran'",
		"user exchange":         "ramp user exchange CPU GPU 100 --least 25",
		"user agree":            "ramp user agree p23",
		"user dispute":          "ramp user dispute p23 --unit 1 --why 'it printed nothing'",
		"bank policy":           "ramp bank policy\nramp bank policy CPU allowance --decay 0.01",
		"bank allowance set":    "ramp bank allowance set ann 24",
		"bank group open":       "ramp bank group open A",
		"bank group show":       "ramp bank group show A",
		"bank rate set":         "ramp bank rate set CPU GPU 0.125",
	}
}

func booksExamples() map[string]string {
	return map[string]string{
		"bank statement":    "ramp bank statement ann\nramp bank statement ann --from 2026-11-01T00:00:00Z",
		"bank report":       "ramp bank report --step 24h\nramp bank report --plot turnover",
		"bank audit":        "ramp bank audit\nramp bank audit --signatures",
		"bank backup":       "ramp bank backup ledger-1121.backup",
		"bank restore":      "ramp bank restore ledger-1121.backup --verify\nramp bank restore ledger-1121.backup",
		"bank recovery end": "ramp bank recovery end --ref 'restored on Monday'",
		"bank compact":      "ramp bank compact",
		"bank verify":       "ramp bank verify receipt",
		"bank witness":      "ramp bank witness --dir bank --count 1\nramp bank witness bank@twydvacamjkgwndgcgaplaxazl6srtpm --user ann",
	}
}

func papersExamples() map[string]string {
	return map[string]string{
		"ca init":        "ramp ca init --dir ca",
		"ca request":     "ramp ca request ann --out ann",
		"ca issue":       "ramp ca issue ann --dir ca --out ann",
		"ca revoke":      "ramp ca revoke ann/agent.pem --dir ca",
		"ca show":        "ramp ca show ann/agent.pem",
		"rfql validate":  "ramp rfql validate job.xml",
		"rfql show":      "ramp rfql show job.xml",
		"acl parse":      "ramp acl parse message.acl\nramp user trace p23e5 | ramp acl parse",
		"acl format":     "ramp acl format message.json",
		"swf info":       "ramp swf info log.swf.gz",
		"swf slice":      "ramp swf slice log.swf.gz --from 0 --length 24h --out day.swf.gz",
		"swf validate":   "ramp swf validate log.swf.gz",
		"swf forecast":   "ramp swf forecast log.swf.gz",
		"swf synth":      "ramp swf synth --cores 64 --length 24h --seed 7 --out small.swf.gz",
		"sim run":        "ramp sim run --seed 7 --faults light",
		"sim explore":    "ramp sim explore --seeds 1-50 --faults heavy --resources 5 --users 4 --days 0.1 --rate 6",
		"sim replay":     "ramp sim replay scenario.yaml --trace",
		"sim experiment": "ramp sim experiment list\nramp sim experiment rounds --out figures",
		"bench auction":  "ramp bench auction --sellers 20 --rounds 3,5 --buyers 1,4,16",
		"bench bank":     "ramp bench bank --clients 1,64,256 --dir .\nramp bench bank --clients 16,64 --entries 100000 --store etcd:db1,db2,db3",
		"bench stage":    "ramp bench stage --size 256 --runs 5",
	}
}
