// Package agent gives a language model hands in one sandbox: six tools with
// typed input and text for an answer, and a shell that restarts.
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
// Everything is done inside, as the sandbox's user, by programs that any Linux
// file tree has: a POSIX sh with head, cat, mkdir, mv, rm, chmod, stat and
// readlink, those of busybox included. No path is ever opened on the host, so a
// symbolic link leads nowhere that the sandbox itself cannot go, and what a file
// tool reports is worth as much as any other word of the guest. Paths reach the
// programs as arguments, never as text of a script.
//
// Some paths of a workspace are protected: names such as .git/hooks, .vscode and
// .npmrc, which programs outside would obey, are read-only, also where nothing
// is yet. ListFiles leaves out what only keeps such a name free, though a command
// sees it.
//
// An error of a tool is a sentence that a model can act on. A program that
// fails is no error: its answer says how it ended.
package agent
