// Package wire serves a broker.Set to one guest over a stream: the host's end of the
// protocol in the comment of package broker. It knows nothing of sandboxes and works on
// any io.ReadWriteCloser, so a guest may as well sit behind a pipe or a network.
//
// A Link reads from the guest and answers; a Run is one job on it, with its tools and
// its limits. Nothing that a guest sends can make the host hold more than a few frames.
// What a call may do is decided by the Set alone: Lookup, Check and Invoke.
//
//	reader.go    one goroutine reads, and serves quick tools itself
//	request.go   parses a line once and answers all but calls; new methods go here
//	call.go      one call, from its request to its answer
//	inflight.go  the semaphore for calls
//	run.go       the state of a job
//	report.go    what is left of it
package wire
