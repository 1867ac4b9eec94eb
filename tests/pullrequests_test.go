package tests

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// recorder is gcloud, gh, and pulumi: it records its arguments and input, and answers. If EXISTS is empty, nothing exists.
const recorder = `#!/bin/bash
[[ $* =~ condition-from-file=([^ ]*) ]] && file=${BASH_REMATCH[1]}
{ text="$*"; echo "${0##*/} ${text/"$file"/FILE}"; while IFS= read -r line; do echo "    $line"; done < "${file:-/dev/stdin}"; } >> "$CALLS"
case "$*" in
*projectNumber*) echo 123 ;;
"api repos/"*) echo 456 ;;
"api users/"*) echo 789 ;;
"config get "*) echo persia ;;
*" describe "* | *" select "*) [ "$EXISTS" ] ;;
esac
`

// TestSetUpPullRequests: the script grants what a table of docs/guides/pull-requests.md has, and creates nothing twice.
func TestSetUpPullRequests(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"gcloud", "gh", "pulumi"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(recorder), 0o755))
	}
	run := func(exists string) string {
		calls := filepath.Join(folder, "calls"+exists)
		command := exec.Command("../scripts/set-up-pull-requests.sh")
		command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "CALLS="+calls, "EXISTS="+exists, "PROJECT=my-project",
			"REGION=us-central1", "BUCKET=state", "REPOSITORY=me/persia", "STACKS=dev", "APPROVER=somebody")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return testkit.Read(t, calls)
	}
	called := run("")
	assert.Equal(t, testkit.ReadGolden(t, "set-up-pull-requests.txt", called), called)
	assert.NotRegexp(t, `(?m)^(gcloud .*\bcreate|pulumi stack init)`, run("all"))

	var promised, granted []string
	for _, grant := range regexp.MustCompile(`(persia-(?:preview|deploy))@.*--role=roles/(\S+)`).FindAllStringSubmatch(called, -1) {
		granted = append(granted, grant[1]+": "+grant[2])
	}
	_, table, _ := strings.Cut(readText(t, "docs/guides/pull-requests.md"), "### The two accounts\n")
	account := ""
	for _, row := range regexp.MustCompile("(?m)^\\| (?:`(persia-.*)` )?\\| (.*) \\| ").FindAllStringSubmatch(table, -1) {
		account = cmp.Or(row[1], account)
		for _, role := range regexp.MustCompile("`([a-z][\\w.]+)`").FindAllStringSubmatch(row[2], -1) {
			promised = append(promised, account+": "+role[1])
		}
	}
	assert.ElementsMatch(t, promised, granted)
}
