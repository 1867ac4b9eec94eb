package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// look is how a text is shown: lines of at most so many characters, and colors.
type look struct {
	width int
	color bool
}

// lookOf returns the look of what a writer shows: a terminal has a width and colors, unless the user
// has set NO_COLOR, see https://no-color.org.
func lookOf(out io.Writer) look {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return look{width: width}
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil || columns < 40 {
		columns = width
	}
	return look{columns, os.Getenv("NO_COLOR") == ""}
}

// The colors of ANSI terminals.
const (
	red, green, yellow, bold = "31", "32", "33", "1"
)

func (l look) paint(color, text string) string {
	if !l.color || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// forTerminal returns what a preview would change, and below it, next to the prompt, what a reader should not miss:
// the tables, warnings, what happens to what runs, and the cost. With diff, it has each value that changes.
func forTerminal(p *preview, diff bool, l look) string {
	var text strings.Builder
	var changes []string
	for _, change := range p.changes {
		changes = append(changes, change.title()+"\n")
	}
	slices.Sort(changes)
	if diff {
		changes = slices.Collect(strings.Lines(p.diff()))
	}
	for _, line := range changes {
		color := map[string]string{"+": green, "-": red, "!": yellow}[line[:1]]
		text.WriteString(l.paint(color, strings.TrimSuffix(line, "\n")) + "\n")
	}
	if p.needs != "" {
		fmt.Fprintf(&text, "\n%s\n\n%s\n", l.paint(bold, needsTitle), p.needs)
	}
	for _, warning := range p.warnings {
		fmt.Fprintf(&text, "\n%s\n", l.paint(yellow, wrapped("warning: "+warning, l.width)))
	}
	if p.effects != "" {
		fmt.Fprintf(&text, "\n%s\n%s\n", l.paint(bold, effectsTitle), l.paint(red, wrapped(p.effects, l.width)))
	}
	fmt.Fprintf(&text, "\n%s\n", l.paint(bold, headline(p, 0)))
	return text.String()
}
