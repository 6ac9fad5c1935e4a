package agent_test

import (
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/tegmen-dev/tegmen/agent"
)

// A Shell's replies and errors become text for a model only at the edge.
func ExampleReply_Text() {
	fmt.Println(agent.Reply{Output: "no such file", ExitCode: 2}.Text(nil))
	fmt.Println(agent.Reply{Output: "step 1"}.Text(&agent.TimeoutError{After: 2 * time.Second}))
	// Output:
	// exit 2
	// no such file
	// timed out after 2s (sandbox removed)
	// step 1
}

// The inputs of the tools are the arguments that a model sends.
func ExampleMode() {
	var in agent.WriteInput
	err := json.Unmarshal([]byte(`{"path": "run.sh", "content": "#!/bin/sh\n", "mode": "0755"}`), &in)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %o\n", in.Path, in.Mode)

	err = json.Unmarshal([]byte(`{"path": "run.sh", "mode": "rwx"}`), &in)
	fmt.Println(err)
	// Output:
	// run.sh 755
	// invalid: mode rwx: write a string of octal digits, "0755"
}
