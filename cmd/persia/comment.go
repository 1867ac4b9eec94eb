package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"persia/config"
	"persia/config/input"
)

// most limits a comment, in bytes. GitHub allows 65,536 characters, and the rehearsal of the stack needs some of them.
const most = 60 << 10

// mostOfPart is how long each part but the diff may be. The diff comes last, and has the rest.
const mostOfPart = 12 << 10

// comment returns the Markdown of a preview that ended with an exit code. All text from the preview is in code blocks,
// so it cannot mention people or break out of its section.
func comment(title, stack string, p *preview, code int) string {
	var text strings.Builder
	part := func(heading, language, body string) {
		if body != "" {
			text.WriteString("\n" + heading + "\n" + block(language, clip(body, mostOfPart)))
		}
	}
	// The first line identifies the comment, so that the workflow can update it.
	fmt.Fprintf(&text, "<!-- persia-%s: %s -->\n", strings.ToLower(title), stack)
	fmt.Fprintf(&text, "<!-- persia-changes: %s -->\n", p.fingerprint())
	fmt.Fprintf(&text, "## %s of stack %s: %s\n", title, stack, headline(p, code))
	if code != 0 {
		part(fmt.Sprintf("> [!CAUTION]\n> **It failed**, with exit code %d.", code), "text",
			cmp.Or(wrapped(p.problems(), width), "It said nothing."))
	}
	effects := regexp.MustCompile("(?m)^! ").ReplaceAllString(p.effects, "- ")
	part("> [!CAUTION]\n> **"+strings.TrimSuffix(config.EffectsTitle, ":")+".**", "text", wrapped(effects, width))
	removed := p.removed()
	part(fmt.Sprintf("> [!CAUTION]\n> **This deletes or replaces %s.** What is replaced is deleted too, with everything that runs on it "+
		"or is in it.", input.Count(len(removed), "resource")), "diff", strings.Join(removed, "\n"))
	part(fmt.Sprintf("> [!WARNING]\n> **%s.**", input.Count(len(p.warnings), "warning")), "text",
		wrapped(strings.Join(p.warnings, "\n\n"), width))
	part("### "+strings.TrimSuffix(config.NeedsTitle, ":"), "text", strings.TrimSpace(p.sum+"\n\n"+p.needs))
	if diff := strings.TrimSuffix(p.diff(), "\n"); diff != "" {
		// It is folded until a reader opens it.
		fmt.Fprintf(&text, "\n<details>\n<summary>Every change in full</summary>\n%s\n</details>\n", block("diff", clip(diff, most-text.Len())))
	}
	return text.String()
}

// headline returns the preview in one line: how much changes, and the cost.
func headline(p *preview, code int) string {
	if code != 0 {
		return "failed"
	}
	return strings.TrimSuffix(p.counts()+"; "+p.cost, "; ")
}

// problems returns the errors, or, if there are none, the end of the output, where a command says why it failed.
func (p *preview) problems() string {
	if len(p.errors) > 0 {
		return strings.Join(p.errors, "\n\n")
	}
	lines := strings.Split(strings.TrimSpace(p.said), "\n")
	return strings.TrimPrefix(strings.Join(lines[max(0, len(lines)-20):], "\n"), "error: ")
}

// removed returns the changes that take something away, one a line.
func (p *preview) removed() []string {
	var removed []string
	for _, change := range p.changes {
		if change.removes() && !change.bookkeeping() {
			removed = append(removed, change.title())
		}
	}
	return removed
}

// block returns a code block, with a fence that its text does not have.
func block(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fmt.Sprintf("\n%s%s\n%s\n%s\n", fence, language, text, fence)
}

// width is how many characters a line of a comment shows on GitHub without scrolling.
const width = 96

// wrapped breaks lines that are longer than a width at spaces, and indents the rest of each.
func wrapped(text string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		for utf8.RuneCountInString(line) > width {
			end := strings.LastIndexByte(string([]rune(line)[:width]), ' ')
			if end <= len(indent) {
				break
			}
			lines = append(lines, line[:end])
			line = indent + "  " + line[end+1:]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// cutRoom is for the line that says what was cut, and for what encloses the text.
const cutRoom = 256

// clip keeps as many lines of a text as have room, and says how many it left out.
func clip(text string, room int) string {
	if len(text)+cutRoom <= room {
		return text
	}
	kept := text[:max(0, min(len(text), room-cutRoom))]
	if end := strings.LastIndexByte(kept, '\n'); end >= 0 {
		kept = kept[:end]
	}
	kept = strings.ToValidUTF8(kept, "") // the last character may be cut
	return fmt.Sprintf("%s\n… cut: %d more lines are in the log of this run", kept, strings.Count(text[len(kept):], "\n"))
}
