module github.com/tegmen-dev/tegmen

go 1.26.0

require (
	github.com/creack/pty v1.1.24
	github.com/google/jsonschema-go v0.4.3
	github.com/moby/profiles/seccomp v0.3.0
	github.com/rogpeppe/go-internal v1.16.0
	github.com/seccomp/libseccomp-golang v0.11.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/opencontainers/runtime-spec v1.2.1 // indirect
	golang.org/x/tools v0.26.0 // indirect
)
