package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/fatih/color"
	"golang.org/x/term"

	"persia/config"
)

// terminalWidth returns how many characters a line has, which is no limit in a pipe or a file.
func terminalWidth(out *os.File) int {
	columns, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return math.MaxInt
	}
	return max(columns, 40)
}

// The styles of a terminal. They do nothing in a file, or where the user has set NO_COLOR.
var (
	red    = color.New(color.FgRed).Sprint
	green  = color.New(color.FgGreen).Sprint
	yellow = color.New(color.FgYellow).Sprint
	bold   = color.New(color.Bold).Sprint
)

// forTerminal returns what a preview would change, and below it, next to the prompt, what a reader should not miss: the
// tables that differ, warnings, what happens to what runs, and the cost. With diff, it has each value that changes, and
// all tables.
func forTerminal(p *preview, diff bool) string {
	width := terminalWidth(os.Stdout)
	var text strings.Builder
	changes := p.titles()
	if diff {
		changes = slices.Collect(strings.Lines(p.diff()))
	}
	paints := map[byte]func(...any) string{'+': green, '-': red, '!': yellow}
	for _, line := range changes {
		paint := paints[line[0]]
		if paint == nil {
			paint = fmt.Sprint
		}
		text.WriteString(paint(strings.TrimSuffix(line, "\n")) + "\n")
	}
	if p.sum != "" {
		fmt.Fprintf(&text, "\n%s\n", bold(config.NeedsTitle+" "+p.sum))
	}
	if p.needs != "" {
		fmt.Fprintf(&text, "%s\n", p.needs)
	}
	if diff {
		fmt.Fprintf(&text, "\n%s\n%s\n", bold(config.DetailsTitle), p.details)
	}
	for _, warning := range p.warnings {
		fmt.Fprintf(&text, "\n%s\n", yellow(wrapped("warning: "+warning, width)))
	}
	if p.effects != "" {
		fmt.Fprintf(&text, "\n%s\n%s\n", bold(config.EffectsTitle), red(wrapped(p.effects, width)))
	}
	fmt.Fprintf(&text, "\n%s\n", bold(headline(p, 0)))
	return text.String()
}
