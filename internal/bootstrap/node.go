package bootstrap

import _ "embed"

var (
	//go:embed node/channel.js
	nodeChannel string
	//go:embed node/values.js
	nodeValues string
	//go:embed node/tools.js
	nodeTools string
	//go:embed node/source.js
	nodeSource string
	//go:embed node/boot.js
	nodeBoot string
)

// Node starts JavaScript with the node in the sandbox's PATH, version 18 or later. args
// become process.argv.slice(2).
func Node(args []string) Launch {
	sources := nodeChannel + nodeValues + nodeTools + nodeSource + nodeBoot
	// The bootstrap recognizes its own stack frames by sourceURL. --expose-internals
	// makes Node's own parser available.
	boot := "(() => {\n'use strict';\n" + sources + "})();\n//# sourceURL=tegmen:guest\n"
	return Launch{Argv: append([]string{"node", "--expose-internals", "-e", boot, "--"}, args...), Hello: true}
}
