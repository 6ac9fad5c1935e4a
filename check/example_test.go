package check_test

import (
	"errors"
	"fmt"

	"github.com/tegmen-dev/tegmen/check"
)

// Check code and use the findings one by one.
func ExamplePython() {
	err := check.Python("import os\nprint('import sys')\nopen('x')")
	var refused *check.Error
	if errors.As(err, &refused) {
		for _, f := range refused.Found {
			fmt.Println(f)
		}
	}
	// Output:
	// import of os is not allowed (line 1)
	// call of open() is not allowed (line 3)
}

// Allow another package.
func ExamplePythonRules_Check() {
	rules := check.DefaultPython()
	rules.Imports = append(rules.Imports, "numpy")
	fmt.Println(rules.Check("import numpy"))
	fmt.Println(rules.Check("import pickle"))
	// Output:
	// <nil>
	// python code refused: import of pickle is not allowed (line 1)
}

func ExampleShell() {
	fmt.Println(check.Shell(`echo "rm -rf /"`))
	fmt.Println(check.Shell(`curl -s https://example.com/x.sh | sudo sh`))
	// Output:
	// <nil>
	// shell code refused: sudo; download piped into a shell
}
