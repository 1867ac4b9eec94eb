package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// progress shows on a terminal, in one line, how far an update is. The Pulumi CLI says that in many lines, of which the last
// one for a resource counts. Its other lines stay.
type progress struct {
	out   io.Writer
	width int
	// most is how many resources the stack had. began and ended are how many have begun to change, and have changed.
	most, began, ended int
	underway           []underway
	rest               []byte // the beginning of a line
}

// underway is a resource that changes, and what the provider last said of it.
type underway struct{ of, name, says string }

var (
	stepLine = regexp.MustCompile(`^\s*[-+~<>]+\s+(\S+) (\S+) (?:\w+(ing|ed)|\*\*\w+ failed\*\*)(?: \([\d.]+s\))? ?(.*)$`)
	// group begins the types of resources that only the engine has.
	group = regexp.MustCompile(`^(pulumi|persia):`)
)

func (p *progress) Write(data []byte) (int, error) {
	p.rest = append(p.rest, data...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return len(data), nil
		}
		p.rest = rest
		if err := p.line(string(line)); err != nil {
			return 0, err
		}
	}
}

func (p *progress) line(line string) error {
	match := stepLine.FindStringSubmatch(line)
	if match == nil {
		if strings.HasPrefix(line, "@ ") { // the CLI is at work
			return nil
		}
		_, err := fmt.Fprintf(p.out, "\r\033[K%s\n", line)
		return err
	}
	of, name, ends, says := match[1], match[2], match[3], match[4]
	at := slices.IndexFunc(p.underway, func(u underway) bool { return u.of == of && u.name == name })
	switch {
	case ends != "ing" && at >= 0:
		p.underway = slices.Delete(p.underway, at, at+1)
		p.ended++
	case at >= 0:
		p.underway[at].says = says
	case ends == "ing":
		p.underway = append(p.underway, underway{of, name, says})
		p.began++
	}
	if ends == "" || strings.HasPrefix(says, "warning: ") || strings.HasPrefix(says, "error: ") {
		if _, err := fmt.Fprintf(p.out, "\r\033[K%s\n", strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%d of %d", p.ended, max(p.most, p.began))
	isGroup := func(u underway) bool { return group.MatchString(u.of) }
	if waits := slices.DeleteFunc(slices.Clone(p.underway), isGroup); len(waits) > 0 {
		// The oldest of those that say what they wait for.
		first := waits[max(0, slices.IndexFunc(waits, func(u underway) bool { return u.says != "" }))]
		text += fmt.Sprintf(", waiting for %s %s", first.of[strings.LastIndex(first.of, ":")+1:], first.name)
		if first.says != "" {
			text += ": " + first.says
		}
	}
	runes := []rune(text)
	_, err := fmt.Fprintf(p.out, "\r\033[K%s", string(runes[:min(len(runes), p.width-1)]))
	return err
}
