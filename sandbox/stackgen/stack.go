package stackgen

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"persia/config"
	"persia/config/input"
)

// Stack are the keys of a stack file that the program reads, with their values.
type Stack map[string]any

// own are stack files of this package, with keys that the repository's do not have.
//
//go:embed begin
var own embed.FS

// Examples returns stacks to begin with: the repository's stacks except prod, which is only larger,
// and the stacks of this package.
func Examples(repository string) ([]Stack, error) {
	files := os.DirFS(repository)
	var stacks []Stack
	for _, from := range []struct {
		files   fs.FS
		pattern string
	}{{files, "Pulumi.dev.yaml"}, {files, "examples/Pulumi.*.yaml"}, {own, "begin/*.yaml"}} {
		read, err := ReadStacks(from.files, from.pattern)
		if err != nil {
			return nil, err
		}
		for _, path := range slices.Sorted(maps.Keys(read)) {
			stacks = append(stacks, read[path])
		}
	}
	return stacks, nil
}

// ReadStacks reads the stack files that a pattern matches, by their paths. The value of a secret is
// its ciphertext.
func ReadStacks(files fs.FS, pattern string) (map[string]Stack, error) {
	paths, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, fmt.Errorf("stack files %s: %w", pattern, err)
	}
	stacks := map[string]Stack{}
	for _, path := range paths {
		file, err := input.ReadStackFile(files, path, config.Namespace)
		if err != nil {
			return nil, fmt.Errorf("stack file: %w", err)
		}
		stacks[path] = Stack(file.Config.Decrypted())
	}
	return stacks, nil
}

// Check has the program check the stack. The files are the project's.
func (s Stack) Check(files fs.FS) error {
	_, err := config.Load(input.Values(s).Get, files)
	return err
}

// String returns the stack file.
func (s Stack) String() string {
	text, err := input.StackFile{Config: input.Values(s)}.Text()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Clone returns a copy that shares nothing.
func (s Stack) Clone() Stack { return Stack(clone(map[string]any(s)).(map[string]any)) }

func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for name, inner := range value {
			copied[name] = clone(inner)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, inner := range value {
			copied[i] = clone(inner)
		}
		return copied
	default:
		return value
	}
}
