package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Warnings returns what a valid stack may not have meant, as PATH: TEXT.
func (s *Stack) Warnings() []string {
	return slices.Concat(
		s.storageWarnings(),
		s.imageWarnings(),
		s.natsWarnings(),
		s.exposureWarnings(),
		s.limitWarnings(),
		s.spotWarnings(),
		s.pedlWarnings(),
		s.jobWarnings(),
	)
}

// warning formats a warning about what the user wrote for a path of the stack.
func (s *Stack) warning(path *field.Path, format string, args ...any) string {
	written := path.String()
	if s.pathOf != nil {
		written = s.pathOf(path)
	}
	return written + ": " + fmt.Sprintf(format, args...)
}
