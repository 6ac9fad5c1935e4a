// Package agent gives a language model tools in one sandbox: six tools with typed input
// and text as the answer, and a shell that restarts its sandbox.
//
//	box, err := eng.Start(ctx, engine.Spec{Keep: true})
//	if err != nil {
//		return err
//	}
//	defer box.Close()
//	tools, err := agent.Bind(ctx, box, agent.Options{})
//	if err != nil {
//		return err
//	}
//	text, err := tools.Shell(ctx, agent.ShellInput{Command: "ls | wc -l"})
//
// The tools work inside the sandbox, as its user, with programs that any Linux file tree
// has: a POSIX sh, head, cat, mkdir, mv, rm, chmod, stat and readlink; those of busybox
// will do. They never open a path on the host, so a symbolic link cannot lead out of the
// sandbox. Treat what a file tool reports like any other output of the guest. Paths
// reach the programs as arguments, never as text of a script.
//
// Some paths of a workspace are protected: names such as .git/hooks, .vscode and .npmrc,
// which programs outside would obey, are read-only even if they do not exist. A
// placeholder keeps such a name; ListFiles hides it, but commands can see it.
//
// The error of a tool is a sentence that a model can act on. A program that fails is not
// an error: the answer says how it ended.
package agent
