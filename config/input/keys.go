package input

import (
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckKeys refuses the keys in the file of a stack that Pulumi or the program ignores: keys outside of
// config, unknown keys of the project, and keys of a namespace that resembles it. Other namespaces belong to
// providers. It skips a file that it cannot read, because the user may name another one with --config-file.
func CheckKeys(files fs.FS, project, stack string, known []string) error {
	file, err := ReadStackFile(files, StackFileName(stack), project)
	if err != nil {
		return nil
	}
	var p Problems
	for key := range file.Settings {
		if slices.Contains(known, project+":"+key) || strings.HasPrefix(key, project+":") {
			p.Forbidden(field.NewPath(key), "is outside of %s, where Pulumi ignores it; indent it below %s", configuration, configuration)
		}
	}
	for key := range file.Config {
		namespace, name, _ := strings.Cut(key, ":")
		ours := project + ":" + name
		switch near := Nearest(ours, known); {
		case slices.Contains(known, key):
		case slices.Contains(known, ours) && len(Nearest(namespace, []string{project})) > 0:
			p.Forbidden(field.NewPath(key), "is in the namespace %s, which nothing reads; write %s", namespace, ours)
		case namespace != project:
		case len(near) > 0:
			p.Forbidden(field.NewPath(key), "unknown key; did you mean %s?", Or(near))
		default:
			p.Forbidden(field.NewPath(key), "unknown key; remove it, as the keys are %s", And(known))
		}
	}
	return p.Err()
}
