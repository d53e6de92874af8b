# What people need: demo and test. Everything else is for developers.
GO ?= go
RAMP := bin/ramp
FUZZTIME ?= 30s

# Everything is compiled once, as packages are: without cgo, and without the name of the
# directory, so that clones share what is compiled. Only the race detector needs cgo.
export CGO_ENABLED := 0
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath
COMMIT ?= $(shell git describe --always --abbrev=40 --dirty='-changed' --match= 2>/dev/null)

.PHONY: all demo test long race lint fuzz bench clean build model mutants soak soak-bank soak-real docs test-slurm test-etcd test-nat test-web bench-slurm bench-postgres package check-package

all: build

build:
	@test -x $(RAMP) || echo 'compiling: some minutes where nothing is compiled yet; each package is named when it is done'
	$(GO) build $$(test -x $(RAMP) || echo -v) -buildvcs=false -ldflags '-X ramp/cmd/ramp/agent.commit=$(COMMIT)' -o $(RAMP) ./cmd/ramp

demo: build
	@$(RAMP) demo

# What takes minutes, and is left to 'make long'.
MINUTES := ^(TestKillMatrix|TestKilledAtEveryStepOfThreeUnits|TestEachOfThreeProcessesIsKilledOnce|TestDiskFull|TestHonestTradeBesideAttacks|TestMutantsOfFederationsAreFound)$$

# Many tests wait for processes more than they compute: more packages than processors, and the
# longest one first. Go prints in order.
test:
	@echo 'testing: the first line comes once the scripts of cmd/ramp are done, after some minutes'
	$(GO) test -p $$(($$(getconf _NPROCESSORS_ONLN) * 3 / 2)) -timeout 60m -skip '$(MINUTES)' ./cmd/ramp ./...

long:
	$(GO) test -timeout 60m -run '$(MINUTES)' ./cmd/ramp ./agents/sim/market ./agents/sim/mutants
	$(GO) test -timeout 60m -run '^TestNoSeed' ./agents/sim/market -seeds 200

# Every process of the race detector would wait a second at its end for others that
# report, and there are thousands. A simulated market lives in one goroutine: the long
# ones are left to 'make test'.
LONG := TestHonestPartiesLoseNothing$$|OfSharpenedSellers$$|TestAnOutageOfTwoHours|TestABankThatIsAway
race:
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=20 $(GO) test -race -short -timeout 20m -skip '$(LONG)' ./...

lint:
	.ci/lint

# Every fuzz target for FUZZTIME.
fuzz:
	.ci/fuzz $(FUZZTIME)

# The figures of docs/PERFORMANCE.md. They measure; tests check.
bench: build
	$(RAMP) bench auction --sellers 20 --rounds 3,5 --buyers 1,4,16
	$(RAMP) bench bank --clients 1,64,256 --dir .
	$(RAMP) bench stage --size 256 --runs 5
	$(RAMP) bench english

# The commit protocol, checked by spin with up to three sellers.
model:
	.ci/model

# Every mistake put into the program on purpose must be found within 500 seeds.
mutants:
	$(GO) test ./agents/sim/mutants -count 1 -timeout 0 -v -run "Found|Harm" -hunt

# Hostile markets, seed by seed, until one breaks or it is interrupted.
SOAK_FROM ?= 1
soak: build mutants soak-bank
	$(RAMP) sim explore --faults heavy --resources 5 --users 4 --rate 12 --exchanges 6 --days 0.25 --seeds $(SOAK_FROM)-1000000000

# A million random operations per policy, and on exchanges, on the ledger and its models; every bit of
# every byte of a bank's file flipped, the file truncated, torn, its pages and rows exchanged.
soak-bank:
	$(GO) test -count=1 -timeout 4h -run 'TestModel|TestJobs|TestIncomes|TestExchanges' ./bank/ledger -rapid.checks=5000
	RAMP_FLIPS=all $(GO) test -count=1 -v -timeout 4h -run 'TestEveryByteThat|TestEveryTampered' ./bank/ledgerdb

# The commands of the documents that 'make test' leaves out because they take minutes.
docs:
	RAMP_TEST_SLOW=1 $(GO) test -count=1 -v -timeout 20m -run TestTheCommandsOfTheDocuments ./cmd/ramp

# Real processes behind a WAN, broken for a quarter of an hour; needs root.
soak-real: build
	@$(RAMP) soak-real --minutes 15 --resources 10 --users 5

# The driver against a real Slurm, and the bank on a real etcd; both started here.
test-slurm:
	.ci/slurm

test-etcd:
	.ci/etcd

# Newcomers trade behind NAT, in network namespaces; needs root.
test-nat: build
	RAMP_TEST_NAT=$(CURDIR)/$(RAMP) $(GO) test -count=1 -timeout 5m -v ./agents/sim/nat

# The pages in a real Chromium, which this installs as root if it is missing.
test-web: build
	@.ci/web

# Twenty real clusters in twenty network namespaces trade with three users for ten
# minutes; needs root and what test-slurm installs.
bench-slurm:
	RAMP_TEST_SLURM=1 RAMP_SLURM_CLUSTERS=20 RAMP_SLURM_TIME=10m $(GO) test -count=1 -timeout 30m -v -run TestSlurmMarket ./cmd/ramp

# A bank beside double-entry transfers in PostgreSQL, on the disk of DIR; needs Debian's
# postgresql, which it installs as root if it is missing.
bench-postgres: build
	@.ci/postgres

# A .deb and a .tar.gz in dist, the same bytes every time.
package:
	.packaging/build dist

# Builds them twice, compares, installs and runs.
check-package:
	.packaging/check

clean:
	rm -rf bin dist
