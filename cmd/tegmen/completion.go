package main

import (
	"flag"
	"fmt"
	"strings"
)

// completionMain prints a script made from the tables that parse commands and flags, so
// it is never out of date.
func completionMain(args []string) (int, error) {
	if len(args) == 1 && noArguments("completion", args) == errHelp {
		return 0, errHelp
	}
	if len(args) != 1 {
		return 0, fmt.Errorf("completion: name a shell: bash, zsh or fish")
	}
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	cmds := strings.Join(names, " ")
	switch args[0] {
	case "bash", "zsh":
		if args[0] == "zsh" {
			fmt.Println("autoload -U +X bashcompinit && bashcompinit")
		}
		fmt.Print(`_tegmen() {
	local cur=${COMP_WORDS[COMP_CWORD]} flags=
	case ${COMP_WORDS[1]} in
`)
		for _, c := range sandboxing {
			fmt.Printf("\t%s) flags=\"%s\" ;;\n", c, strings.Join(flagsOf(c), " "))
		}
		fmt.Printf(`	esac
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "%s" -- "$cur"))
	elif [ "${cur#-}" != "$cur" ]; then
		COMPREPLY=($(compgen -W "$flags" -- "$cur"))
	else
		COMPREPLY=($(compgen -c -f -- "$cur"))
	fi
}
complete -F _tegmen tegmen
`, cmds)
	case "fish":
		fmt.Printf("complete -c tegmen -n __fish_use_subcommand -f -a %q\n", cmds)
		for _, c := range sandboxing {
			for _, f := range flagsOf(c) {
				kind := "-l"
				if !strings.HasPrefix(f, "--") {
					kind = "-s"
				}
				fmt.Printf("complete -c tegmen -n '__fish_seen_subcommand_from %s' %s %s\n", c, kind, strings.TrimLeft(f, "-"))
			}
		}
	default:
		return 0, fmt.Errorf("completion: unknown shell %q: use bash, zsh or fish", args[0])
	}
	return 0, nil
}

// sandboxing are the commands that make a sandbox.
var sandboxing = []string{"run", "code", "shell", "plan"}

func flagsOf(command string) (flags []string) {
	new(options).flagSet(command).VisitAll(func(f *flag.Flag) {
		flags = append(flags, dashed(f.Name))
	})
	return flags
}
