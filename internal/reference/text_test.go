package reference

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want string
	}{
		{"first paragraph", firstParagraph("A pool\nof nodes.\n\nThe tag says.\n"), "A pool of nodes."},
		{"first sentence", firstSentence("A driver, like 1.2. Default true. More."), "A driver, like 1.2."},
		{"only sentence", firstSentence("Bounds it."), "Bounds it."},

		{"is left out", withoutSubject("Nodes", "Nodes is a number."), "A number."},
		{"are left out", withoutSubject("Zones", "Zones are zones."), "Zones."},
		{"another verb", withoutSubject("Spot", "Spot takes nodes."), "Takes nodes."},
		{"no subject", withoutSubject("Spot", "Spots are taken."), "Spots are taken."},
		{"no comment", withoutSubject("Spot", ""), ""},

		{"code is kept", escaped("a*b <c> [d] `e*f`"), `a\*b \<c> \[d\] ` + "`e*f`"},
		{"pipe in a cell", inCell("`a|b`"), "`a" + `\|` + "b`"},
		{"anchor", anchor("persia:nodePools[].gpu"), "#persianodepoolsgpu"},
		{"anchor of words", anchor("When a-b is changed"), "#when-a-b-is-changed"},

		{"short line", wrapped("a b  c", 80), "a b c"},
		{"just as long", wrapped("aaa bbb ccc", 7), "aaa bbb\nccc"},
		{"long word", wrapped("a bbbbbbbb c", 4), "a\nbbbbbbbb\nc"},
	} {
		assert.Equal(t, c.want, c.got, c.name)
	}
}

func TestInYAML(t *testing.T) {
	n := names{"Nodes": "nodes", "GPU": "gpu", "MaxSurge": "maxSurge", "GCSFuse": "gcsFuse", "Autoscaling": "autoscaling"}
	for text, want := range map[string]string{
		"Default 1 where MaxSurge is 0.":        "Default 1 where `maxSurge` is 0.",
		"MaxSurge is given.":                    "`maxSurge` is given.",
		"MaxSurge's default.":                   "`maxSurge`'s default.",
		"GCSFuse or a disk.":                    "`gcsFuse` or a disk.",
		"Either it or Autoscaling is given.":    "Either it or `autoscaling` is given.",
		"It is spread. Nodes are alike.":        "It is spread. Nodes are alike.",
		"Default: Nodes of the Autoscaling.":    "Default: Nodes of the Autoscaling.",
		"False for GPU pools.":                  "False for GPU pools.",
		"It has Autoscaling, GPU, and MaxSurge": "It has `autoscaling`, `gpu`, and `maxSurge`",
		"Nodes and GPU, once.":                  "`nodes` and `gpu`, once.",
		"Nodes, which are alike.":               "Nodes, which are alike.",
		"Run `MaxSurge` as UNMaxSurge_1.":       "Run `MaxSurge` as UNMaxSurge_1.",
	} {
		assert.Equal(t, want, n.inYAML(text))
	}
}

func TestInWords(t *testing.T) {
	text, object, list := Type{Kind: Text}, Type{Kind: Object}, Type{Kind: List, Elem: &Type{Kind: Text}}
	for want, typ := range map[string]Type{
		"text":                   text,
		"texts":                  list,
		"objects":                {Kind: List, Elem: &object},
		"quantities":             {Kind: List, Elem: &Type{Kind: Quantity}},
		"booleans":               {Kind: List, Elem: &Type{Kind: Boolean}},
		"lists of texts":         {Kind: List, Elem: &list},
		"texts by name":          {Kind: Map, Elem: &text},
		"lists of texts by name": {Kind: Map, Elem: &list},
		"sets of texts by name":  {Kind: List, Elem: &Type{Kind: Map, Elem: &text}},
	} {
		assert.Equal(t, want, inWords(typ))
	}
}

func TestFieldType(t *testing.T) {
	nodes := Type{Kind: List, Elem: &Type{Kind: Object, Section: "persia:a.nodes"}}
	env := Type{Kind: List, Elem: &Type{Kind: Object, Kubernetes: "EnvVar", URL: "https://example.com/"}}
	assert.Equal(t, "text, required", fieldType(Field{Type: Type{Kind: Text}, Required: true}))
	assert.Equal(t, "[objects](#persiaanodes)", fieldType(Field{Type: nodes}))
	assert.Equal(t, "list of [EnvVar](https://example.com/)", fieldType(Field{Type: env}))
}

func TestDescription(t *testing.T) {
	installer := Type{Kind: Text, Values: []Value{{"managed", "leaves it to GKE."}, {"cos", "is one."}}}
	assert.Equal(t, "Says who. `managed` leaves it to GKE. `cos` is one.",
		description(Field{Type: installer, Doc: "Says who."}))
	assert.Equal(t, "Number of it.", description(Field{Doc: "The number of it. Default none."}))
	assert.Equal(t, "Lets it. Default true.", description(Field{Doc: "Lets it. Default true."}))
}

func TestTable(t *testing.T) {
	head := table{{"a", "b"}, {"1|2", "3"}}
	assert.Equal(t, "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |", head.String())
}

func TestFieldsShowChangesWhereKnown(t *testing.T) {
	f := Field{Name: "spot", Type: Type{Kind: Boolean}, Doc: "It."}
	assert.NotContains(t, fields([]Field{f}), "when changed")
	f.Change = "replace"
	assert.Contains(t, fields([]Field{f, {Name: "b"}}), "| `spot` | boolean | replace | It. |")
}
