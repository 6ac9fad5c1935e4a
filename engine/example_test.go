package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tegmen-dev/tegmen/engine"
)

// A command in a sandbox.
func Example() {
	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	box, err := eng.Start(ctx, engine.Spec{Limits: engine.Limits{Wall: 10 * time.Second}})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	res, err := box.CommandContext(ctx, "python3", "-c", "print(6*7)").Run()
	if err != nil {
		log.Fatal(err) // it could not be started
	}
	fmt.Printf("%s %s", res.Outcome, res.Stdout)
	// Output: ok 42
}

// Output that is read while the command runs.
func ExampleCmd_StdoutPipe() {
	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	box, err := eng.Start(ctx, engine.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	cmd := box.CommandContext(ctx, "sh", "-c", "for i in 1 2 3; do echo line $i; done")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		fmt.Println("got", lines.Text())
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
	res, err := cmd.Wait() // after the end of the output
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Outcome)
	// Output:
	// got line 1
	// got line 2
	// got line 3
	// ok
}

// A command that takes too long. Spec.Keep lets the sandbox live on.
func Example_timeout() {
	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	box, err := eng.Start(ctx, engine.Spec{Keep: true})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	cmd := box.CommandContext(ctx, "sh", "-c", "echo begun; sleep 60")
	cmd.Wall = 300 * time.Millisecond
	res, err := cmd.Run()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s", res.Outcome, res.Stdout)

	_, err = box.CommandContext(ctx, "sh", "-c", "exit 3").Output()
	var failed *engine.OutcomeError
	if errors.As(err, &failed) {
		fmt.Println(failed.Result.Outcome, failed.Result.ExitCode)
	}
	// Output:
	// timeout: begun
	// exit 3
}

// A limit that is reached: the Result says which one.
func Example_limits() {
	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	box, err := eng.Start(ctx, engine.Spec{Limits: engine.Limits{
		Memory: 64 * engine.MiB,
		Pids:   32,
		Tmp:    engine.MiB,
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	res, err := box.CommandContext(ctx, "sh", "-c", "head -c 2M /dev/zero >/tmp/file").Run()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Outcome, res.ExitCode)
	for _, e := range res.Events {
		fmt.Println(e.Limit, e.Detail)
	}

	res, err = box.CommandContext(ctx, "python3", "-c", "l = []\nwhile True: l.append(b'x' * 100_000)").Run()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Outcome)
	// Output:
	// exit 1
	// tmp /tmp is full
	// oom
}

// A program that may execute nothing else, with a list of what it was refused.
func Example_seccomp() {
	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()
	box, err := eng.Start(ctx, engine.Spec{Seccomp: engine.Seccomp{
		Profile: "strict", // no sockets
		NoExec:  true,
		Audit:   true,
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()

	res, err := box.CommandContext(ctx, "python3", "-c", `
import os, socket
for attempt in (lambda: socket.socket(), lambda: os.execv("/bin/true", ["true"])):
    try:
        attempt()
    except PermissionError as e:
        print(e)
`).Run()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", res.Stdout)
	for _, r := range res.Refused {
		fmt.Println(r.Call, r.Action)
	}
	// Output:
	// [Errno 1] Operation not permitted
	// [Errno 1] Operation not permitted
	// socket EPERM
}

// Many sandboxes at once, from one engine.
func Example_many() {
	ctx := context.Background()
	eng, err := engine.Open(engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close()

	type answer struct {
		sum int
		err error
	}
	answers := make(chan answer)
	for i := range 10 {
		go func() {
			var a answer
			code := engine.Code{Language: "python", Source: "n * n", Vars: map[string]any{"n": i}}
			res, err := eng.RunCode(ctx, engine.Spec{}, code, nil) // in a sandbox of its own
			if err == nil {
				err = res.Decode(&a.sum)
			}
			a.err = err
			answers <- a
		}()
	}
	sum := 0
	for range 10 {
		a := <-answers
		if a.err != nil {
			log.Fatal(a.err)
		}
		sum += a.sum
	}
	fmt.Println(sum)
	// Output: 285
}
