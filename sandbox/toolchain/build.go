// Package toolchain compiles the programs that the sandbox runs from Go modules: for every stack the Pulumi CLI, a
// Kubernetes control plane, kwok and the NATS operator; for pods that really run the NATS server and the Pushgateway;
// the programs of a real node; and for a benchmark kubectl. Nothing else is downloaded.
//
// The folders next to this file are separate modules, one per set of dependencies: each pins one version of a project
// in its go.mod and names the programs to compile as tools, or has a program of its own that uses the project as a
// library. The versions that the programs report are read from there.
package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"persia/sandbox/process"
)

// Build compiles the programs of groups that are missing or out of date in binDir from the modules below moduleRoot,
// this package's folder, and returns the folder. It writes a line to progress when a compilation starts and when it
// ends, and nothing when all is up to date. Of several builds into the same binDir one compiles and the others wait for
// it.
func Build(ctx context.Context, moduleRoot, binDir string, progress io.Writer, groups ...Group) (Tools, error) {
	b, err := newBuilder(ctx, moduleRoot, binDir)
	if err != nil {
		return "", err
	}
	return Tools(b.binDir), b.build(ctx, of(groups...), progress)
}

// patience is how long a server may send nothing.
const patience = 30 * time.Second

type builder struct {
	moduleRoot, binDir string
	goVersion          string
	// patience is how long a server may send nothing.
	patience time.Duration
}

func newBuilder(ctx context.Context, moduleRoot, binDir string) (b *builder, err error) {
	b = &builder{patience: patience}
	if b.moduleRoot, err = filepath.Abs(moduleRoot); err == nil {
		b.binDir, err = filepath.Abs(binDir)
	}
	if err == nil {
		// Asked in a module's folder: its go.mod may select another Go.
		b.goVersion, err = b.goCommand(ctx, all[0].Dir, "env", "GOVERSION")
	}
	if err != nil {
		return nil, fmt.Errorf("toolchain: %w", err)
	}
	return b, nil
}

// whenStale does something with the names of the tools that are out of date, if there are any, while no other
// process does so in binDir.
func (b *builder) whenStale(ctx context.Context, tools []tool, do func(stale []string) error) error {
	stale, err := b.stale(tools)
	if err != nil || len(stale) == 0 {
		return err
	}
	if err := os.MkdirAll(b.binDir, 0o755); err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	unlock, err := process.Lock(ctx, filepath.Join(b.binDir, ".lock"))
	if err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	defer unlock()
	// Another process may have done the work while this one waited for the lock.
	if stale, err = b.stale(tools); err != nil || len(stale) == 0 {
		return err
	}
	if err := do(stale); err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	return nil
}

// build compiles the tools that are out of date.
func (b *builder) build(ctx context.Context, tools []tool, progress io.Writer) error {
	return b.whenStale(ctx, tools, func(stale []string) error {
		var downloads sync.WaitGroup
		defer downloads.Wait() // nothing writes into Go's caches any more
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		downloads.Go(func() { b.download(ctx, tools, stale) })
		for i, t := range tools {
			if !slices.Contains(stale, t.Name) {
				continue
			}
			version, err := b.version(ctx, t)
			if err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
			line := fmt.Sprintf("toolchain: %d/%d %s %s", i+1, len(tools), t.Name, version)
			fmt.Fprintf(progress, "%s compiling …\n", line)
			started := time.Now()
			if err := b.compile(ctx, t, version); err != nil {
				return fmt.Errorf("compile %s %s in %s: %w", t.Name, version, filepath.Join(b.moduleRoot, t.Dir), err)
			}
			fmt.Fprintf(progress, "%s %.0fs\n", line, time.Since(started).Seconds())
		}
		return nil
	})
}

// download fetches the source of the stale tools, in the order in which they are compiled, so that the network works
// while the compiler does. What it cannot fetch the compilation fetches, or reports.
func (b *builder) download(ctx context.Context, tools []tool, stale []string) {
	for _, t := range tools {
		if slices.Contains(stale, t.Name) {
			_, _ = b.goCommand(ctx, t.Dir, "list", "-deps", t.Package)
		}
	}
}

// compile compiles a tool. If it fails, it leaves the binary that was there.
func (b *builder) compile(ctx context.Context, t tool, version string) error {
	stamp, err := b.stamp(t)
	if err != nil {
		return err
	}
	building := filepath.Join(b.binDir, "."+t.Name+".building")
	// -trimpath makes the binary the same bytes in all folders, and compiles as the Makefile does.
	_, err = b.goCommand(ctx, t.Dir, "build", "-buildvcs=false", "-trimpath",
		"-ldflags", t.ldflags(version), "-o", building, t.Package)
	if err != nil {
		return err
	}
	return b.put(building, t.Name, stamp)
}

// put makes a file a program of binDir. It leaves either the complete binary and its stamp, or no stamp.
func (b *builder) put(file, name, stamp string) error {
	binary := filepath.Join(b.binDir, name)
	if err := os.RemoveAll(stampFile(binary)); err != nil {
		return err
	}
	if err := os.Rename(file, binary); err != nil {
		return err
	}
	return renameio.WriteFile(stampFile(binary), []byte(stamp), 0o644)
}

// version returns the version of the tool's module.
func (b *builder) version(ctx context.Context, t tool) (string, error) {
	version, err := b.goCommand(ctx, t.Dir, "list", "-m", "-f", "{{.Version}}", t.Module)
	if err != nil {
		return "", err
	}
	if version == "" {
		return "", fmt.Errorf("module %s has no version", t.Module)
	}
	return version, nil
}

// ldflags leaves out the symbol table and debug information, half of the binary's size, and sets the tool's variables.
func (t tool) ldflags(version string) string {
	semver := strings.TrimPrefix(version, "v")
	major, rest, _ := strings.Cut(semver, ".")
	minor, _, _ := strings.Cut(rest, ".")
	values := strings.NewReplacer("{version}", version, "{semver}", semver, "{major}", major, "{minor}", minor)

	flags := []string{"-s", "-w"}
	for _, v := range t.Variables {
		flags = append(flags, "-X", v.Name+"="+values.Replace(v.Value))
	}
	return strings.Join(flags, " ")
}

// goCommand runs the go command in a module's folder and returns its output.
func (b *builder) goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.moduleRoot, dir)
	cmd.Env = append(os.Environ(),
		// What the user's shell says about other modules does not hold for these: they are built as they are pinned,
		// for this machine. An empty GOFLAGS would be looked up in the go command's configuration file.
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GO111MODULE=on",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "CGO_ENABLED=0",
		"PWD="+cmd.Dir,
	)
	// Interrupted, the go command ends its compilers and removes its files.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var output, diagnostics strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &diagnostics
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, strings.TrimSpace(diagnostics.String()))
	}
	return strings.TrimSpace(output.String()), nil
}

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
