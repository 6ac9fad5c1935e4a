# Each target is a command that a reader could type.
GO ?= go

## build: the command, static and small, into bin/
.PHONY: build
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/tegmen ./cmd/tegmen

## test: everything, as the calling user; installs what the tests use
.PHONY: test
test: deps
	TEGMEN_TEST_REQUIRE=$(REQUIRE) $(GO) test $(TAGS) -p 1 -timeout 15m ./...

## test-macos: what only a Mac can show; README and test/mac say what has to be there and what it prints
.PHONY: test-macos
test-macos:
	TEGMEN_TEST_REQUIRE=seatbelt,python3,node,sh,bash $(GO) test -count 1 -v ./test/mac
	$(GO) test ./seatbelt ./engine ./broker ./guest ./check ./internal/...

# With libseccomp there, user-supplied policies are tested as well.
TAGS = $$(pkg-config --exists libseccomp 2>/dev/null && echo -tags libseccomp)

# What must be there on a machine that is set up: no test is skipped for want of it.
REQUIRE = userns,landlock,libseccomp,go,mount,python3,node,sh,bash,bwrap,unshare,gcc,make,git,sqlite3,curl,ssh-keygen,openssl,perl,tmux,jq,zip,unzip,busybox,script,setpriv,stress-ng,trinity,man,lscpu,screen,git-lfs,php,Rscript,identify,pdflatex,chromium

## deps: programs that tests run inside sandboxes or measure against (Debian)
.PHONY: deps
deps:
	@./test/deps.sh

## vm: tests inside emulated machines with Debian's kernels, which have cgroup v2 alone
KERNELS = 6.1 6.12
.PHONY: vm
vm:
	./test/deps.sh qemu-system-x86_64:qemu-system-x86 qemu-system-aarch64:qemu-system-arm busctl:systemd dbus-daemon:dbus /usr/lib/systemd/user/dbus.socket:dbus-user-session
	$(GO) run ./internal/vmtest -kernels '$(KERNELS)'
	$(GO) run ./internal/vmtest -kernels 6.12 -arch arm64

## race: tests with the race detector; those that it has nothing to find in skip themselves
.PHONY: race
race:
	CGO_ENABLED=1 $(GO) test -race -p 1 -timeout 15m ./agent ./broker ./cgroup ./engine ./guest ./internal/holdback ./internal/launch ./internal/lines ./internal/setup ./internal/wire ./internal/box \
		./ns ./rootfs ./workspace ./test/engine ./test/workspace ./test/attack ./test/conformance ./test/mac

## compat: CPython's own tests and real work, inside and outside; prints a table
.PHONY: compat
compat: deps
	TEGMEN_TEST_ALL=1 TEGMEN_TEST_REQUIRE=$(REQUIRE) $(GO) test -timeout 20m -v ./test/compat

## stress: stress-ng and trinity do their worst inside, for minutes
STRESS_TIME = 2m
.PHONY: stress
stress: deps
	TEGMEN_TEST_REQUIRE=$(REQUIRE) $(GO) test -timeout 30m -v -run TestStress ./test/attack -args -stress-time $(STRESS_TIME)

## bench: measurements against peers in the same run; prints a table
.PHONY: bench
bench: deps
	mkdir -p bin
	$(GO) test -run '^$$' -bench Table -benchtime 1x -timeout 20m ./test/bench -args -table $(CURDIR)/bin/bench.md
	@cat bin/bench.md

## cross: the code and the tests build on all that is supported
.PHONY: cross
cross:
	for os in linux darwin; do for arch in amd64 arm64; do \
		echo "$$os/$$arch" && CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) vet ./... || exit 1; done; done
	CGO_ENABLED=1 $(GO) vet $(TAGS) ./...
	for os in windows freebsd; do echo "$$os/amd64" && CGO_ENABLED=0 GOOS=$$os GOARCH=amd64 $(GO) build ./... || exit 1; done

## lint: formatting and vet
.PHONY: lint
lint:
	test -z "$$(gofmt -l .)"
	$(GO) vet ./...

## metrics: lengths, lines, comments, tests : code, cycles; COVERAGE=off|print|check runs three packages' tests as well
COVERAGE = print
.PHONY: metrics
metrics:
	$(GO) run ./internal/metrics -coverage $(COVERAGE)

## apidiff: what changed in the public packages since BASE (the merge base with origin/main, or the commit before)
.PHONY: apidiff
apidiff:
	.ci/apidiff $(BASE)

## golden: rewrite the golden files, to be reviewed
.PHONY: golden
golden:
	$(GO) test -run Golden . ./engine ./internal/setup ./seccomp ./test/attack -update
	$(GO) test -run TestScripts ./cmd/tegmen -update

## generate: compile the built-in seccomp profiles again (needs libseccomp-dev)
.PHONY: generate
generate:
	CGO_ENABLED=1 $(GO) generate ./seccomp

## fuzz: each fuzz target for half a minute
.PHONY: fuzz
fuzz:
	$(GO) test ./internal/lines -fuzz FuzzLines -fuzztime 30s
	$(GO) test ./internal/sample -fuzz FuzzParse -fuzztime 30s
	$(GO) test ./internal/wire -fuzz FuzzDialogue -fuzztime 30s
	$(GO) test ./cmd/tegmen -fuzz FuzzFlags -fuzztime 30s
	$(GO) test ./cmd/tegmen -fuzz FuzzTools -fuzztime 30s
	$(GO) test $(TAGS) ./seccomp -fuzz FuzzParse -fuzztime 30s
	$(GO) test ./seccomp -fuzz FuzzLower -fuzztime 30s
	$(GO) test ./workspace -fuzz FuzzLayers -fuzztime 30s

.PHONY: help
help:
	@sed -n 's/^## //p' Makefile
