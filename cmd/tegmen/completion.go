package main

import (
	"flag"
	"fmt"
	"strings"
)

// completionMain prints a script from the same tables that parse commands and
// flags, so it cannot be out of date.
func completionMain(args []string) (int, error) {
	if len(args) == 1 && noArguments("completion", args) == errHelp {
		return 0, errHelp
	}
	if len(args) != 1 {
		return 0, fmt.Errorf("completion: want one of bash, zsh, fish")
	}
	var names, flags []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	new(options).flagSet("run").VisitAll(func(f *flag.Flag) {
		flags = append(flags, dashed(f.Name))
	})
	cmds, opts := strings.Join(names, " "), strings.Join(flags, " ")
	switch args[0] {
	case "bash", "zsh":
		if args[0] == "zsh" {
			fmt.Println("autoload -U +X bashcompinit && bashcompinit")
		}
		fmt.Printf(`_tegmen() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "%s" -- "$cur"))
	elif [ "${cur#-}" != "$cur" ]; then
		COMPREPLY=($(compgen -W "%s" -- "$cur"))
	else
		COMPREPLY=($(compgen -c -f -- "$cur"))
	fi
}
complete -F _tegmen tegmen
`, cmds, opts)
	case "fish":
		fmt.Printf("complete -c tegmen -n __fish_use_subcommand -f -a %q\n", cmds)
		for _, f := range flags {
			kind := "-l"
			if !strings.HasPrefix(f, "--") {
				kind = "-s"
			}
			fmt.Printf("complete -c tegmen -n '__fish_seen_subcommand_from run plan' %s %s\n", kind, strings.TrimLeft(f, "-"))
		}
	default:
		return 0, fmt.Errorf("completion: %q is not one of bash, zsh, fish", args[0])
	}
	return 0, nil
}
