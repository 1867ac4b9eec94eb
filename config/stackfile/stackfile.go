// Package stackfile reads stack files, as Pulumi writes them.
package stackfile

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"persia/config/check"
)

// Name is the name of the file of a stack.
func Name(stack string) string { return "Pulumi." + stack + ".yaml" }

// Values are the values of a stack's file by their keys, each with its namespace, which
// Pulumi takes from the project where none is written. Encrypted texts stand there as
// {secure: …}. There are no values if there is no such file, or if it cannot be read:
// Pulumi may have been told of another one by --config-file.
func Values(files fs.FS, project, stack string) map[string]any {
	text, err := fs.ReadFile(files, Name(stack))
	if err != nil {
		return nil
	}
	var file struct {
		Config map[string]any `json:"config"`
	}
	if yaml.Unmarshal(text, &file) != nil {
		return nil
	}
	values := map[string]any{}
	for key, value := range file.Config {
		if !strings.Contains(key, ":") {
			key = project + ":" + key
		}
		values[key] = value
	}
	return values
}

// Keys are the sorted keys of [Values].
func Keys(files fs.FS, project, stack string) []string {
	return slices.Sorted(maps.Keys(Values(files, project, stack)))
}

// CheckKeys refuses keys of a stack's file that are in the namespace of the project
// and that no program reads: an optional key that is misspelt would otherwise be
// missed by nobody.
func CheckKeys(files fs.FS, project, stack string, known []string) error {
	var unknown []string
	for _, key := range Keys(files, project, stack) {
		if !strings.HasPrefix(key, project+":") || slices.Contains(known, key) {
			continue
		}
		if near := check.Nearest(key, known); len(near) > 0 {
			unknown = append(unknown, fmt.Sprintf("%s: unknown key; did you mean %s?", key, check.Or(near)))
			continue
		}
		unknown = append(unknown, fmt.Sprintf("%s: unknown key; remove it, as the keys are %s", key, check.And(known)))
	}
	if unknown == nil {
		return nil
	}
	return fmt.Errorf("%s has keys that nothing reads:\n%s", Name(stack), strings.Join(unknown, "\n"))
}
