package docs

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark/ast"
)

// repository has the names that pages may mention.
type repository struct {
	// targets are the Makefile's targets, and directories the directories at the root.
	targets, directories map[string]bool
	reference            *reference
	// pages are the pages that links have led to.
	pages map[string]*page
}

var target = regexp.MustCompile(`(?m)^([\w.-]+(?: [\w.-]+)*):(?:[^=]|$)`)

func readRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{targets: map[string]bool{}, directories: map[string]bool{}, pages: map[string]*page{}}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for _, match := range target.FindAllStringSubmatch(string(makefile), -1) {
		for _, name := range strings.Fields(match[1]) {
			r.targets[name] = true
		}
	}
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IsDir() && !slices.Contains(notPages, entry.Name()) {
			r.directories[entry.Name()] = true
		}
	}
	r.reference = readReference(t)
	return r
}

// check returns the problems of a page, with their places.
func (r *repository) check(p *page) []string {
	var problems []string
	p.walk(func(node ast.Node) {
		for _, found := range r.problemsOf(p, node) {
			problems = append(problems, fmt.Sprintf("%s:%d: %s", p.name, found.line, found.text))
		}
	})
	return problems
}

type problem struct {
	line int
	text string
}

func (r *repository) problemsOf(p *page, node ast.Node) []problem {
	var texts []string
	line := p.line(node)
	switch node := node.(type) {
	case *ast.Link:
		texts = r.checkLink(p, string(node.Destination))
	case *ast.Image:
		texts = r.checkLink(p, string(node.Destination))
	case *ast.CodeSpan:
		text := p.text(node)
		texts = slices.Concat(r.checkCommands(text), r.checkKey(text), r.checkPath(text))
	case *ast.Paragraph:
		return checkIndentation(p, node)
	default:
		code, ok := p.code(node)
		if !ok {
			return nil
		}
		texts = slices.Concat(checkLayout(code), r.checkCode(code))
	}
	var problems []problem
	for _, text := range texts {
		problems = append(problems, problem{line, text})
	}
	return problems
}

func (r *repository) checkLink(p *page, destination string) []string {
	to, err := url.Parse(destination)
	if err != nil {
		return []string{fmt.Sprintf("%s; correct the link", err)}
	}
	if to.Scheme != "" {
		return nil
	}
	name := p.name
	if to.Path != "" {
		name = filepath.Join(filepath.Dir(p.name), filepath.FromSlash(to.Path))
	}
	if !filepath.IsLocal(name) {
		return []string{fmt.Sprintf("%s is outside of the repository; link to what everybody has", destination)}
	}
	linked := p
	if to.Path != "" {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			return []string{fmt.Sprintf("there is no %s; correct the link", name)}
		}
		linked = r.page(name)
	}
	if to.Fragment == "" || filepath.Ext(name) != ".md" || linked.anchors[to.Fragment] {
		return nil
	}
	return []string{fmt.Sprintf("%s has no heading with the anchor #%s; correct the link", name, to.Fragment)}
}

// page returns a page, or an empty one if there is none.
func (r *repository) page(name string) *page {
	if known := r.pages[name]; known != nil {
		return known
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		text = nil // a directory
	}
	r.pages[name] = parsePage(name, text)
	return r.pages[name]
}

// checkLayout checks how a reader sees a block of code.
func checkLayout(code block) []string {
	switch {
	case code.fenced && code.language == "":
		return []string{"the code block has no language; write it after the fence, text for none"}
	case !code.fenced && !slices.ContainsFunc(strings.Split(code.text, "\n"), func(line string) bool {
		return line != "" && line[0] != ' ' && line[0] != '\t'
	}):
		return []string{"no line of the code block is at its margin; indent it by four"}
	}
	return nil
}

// checkIndentation looks for code that has become a part of the text before it.
func checkIndentation(p *page, paragraph *ast.Paragraph) []problem {
	if paragraph.Parent().Kind() != ast.KindDocument {
		return nil
	}
	var problems []problem
	first := p.line(paragraph)
	for i, line := range strings.Split(string(p.source), "\n")[first-1 : first-1+paragraph.Lines().Len()] {
		if strings.HasPrefix(line, "    ") {
			problems = append(problems, problem{first + i, "the line is indented like code and is none; put an empty line before it"})
		}
	}
	return problems
}

// noCommands are the languages of blocks that hold no commands.
var noCommands = []string{"mermaid", "yaml", "yml", "json", "go", "diff"}

func (r *repository) checkCode(code block) []string {
	if slices.Contains([]string{"yaml", "yml"}, code.language) || !code.fenced && looksLikeYAML(code.text) {
		return checkYAML(code.text)
	}
	if slices.Contains(noCommands, code.language) {
		return nil
	}
	return slices.Concat(r.checkCommands(code.text), r.checkKeysOf(code.text))
}

var (
	comment = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	making  = regexp.MustCompile(`(?m)(?:^|[\s;&|(])make(?: +(?:-[\w-]+|[A-Z_]+=\S+))* +([a-z][\w-]*)`)
	running = regexp.MustCompile(`(?m)(?:^ *|[;&|(] *|[A-Z_]+=\S+ )pulumi(?: +--?[\w-]+)* +([a-z][\w-]*)`)
)

// commands are the commands of Pulumi's CLI that a page may name.
var commands = []string{
	"about", "cancel", "config", "convert", "destroy", "env", "help", "import", "install", "login", "logout", "logs",
	"new", "org", "package", "plugin", "policy", "preview", "refresh", "schema", "stack", "state", "up", "version",
	"watch", "whoami",
}

func (r *repository) checkCommands(code string) []string {
	var problems []string
	code = comment.ReplaceAllString(code, "")
	for _, match := range making.FindAllStringSubmatch(code, -1) {
		if !r.targets[match[1]] {
			problems = append(problems, fmt.Sprintf("the Makefile has no target %s; correct the command", match[1]))
		}
	}
	for _, match := range running.FindAllStringSubmatch(code, -1) {
		if !slices.Contains(commands, match[1]) {
			problems = append(problems, fmt.Sprintf("pulumi has no command %s; correct it", match[1]))
		}
	}
	return problems
}

var pathLike = regexp.MustCompile(`^[\w.][\w./*-]*/[\w./*-]*$`)

// checkPath checks text that looks like a path below a directory of the root.
func (r *repository) checkPath(code string) []string {
	top, _, _ := strings.Cut(code, "/")
	if !pathLike.MatchString(code) || !r.directories[top] {
		return nil
	}
	if found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(code))); err != nil || len(found) == 0 {
		return []string{fmt.Sprintf("there is no %s; correct the path", code)}
	}
	return nil
}
