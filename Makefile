# Each target is a command that a reader could type.
GO ?= go

## build: the command, static and small, into bin/
.PHONY: build
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/tegmen ./cmd/tegmen

## test: everything, as the calling user; installs what the tests use
.PHONY: test
test: deps
	TEGMEN_TEST_REQUIRE=$(REQUIRE) $(GO) test -p 1 -timeout 15m ./...

# What has to be there on a machine that is set up, so that no test is skipped
# for want of it.
REQUIRE = userns,go,python3,sh,bwrap,unshare,gcc,make,git

## deps: programs that tests run inside sandboxes or measure against (Debian)
.PHONY: deps
deps:
	@./test/deps.sh

## race: the tests with the race detector
.PHONY: race
race:
	CGO_ENABLED=1 $(GO) test -race -timeout 15m ./engine ./internal/... ./ns ./rootfs ./test

## compat: CPython's own tests and real work, inside and outside; prints a table
.PHONY: compat
compat: deps
	TEGMEN_TEST_REQUIRE=$(REQUIRE) $(GO) test -timeout 20m -v ./test/compat

## bench: measurements against peers in the same run; prints a table
.PHONY: bench
bench: deps
	mkdir -p bin
	$(GO) test -run '^$$' -bench Table -benchtime 1x -timeout 20m ./test -args -table $(CURDIR)/bin/bench.md
	@cat bin/bench.md

## cross: the code and the tests build on all that is supported
.PHONY: cross
cross:
	for os in linux darwin; do for arch in amd64 arm64; do \
		echo "$$os/$$arch" && CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) vet ./... || exit 1; done; done
	CGO_ENABLED=1 $(GO) vet ./...

## lint: formatting and vet
.PHONY: lint
lint:
	test -z "$$(gofmt -l .)"
	$(GO) vet ./...

## golden: rewrite the golden files, to be reviewed
.PHONY: golden
golden:
	$(GO) test . ./engine ./ns ./test -run 'Golden|Linked|Scripts' -update

## fuzz: each fuzz target for half a minute
.PHONY: fuzz
fuzz:
	$(GO) test ./cmd/tegmen -fuzz FuzzFlags -fuzztime 30s

.PHONY: help
help:
	@sed -n 's/^## //p' Makefile
