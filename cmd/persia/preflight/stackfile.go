package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"persia/config"
	"persia/config/input"
)

// sealed replaces each encrypted value, which preflight cannot decrypt.
const sealed = "encrypted"

// Load loads a stack of the working directory as the program does, but for its encrypted values.
func Load(name string) (*config.Stack, error) {
	files, path := os.DirFS("."), input.StackFileName(name)
	file, err := input.ReadStackFile(files, path, config.Namespace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no stack %q: %w; %s", name, err, input.StackNames(files))
	}
	if err != nil {
		return nil, fmt.Errorf("%w; correct it, because Pulumi cannot read it either", err)
	}
	values := file.Config.Open(func([]any, string) string { return sealed })
	stack, err := config.Load(values.Get, files)
	if ignored := file.CheckKeys(config.Namespace, config.Keys()); ignored != nil {
		err = ignored
	}
	if err != nil && file.Settings[input.Environment] != nil {
		err = fmt.Errorf("%w\nthe stack's ESC environment may set more: run `pulumi preview`, which opens it", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return stack, nil
}
