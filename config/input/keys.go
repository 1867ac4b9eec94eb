package input

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// instead says what to do instead of keys of Pulumi's providers.
var instead = map[string]string{
	"gcp:region":                    "write region of persia:cluster",
	"gcp:zone":                      "write zones of persia:cluster",
	"gcp:impersonateServiceAccount": "run `gcloud auth application-default login --impersonate-service-account=ACCOUNT`",
	"gcp:credentials":               "set GOOGLE_APPLICATION_CREDENTIALS to the path of the file",
	"kubernetes:kubeconfig":         "write existing.kubeconfig of persia:cluster",
	"kubernetes:context":            "write existing.context of persia:cluster",
}

// CheckKeys refuses the keys of a stack file that Pulumi or the program ignores: keys outside of config, unknown keys
// of the project, and keys of other namespaces, because the program configures its providers itself.
func (f StackFile) CheckKeys(project string, known []string) error {
	var p Problems
	for key := range f.Settings {
		if slices.Contains(known, project+":"+key) || strings.HasPrefix(key, project+":") {
			p.Forbidden(field.NewPath(key), "is outside of %s, where Pulumi ignores it; indent it below %s", configuration, configuration)
		}
	}
	for key := range f.Config {
		namespace, name, _ := strings.Cut(key, ":")
		ours := project + ":" + name
		switch near := Nearest(ours, known); {
		case slices.Contains(known, key) || namespace == "pulumi": // which the engine reads
		case namespace != project && slices.Contains(known, ours):
			p.Forbidden(field.NewPath(key), "is in the namespace %s, which nothing reads; write %s", namespace, ours)
		case namespace != project:
			p.Forbidden(field.NewPath(key), "is in the namespace %s, which nothing reads; %s", namespace, cmp.Or(instead[key], "remove it"))
		case len(near) > 0:
			p.Forbidden(field.NewPath(key), "unknown key; did you mean %s?", Or(near))
		default:
			p.Forbidden(field.NewPath(key), "unknown key; remove it, as the keys are %s", And(known))
		}
	}
	return p.Err()
}
