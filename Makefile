# What people need: demo and test. Everything else is for developers.
GO ?= go
RAMP := bin/ramp
FUZZTIME ?= 30s

.PHONY: all demo test race lint fuzz bench clean build

all: build

build:
	$(GO) build -trimpath -o $(RAMP) ./cmd/ramp

demo: build
	@$(RAMP) demo

test:
	$(GO) test ./...

race:
	$(GO) test -race -short ./...

lint:
	.ci/lint

# Every fuzz target for FUZZTIME.
fuzz:
	.ci/fuzz $(FUZZTIME)

# The figures of docs/PERFORMANCE.md. They measure; tests check.
bench: build
	$(RAMP) bench auction --sellers 20 --rounds 3,5 --buyers 1,4,16
	$(RAMP) bench bank --clients 1,64,256 --dir .

clean:
	rm -rf bin
