// Package engine runs code that nobody has read yet, in a sandbox built
// only on kernel features: no daemon, no VM, no setuid helper.
//
// A [Spec] says what is wanted. [Compile] decides, from it and from what the
// [Host] can do, a [Plan], and touches nothing. An [Engine] starts plans as
// [Sandbox]es, in which [Cmd]s run in the manner of os/exec, and each ends in
// a [Result]:
//
//	eng, err := engine.Open(engine.Options{})
//	if err != nil {
//		return err
//	}
//	defer eng.Close()
//	box, err := eng.Start(ctx, engine.Spec{})
//	if err != nil {
//		return err
//	}
//	defer box.Close()
//	res, err := box.CommandContext(ctx, "python3", "-c", "print(6*7)").Run()
//
// The zero Spec is the tightest sandbox: no network, no files of the host but
// its system directories, nothing writable but a private /tmp and /workspace,
// no environment, every limit finite. Each field that is set opens one thing.
//
// [RunCode], [Sandbox.RunCode] and [Session] run pieces of code in Python, Node and
// shell, which call functions of the host by a [broker.Set] and return a value.
//
// A program going wrong is a Result; the engine going wrong is an error. When
// a Sandbox is closed, or the host process dies in any way, everything inside
// dies with it.
//
// Linux 5.14 or later, amd64 and arm64, as root or as a user who may create
// user namespaces; macOS, where a Seatbelt profile confines what runs, and
// [Plan.Dropped] lists what is weaker. Elsewhere the package builds, and Open says
// what is missing. See [Level]. [Open] says what an engine does to the process that
// it is in.
package engine
