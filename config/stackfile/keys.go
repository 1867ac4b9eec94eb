package stackfile

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"persia/config/check"
)

// Of returns the values of a stack's file. There are none if there is no such file, or
// if it cannot be read: Pulumi may have been told of another one by --config-file.
func Of(files fs.FS, project, stack string) Values {
	file, err := Read(files, Name(stack), project)
	if err != nil {
		return nil
	}
	return file.Config
}

// Unread are the keys in the namespace of the project that are not known.
func (v Values) Unread(project string, known []string) []string {
	return slices.DeleteFunc(v.Keys(), func(key string) bool {
		return !strings.HasPrefix(key, project+":") || slices.Contains(known, key)
	})
}

// CheckKeys refuses keys of a stack's file that are in the namespace of the project
// and that no program reads: an optional key that is misspelt would otherwise be
// missed by nobody.
func CheckKeys(files fs.FS, project, stack string, known []string) error {
	var unknown []string
	for _, key := range Of(files, project, stack).Unread(project, known) {
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
