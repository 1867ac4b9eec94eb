package stackfile

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"persia/config/check"
)

// Of returns the values in the file of a stack. It returns none if it cannot read the file,
// because the user may name another one with --config-file.
func Of(files fs.FS, project, stack string) Values {
	file, err := Read(files, Name(stack), project)
	if err != nil {
		return nil
	}
	return file.Config
}

// Unread returns the keys in the namespace of the project that are not known.
func (v Values) Unread(project string, known []string) []string {
	return slices.DeleteFunc(v.Keys(), func(key string) bool {
		return !strings.HasPrefix(key, project+":") || slices.Contains(known, key)
	})
}

// CheckKeys refuses keys in the namespace of the project that the program does not read.
// Otherwise a misspelt optional key would be ignored silently.
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
