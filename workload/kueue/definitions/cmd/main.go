// Command cmd writes the definitions of Kueue from its Go module.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"persia/workload/kueue/definitions"
)

// toolchain is the folder of the go.mod that names Kueue's version, from where go generate runs.
const toolchain = "../../../sandbox/toolchain/kueue"

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write() error {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue")
	list.Dir, list.Stderr = toolchain, os.Stderr
	module, err := list.Output()
	if err != nil {
		return err
	}
	text, err := definitions.Generate(os.DirFS(strings.TrimSpace(string(module))))
	if err != nil {
		return err
	}
	return os.WriteFile("definitions.json", text, 0o644)
}
