package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// stamp returns a digest of all that decides what the tool's binary contains.
func (b *builder) stamp(t tool) (string, error) {
	digest := sha256.New()
	files := []string{"go.mod", "go.sum"}
	if t.own() {
		sources, err := fs.Glob(os.DirFS(filepath.Join(b.moduleRoot, t.Dir)), filepath.Join(t.Package, "*.go"))
		if err != nil {
			return "", fmt.Errorf("toolchain: %s: %w", t.Name, err)
		}
		files = append(files, sources...)
	}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(b.moduleRoot, t.Dir, name))
		if err != nil {
			return "", fmt.Errorf("toolchain: %s: %w", t.Name, err)
		}
		fmt.Fprintf(digest, "%s %d\n%s", name, len(content), content)
	}
	// The variables stand here with their placeholders: the versions put there are go.mod's.
	fmt.Fprintf(digest, "%q %q %s %s/%s\n", t.Package, t.Variables, b.goVersion, runtime.GOOS, runtime.GOARCH)
	return hex.EncodeToString(digest.Sum(nil)), nil
}

func stampFile(binary string) string {
	return filepath.Join(filepath.Dir(binary), "."+filepath.Base(binary)+".stamp")
}

// stale returns the names of the tools that must be compiled.
func (b *builder) stale(tools []tool) ([]string, error) {
	var stale []string
	for _, t := range tools {
		binary := filepath.Join(b.binDir, t.Name)
		want, err := b.stamp(t)
		if err != nil {
			return nil, err
		}
		got, err := os.ReadFile(stampFile(binary))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("toolchain: %s: %w", t.Name, err)
		}
		if info, err := os.Stat(binary); err != nil || info.Size() == 0 || string(got) != want {
			stale = append(stale, t.Name)
		}
	}
	return stale, nil
}
