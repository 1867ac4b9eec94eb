package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pythonVersions are the versions that PERSIA's package supports, newest first.
var pythonVersions = []string{"3.9", "3.8", "3.7"}

// ErrNoPython reports that this machine has no Python that runs PERSIA.
var ErrNoPython = errors.New("PERSIA's package requires Python 3.7, 3.8, or 3.9, and none of them is installed: " +
	"install one, for example with `pyenv install 3.9`")

// python is a Python installation of this machine.
type python struct {
	// version is MAJOR.MINOR.
	version string
	// executable is the path of the interpreter, and library the folder of the standard library.
	executable, library string
	// release is sys.version.
	release string
}

// findPython looks for a Python among pyenv's versions and on the PATH.
func findPython(ctx context.Context) (python, error) {
	root := cmp.Or(os.Getenv("PYENV_ROOT"), filepath.Join(os.Getenv("HOME"), ".pyenv"))
	for _, version := range pythonVersions {
		candidates, err := filepath.Glob(filepath.Join(root, "versions", version+".*", "bin", "python"+version))
		if err != nil {
			return python{}, err
		}
		if onPath, err := exec.LookPath("python" + version); err == nil {
			candidates = append(candidates, onPath)
		}
		for _, candidate := range candidates {
			if p, err := ask(ctx, candidate, version); err == nil {
				return p, nil
			}
		}
	}
	return python{}, ErrNoPython
}

// ask runs a Python to find its files. It fails without pip, which install needs.
func ask(ctx context.Context, executable, version string) (python, error) {
	const question = `import os, pip, sys, sysconfig
print(os.path.realpath(sys.executable), sysconfig.get_path("stdlib"), sys.version.replace("\n", " "), sep="\n")`
	answer, err := exec.CommandContext(ctx, executable, "-c", question).Output()
	if err != nil {
		return python{}, err
	}
	lines := strings.Split(strings.TrimSpace(string(answer)), "\n")
	if len(lines) != 3 {
		return python{}, fmt.Errorf("%s answers %q", executable, answer)
	}
	return python{version: version, executable: lines[0], library: lines[1], release: lines[2]}, nil
}

// inImage returns the path of Python's library in the image.
func (p python) inImage() string { return "usr/local/lib/python" + p.version }

// copyLibrary copies Python's standard library without the parts that no training needs.
const copyLibrary = `import shutil, sys
without = ["site-packages", "dist-packages", "__pycache__", "test", "idlelib", "lib2to3", "tkinter", "ensurepip", "*.a"]
shutil.copytree(sys.argv[1], sys.argv[2], ignore=shutil.ignore_patterns(*without))`

// install copies Python's library to dir, adds the packages of requirements, and compiles
// all modules reproducibly. It does nothing if dir is up to date.
func (p python) install(ctx context.Context, dir, requirements string, progress io.Writer) error {
	wanted, err := os.ReadFile(requirements)
	if err != nil {
		return err
	}
	stamp := fmt.Sprintf("%s\n%s\n%s", p.release, p.executable, wanted)
	if made, err := os.ReadFile(dir + ".stamp"); err == nil && string(made) == stamp {
		return nil
	}
	fmt.Fprintf(progress, "images: installing PERSIA and PyTorch for Python %s: 0.8 GB to download\n", p.version)
	for _, path := range []string{dir + ".stamp", dir} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	packages := filepath.Join(dir, "site-packages")
	for _, command := range [][]string{
		{"-c", copyLibrary, p.library, dir},
		{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-compile",
			"--no-deps", "--only-binary", ":all:", "--require-hashes", "--target", packages, "--requirement", requirements},
		{"-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash", "-d", "/" + p.inImage(), dir},
	} {
		if output, err := exec.CommandContext(ctx, p.executable, command...).CombinedOutput(); err != nil {
			return fmt.Errorf("python %s: %w\n%s", strings.Join(command[:2], " "), err, output)
		}
	}
	return os.WriteFile(dir+".stamp", []byte(stamp), 0o644)
}

// files returns a layer with the Python library in dir, and the paths of the shared libraries in it.
func (p python) files(dir string) (files Layer, libraries []string, err error) {
	// Only extensions in C++ need PyTorch's headers.
	files, err = folder(dir, p.inImage(), "site-packages/torch/include", "site-packages/bin")
	for _, f := range files {
		if strings.Contains(filepath.Base(f.Source), ".so") {
			libraries = append(libraries, f.Source)
		}
	}
	return files, libraries, err
}
