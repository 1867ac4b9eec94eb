package reference

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"

	"persia/config"
	"persia/config/input"
)

var (
	//go:embed introduction.md
	introduction string
	//go:embed nodepools.md
	aboutChanges string
	//go:embed pedl.md
	aboutPEDL string
)

const (
	mainPage = "configuration.md"
	pedlPage = "pedl.md"
)

// pageOf returns the page that has a section. PEDL's fields have their own page.
func pageOf(path string) string {
	if strings.HasPrefix(path+".", "persia:pedl.") {
		return pedlPage
	}
	return mainPage
}

// writer holds the pages while they are written.
type writer struct {
	*Reference
	text map[string]string
	// at is the section of each object, by the name of its definition, and said the section with each
	// description of a field, with and without its name.
	at, said map[string]string
}

// pages returns the pages that describe a stack file, by their names in docs/reference.
func (r *Reference) pages() map[string]string {
	p := writer{r, map[string]string{mainPage: introduction, pedlPage: aboutPEDL}, map[string]string{}, map[string]string{}}
	var keys []string
	stack := r.definitions["Stack"].Properties
	for _, key := range config.Keys() {
		value, _ := stack.Get(key)
		p.find(key, value)
		keys = append(keys, p.link(mainPage, key, key))
	}
	p.text[mainPage] += "\nKeys: " + strings.Join(keys, ",\n") + ".\n"
	for _, key := range config.Keys() {
		value, _ := stack.Get(key)
		p.section(key, value)
	}
	return p.text
}

// find finds the sections of the objects in a value: each is where the object is first.
func (p writer) find(path string, value *schema) {
	name := nameIn(innermost(value))
	if t := p.types[name]; t == nil || !isOwn(t) || p.at[name] != "" {
		return
	}
	p.at[name] = path
	for _, f := range fieldsOf(p.types[name]) {
		inner, _ := p.definitions[name].Properties.Get(f.name)
		p.find(path+inside(value)+"."+f.name, inner)
	}
}

// inside is how a path goes on into a list or a map.
func inside(value *schema) string {
	switch {
	case value.Items != nil:
		return "[]" + inside(value.Items)
	case value.AdditionalProperties != nil:
		return "[NAME]" + inside(value.AdditionalProperties)
	}
	return ""
}

// section writes the section of a value, and of the objects in it.
func (p writer) section(path string, value *schema) {
	isKey, name := !strings.Contains(path, "."), nameIn(innermost(value))
	if !isKey && p.at[name] != path {
		return
	}
	about := p.object(value).Description
	if first := firstSentence(about); p.said[first] != "" {
		about = strings.TrimSpace(strings.TrimPrefix(about, first))
	}
	text := "\n### " + path + "\n"
	if about != "" {
		text += "\n" + escaped(about) + "\n"
	}
	if isKey {
		text = "\n## " + path + "\n\n*" + capitalized(p.words(path, value)) + ".* " + escaped(value.Description) + "\n"
	}
	if path == "persia:nodePools" {
		text += "\n" + aboutChanges
	}
	page := pageOf(path)
	if p.at[name] != path {
		p.text[page] += text
		return
	}
	fields := fieldsOf(p.types[name])
	changes := slices.ContainsFunc(fields, func(f field) bool { return f.Tag.Get("change") != "" })
	head := []string{"field", "type", "when changed", "description"}
	rule := []string{"---", "---", "---", "---"}
	rows := [][]string{head, rule}
	for _, f := range fields {
		inner, _ := p.definitions[name].Properties.Get(f.name)
		kind := p.words(path, inner)
		if slices.Contains(p.definitions[name].Required, f.name) {
			kind += ", required"
		}
		rows = append(rows, []string{"`" + f.name + "`", kind, f.Tag.Get("change"), p.description(path, f, inner)})
	}
	for _, row := range rows {
		if !changes {
			row = slices.Delete(row, 2, 3)
		}
		text += "\n| " + strings.Join(row, " | ") + " |"
	}
	p.text[page] += text + "\n"
	for _, f := range fields {
		inner, _ := p.definitions[name].Properties.Get(f.name)
		p.section(path+inside(value)+"."+f.name, inner)
	}
}

// words returns a type in words, with a link to its description.
func (p writer) words(path string, value *schema) string {
	name := nameIn(value)
	switch of := p.types[name]; {
	case of != nil && isOwn(of):
		return p.link(pageOf(path), "object", p.at[name])
	case of != nil:
		return "[" + of.Name() + "](" + apiReference + kubernetes[of.Name()] + ")"
	case value.AnyOf != nil:
		return p.words(path, value.AnyOf[0])
	case value.Pattern == input.QuantityForm:
		return "quantity"
	case value.Items != nil:
		return "list of " + p.words(path, value.Items)
	case value.AdditionalProperties != nil:
		return "map of " + p.words(path, value.AdditionalProperties)
	case value.Type == "string":
		return "text"
	case value.Type == "":
		return "value"
	}
	return value.Type
}

func (p writer) link(from, text, to string) string {
	page := pageOf(to)
	if page == from {
		page = ""
	}
	return "[" + text + "](" + page + anchor(to) + ")"
}

// apiReference is the Kubernetes API reference, and kubernetes has the pages of types in it.
const apiReference = "https://kubernetes.io/docs/reference/kubernetes-api/"

var kubernetes = map[string]string{
	"EnvVar":               "core/pod-v1/#EnvVar",
	"LocalObjectReference": "core/pod-v1/#PodSpec",
	"ResourceRequirements": "core/pod-v1/#ResourceRequirements",
	"Toleration":           "core/pod-v1/#PodSpec",
	"Volume":               "core/pod-v1/#PodSpec",
	"VolumeMount":          "core/pod-v1/#Container",
	"IngressTLS":           "networking/ingress-v1/#IngressSpec",
}

var (
	// unsaid are defaults that the introduction gives for all fields.
	unsaid = strings.NewReplacer(" Default none.", "", " Default false.", "", "|", `\|`)
	// leading is an article at the beginning of a description.
	leading = regexp.MustCompile(`^(The|A|An) `)
)

// description returns the description of a field, or the section that has it.
func (p writer) description(path string, f field, value *schema) string {
	text, _, _ := strings.Cut(value.Description, " Default")
	if said := p.said[f.name+text]; said != "" {
		return "See " + p.link(pageOf(path), said, said) + "."
	}
	p.said[f.name+text], p.said[text] = path, path
	return escaped(capitalized(leading.ReplaceAllString(unsaid.Replace(value.Description), "")))
}
