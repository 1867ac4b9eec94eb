package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	mdast "github.com/yuin/goldmark/ast"
	"mvdan.cc/sh/v3/syntax"
	"sigs.k8s.io/yaml"

	"persia/internal/skiptest"
)

// gcloudCommand is a command that somebody is told to run.
type gcloudCommand struct {
	where string
	// args come after gcloud.
	args []string
	// mention is a command without flags in a sentence, which may lack required ones.
	mention bool
}

// TestGcloudCommands makes the real gcloud parse, but not run, every command of the pages, of the
// program's messages and of the workflows.
func TestGcloudCommands(t *testing.T) {
	commands := slices.Concat(pageCommands(t), messageCommands(t), workflowCommands(t))
	assert.Greater(t, len(commands), 60)
	complaints := parseWithGcloud(t, commands)
	for i, complaint := range complaints {
		switch {
		case complaint == nil:
		case commands[i].mention && (complaint[0] == "RequiredError" || complaint[0] == "Incomplete"):
		// The reader writes the file first.
		case strings.Contains(complaint[1], "Unable to read file"):
		default:
			t.Errorf("%s: gcloud %s: %s", commands[i].where, strings.Join(commands[i].args, " "), complaint[1])
		}
	}
}

// TestGcloudParses checks the parser with right and wrong commands.
func TestGcloudParses(t *testing.T) {
	cases := map[string]string{
		"gcloud projects list": "",
		"gcloud container clusters get-credentials a --location us-central1 --dns-endpoint": "",
		"gcloud container clusters get-credentials a --dns-endpiont":                        "UnrecognizedArgumentsError",
		"gcloud container clusters get-credentials":                                         "RequiredError",
		"gcloud container clusters get-credentials a b":                                     "UnrecognizedArgumentsError",
		"gcloud container cluster list":                                                     "UnknownCommand",
		"gcloud compute disks":                                                              "Incomplete",
		"gcloud kms keys create a --keyring=b --location=c --purpose=hashing":               "UnknownCommandError",
	}
	var commands []gcloudCommand
	var want []string
	for line, kind := range cases {
		commands, want = append(commands, shellCommands(t, line, line)...), append(want, kind)
	}
	for i, complaint := range parseWithGcloud(t, commands) {
		got := ""
		if complaint != nil {
			got = complaint[0]
		}
		assert.Equal(t, want[i], got, "%v: %v", commands[i].args, complaint)
	}
}

// placeholder is a word in capitals that the reader replaces with a value. gcloud wants a project to
// look like one.
var placeholder = regexp.MustCompile(`\b[A-Z][A-Z_]+\b`)

// parseWithGcloud returns the error of each command, with its kind, or nil.
func parseWithGcloud(t *testing.T, commands []gcloudCommand) [][]string {
	t.Helper()
	if _, err := exec.LookPath("gcloud"); err != nil {
		skiptest.Skip(t, "gcloud is not on the PATH: its commands were not parsed")
	}
	environment := append(os.Environ(), "CLOUDSDK_CONFIG="+t.TempDir(), "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=true", "PYTHONDONTWRITEBYTECODE=1")
	info := exec.CommandContext(t.Context(), "gcloud", "info", "--format=value[separator='|'](basic.python_location,installation.sdk_root)")
	info.Env = environment
	text, err := info.Output()
	require.NoError(t, err)
	python, sdk, found := strings.Cut(strings.TrimSpace(string(text)), "|")
	require.True(t, found, "gcloud info: %s", text)

	lines := make([][]string, len(commands))
	for i, command := range commands {
		for _, arg := range command.args {
			lines[i] = append(lines[i], placeholder.ReplaceAllStringFunc(arg, func(name string) string {
				return "my-" + strings.ToLower(strings.ReplaceAll(name, "_", "-"))
			}))
		}
	}
	input, err := json.Marshal(lines)
	require.NoError(t, err)
	parse := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "gcloud.py"), sdk)
	parse.Env, parse.Stdin = environment, bytes.NewReader(input)
	var stderr bytes.Buffer
	parse.Stderr = &stderr
	output, err := parse.Output()
	require.NoError(t, err, stderr.String())
	var complaints [][]string
	require.NoError(t, json.Unmarshal(output, &complaints), string(output))
	require.Len(t, complaints, len(commands))
	return complaints
}

