package docs

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// page is a parsed page.
type page struct {
	// name is the file's, relative to the root.
	name   string
	source []byte
	tree   ast.Node
	// anchors are the anchors that GitHub gives to the headings, and the page's own.
	anchors map[string]bool
}

// block is a block of code.
type block struct {
	line           int
	language, text string
	fenced         bool
}

func parsePage(name string, source []byte) *page {
	p := &page{
		name:    name,
		source:  source,
		tree:    goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source)),
		anchors: map[string]bool{},
	}
	seen := map[string]int{}
	p.walk(func(node ast.Node) {
		switch node := node.(type) {
		case *ast.Heading:
			anchor := slug(p.text(node))
			if n := seen[anchor]; n > 0 {
				p.anchors[fmt.Sprintf("%s-%d", anchor, n)] = true
			} else {
				p.anchors[anchor] = true
			}
			seen[anchor]++
		case *ast.RawHTML:
			p.addOwnAnchors(node.Segments.Value(p.source))
		case *ast.HTMLBlock:
			p.addOwnAnchors(node.Lines().Value(p.source))
		}
	})
	return p
}

var ownAnchor = regexp.MustCompile(`\b(?:id|name)="([^"]+)"`)

func (p *page) addOwnAnchors(html []byte) {
	for _, match := range ownAnchor.FindAllSubmatch(html, -1) {
		p.anchors[string(match[1])] = true
	}
}

// slug returns GitHub's anchor of a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Pc):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}

func (p *page) walk(visit func(ast.Node)) {
	_ = ast.Walk(p.tree, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(node)
		}
		return ast.WalkContinue, nil
	})
}

// text returns the text of a node as a reader sees it.
func (p *page) text(node ast.Node) string {
	var all strings.Builder
	_ = ast.Walk(node, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.Text:
			if entering {
				all.Write(node.Segment.Value(p.source))
				if node.SoftLineBreak() {
					all.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				all.Write(node.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return all.String()
}

// line returns the line of a node. An inline node is on the line where its text begins.
func (p *page) line(node ast.Node) int {
	start := -1
	_ = ast.Walk(node, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.Text:
			start = node.Segment.Start
		default:
			if node.Type() == ast.TypeBlock && node.Lines().Len() > 0 {
				start = node.Lines().At(0).Start
			}
		}
		if start >= 0 {
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	if start < 0 {
		if node.Parent() != nil {
			return p.line(node.Parent())
		}
		return 1
	}
	return p.lineAt(start)
}

func (p *page) lineAt(offset int) int { return 1 + bytes.Count(p.source[:offset], []byte("\n")) }

// code is a block of code, or nothing.
func (p *page) code(node ast.Node) (block, bool) {
	switch node := node.(type) {
	case *ast.FencedCodeBlock:
		return block{line: p.line(node), language: string(node.Language(p.source)), text: p.lines(node), fenced: true}, true
	case *ast.CodeBlock:
		return block{line: p.line(node), text: p.lines(node)}, true
	}
	return block{}, false
}

// lines returns the lines of a block, without the indentation of the block.
func (p *page) lines(node ast.Node) string {
	return string(node.Lines().Value(p.source))
}
