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

// Node starts code in JavaScript, with node, which is looked up in the
// sandbox's PATH; from Node 18 on. args are process.argv.slice(2).
func Node(args []string) Launch {
	// The name is what the bootstrap knows its own stack frames by. Node's own
	// parser is internal, so it has to be asked to expose that.
	boot := "(() => {\n'use strict';\n" + nodeChannel + nodeValues + nodeTools + nodeSource + nodeBoot + "})();\n//# sourceURL=tegmen:guest\n"
	return Launch{Argv: append([]string{"node", "--expose-internals", "-e", boot, "--"}, args...), Hello: true}
}