// pageCommands returns the commands of the pages, in blocks and in sentences.
func pageCommands(t *testing.T) []gcloudCommand {
	t.Helper()
	var commands []gcloudCommand
	for _, name := range pageFiles(t) {
		p := readPage(t, name)
		p.walk(func(node mdast.Node) {
			if block, ok := p.code(node); ok {
				for i, line := range strings.Split(joinLines(block.text), "\n") {
					commands = append(commands, shellCommands(t, fmt.Sprintf("%s:%d", name, block.line+i), line)...)
				}
			}
			if span, ok := node.(*mdast.CodeSpan); ok {
				commands = append(commands, mentions(t, fmt.Sprintf("%s:%d", name, p.line(node)), p.text(span))...)
			}
		})
	}
	return commands
}

// joinLines joins the lines of a command that continues over several lines.
func joinLines(text string) string {
	joined, ends := "", 0
	for line := range strings.Lines(text) {
		if bare, goesOn := strings.CutSuffix(strings.TrimRight(line, "\n"), `\`); goesOn {
			joined, ends = joined+bare, ends+1
			continue
		}
		joined, ends = joined+line+strings.Repeat("\n", ends), 0
	}
	return joined
}

// mentions are commands in a sentence. One without a flag may leave out what gcloud
// requires.
func mentions(t *testing.T, where, text string) []gcloudCommand {
	t.Helper()
	commands := shellCommands(t, where, text)
	for i := range commands {
		commands[i].mention = !slices.ContainsFunc(commands[i].args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
	}
	return commands
}

// quoted is a command in a message: in backquotes, or from a colon or the beginning
// to the end.
var quoted = regexp.MustCompile("`(gcloud [^`]+)`|(?:^|: )(gcloud [a-z]+ [^,;`]+)")

// messageCommands returns the commands in the texts of the program's code.
func messageCommands(t *testing.T) []gcloudCommand {
	t.Helper()
	var commands []gcloudCommand
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && entry.IsDir() && slices.Contains(notPages, entry.Name()) {
				return fs.SkipDir
			}
			return err
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			for _, match := range quoted.FindAllStringSubmatch(text, -1) {
				if command := match[1] + match[2]; !strings.Contains(command, "gcloud gave") && !strings.Contains(command, "gcloud is") && !strings.Contains(command, "gcloud does") {
					// A value of a format is any word.
					commands = append(commands, mentions(t, files.Position(literal.Pos()).String(), strings.ReplaceAll(command, "%s", "VALUE"))...)
				}
			}
			return true
		})
		return nil
	}))
	return commands
}

// workflowCommands returns the commands in the steps of the workflows and actions.
func workflowCommands(t *testing.T) []gcloudCommand {
	t.Helper()
	var commands []gcloudCommand
	for _, pattern := range []string{"workflows/*.yaml", "actions/*/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join(root, ".github", pattern))
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			var tree any
			require.NoError(t, yaml.Unmarshal(text, &tree))
			for _, script := range scripts(tree) {
				commands = append(commands, shellCommands(t, path, script)...)
			}
		}
	}
	return commands
}

// scripts are the texts of all run keys.
func scripts(tree any) []string {
	var found []string
	switch tree := tree.(type) {
	case []any:
		for _, value := range tree {
			found = append(found, scripts(value)...)
		}
	case map[string]any:
		for key, value := range tree {
			if script, ok := value.(string); ok && key == "run" {
				found = append(found, script)
			}
			found = append(found, scripts(value)...)
		}
	}
	return found
}

// shellCommands are the calls of gcloud in a script. What is no script has none.
func shellCommands(t *testing.T, where, script string) []gcloudCommand {
	t.Helper()
	if !strings.Contains(script, "gcloud ") {
		return nil
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(script), where)
	if err != nil {
		// A loop over several lines comes line by line.
		file, err = syntax.NewParser().Parse(strings.NewReader(strings.TrimPrefix(strings.TrimSpace(script), "do ")), where)
		require.NoError(t, err, script)
	}
	var commands []gcloudCommand
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok && len(call.Args) > 1 && word(call.Args[0]) == "gcloud" {
			command := gcloudCommand{where: where}
			for _, argument := range call.Args[1:] {
				command.args = append(command.args, word(argument))
			}
			commands = append(commands, command)
		}
		return true
	})
	return commands
}

// word is a word of a script, with names in the place of values.
func word(w *syntax.Word) string {
	var text strings.Builder
	syntax.Walk(w, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Lit:
			text.WriteString(strings.ReplaceAll(node.Value, `\`, ""))
		case *syntax.SglQuoted:
			text.WriteString(node.Value)
		case *syntax.ParamExp:
			text.WriteString(node.Param.Value)
			return false
		case *syntax.CmdSubst:
			text.WriteString("VALUE")
			return false
		}
		return true
	})
	return text.String()
}
