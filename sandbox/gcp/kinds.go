package gcp

import (
	_ "embed"
	"os"
	"regexp"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

	"persia/sandbox/files"
	"persia/sandbox/gcp/google"
)

// kind is how the provider speaks to Google's API of one kind of resource.
type kind struct {
	// Token is Pulumi's type.
	Token tokens.Type
	// API is the API's name of the kind.
	API string
	// ID is the identifier, with the names of fields in it.
	ID string
	// Paths are where fields are in a body, if not at their names in camel case. The path of a field inside blocks has
	// dots in it, and is inside the body of the block.
	Paths map[string]string
	// Local are fields that the API does not know.
	Local []string
	// Short are links that the provider keeps as the name at their end.
	Short []string
	// Inside are blocks whose fields are updated one by one.
	Inside []string
	// Silent are fields that an update does not name when they are taken away.
	Silent []string
	// Computed are fields that the provider makes of others, whose names are in the values.
	Computed map[string]string
	// Function is the function of Pulumi's that looks a resource up, if the program does.
	Function tokens.ModuleMember
	// Called is the common name of a resource that outlives stacks.
	Called string
	// Stays says that a deletion leaves the resource where it is.
	Stays bool
}

//go:embed kinds.yaml
var kindsYAML []byte

// kinds are the resources that the program uses, by their Terraform names.
var kinds = files.Embedded[map[string]kind]("kinds.yaml", kindsYAML)

var placeholder = regexp.MustCompile(`\$\{[a-z_]+\}`)

// values returns the fields in an identifier, and whether it is one of the kind's.
func (k kind) values(id string) (map[string]string, bool) {
	var names []string
	pattern := placeholder.ReplaceAllStringFunc(k.ID, func(marked string) string {
		names = append(names, strings.Trim(marked, "${}"))
		if marked == "${role}" {
			return "((?:projects/[^/]+/|organizations/[^/]+/)?roles/[^/]+)"
		}
		return "(.+)"
	})
	found := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(id)
	if found == nil {
		return nil, false
	}
	values := map[string]string{}
	for i, name := range names {
		values[name] = found[i+1]
	}
	return values, true
}

// identifier fills the values of fields into the identifier. A reference to another resource
// contributes the name at its end.
func (k kind) identifier(value func(field string) string) string {
	return os.Expand(k.ID, func(field string) string {
		if text := value(field); field == "cluster" || field == "router" || field == "region" || field == "zone" {
			return google.Segment(text)
		}
		return value(field)
	})
}
