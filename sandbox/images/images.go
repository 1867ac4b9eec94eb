// Package images makes the container images that a training on this machine runs,
// from the programs of this machine and from Python's package index. No container
// engine and no registry is needed.
package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"persia/sandbox/process"
	"persia/sandbox/toolchain"
)

// Training is the image of PERSIA's roles. It has examples/training in /opt/training.
const Training = "docker.io/persia/training:0.1.dev251"

// Args says what images are made of.
type Args struct {
	// Repository is the folder of Pulumi.yaml.
	Repository string
	// Dir is the folder for the archives and what they are made from, about 4 GB.
	Dir string
	// Tools are compiled.
	Tools toolchain.Tools
	// Progress gets a line for each image that is made.
	Progress io.Writer
}

// Archive is an image in a file.
type Archive struct {
	// Names are the references that pods know the image by.
	Names []string
	// Path is a Docker archive, for `ctr images import`.
	Path string
}

// Build makes the images that are missing or out of date, and returns all. Its error
// is [ErrNoPython] where no Python of this machine can run PERSIA.
func Build(ctx context.Context, args Args) ([]Archive, error) {
	// The same image whatever the working directory is.
	for _, path := range []*string{&args.Dir, &args.Repository} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, fmt.Errorf("images: %w", err)
		}
		*path = absolute
	}
	if err := os.MkdirAll(args.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	unlock, err := process.Lock(ctx, filepath.Join(args.Dir, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	defer unlock()
	var archives []Archive
	for _, make := range []func(context.Context, Args) (image, error){training, natsServer, natsOperator, pushgateway, reloader} {
		image, err := make(ctx, args)
		if err != nil {
			return nil, fmt.Errorf("images: %w", err)
		}
		archive, err := image.archive(args)
		if err != nil {
			return nil, fmt.Errorf("images: %w", err)
		}
		archives = append(archives, archive)
	}
	return archives, nil
}

// archive writes an image unless it exists.
func (i image) archive(args Args) (Archive, error) {
	_, name, _ := strings.Cut(i.names[0], "/")
	archive := Archive{Names: i.names, Path: filepath.Join(args.Dir, strings.NewReplacer("/", "-", ":", "-").Replace(name)+".tar")}
	stamp, err := i.fingerprint()
	if err != nil {
		return Archive{}, err
	}
	if made, err := os.ReadFile(archive.Path + ".stamp"); err == nil && string(made) == stamp {
		if _, err := os.Stat(archive.Path); err == nil {
			return archive, nil
		}
	}
	fmt.Fprintf(args.Progress, "images: writing %s\n", i.names[0])
	if err := i.write(archive.Path); err != nil {
		return Archive{}, err
	}
	return archive, os.WriteFile(archive.Path+".stamp", []byte(stamp), 0o644)
}

// fingerprint tells images apart without reading all of their files.
func (i image) fingerprint() (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, i.names, i.environment, i.command)
	for _, layer := range i.layers {
		for _, name := range slices.Sorted(maps.Keys(layer)) {
			f := layer[name]
			fmt.Fprintln(sum, name, f)
			if f.source == "" {
				continue
			}
			info, err := os.Stat(f.source)
			if err != nil {
				return "", err
			}
			fmt.Fprintln(sum, info.Size(), info.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// training is the image of the roles: the shell and its tools, Python with PERSIA and
// PyTorch, and the example.
func training(ctx context.Context, args Args) (image, error) {
	python, err := findPython(ctx)
	if err != nil {
		return image{}, err
	}
	example := filepath.Join(args.Repository, "examples", "training")
	dir := filepath.Join(args.Dir, "python"+python.version)
	if err := python.install(ctx, dir, filepath.Join(example, "requirements.txt"), args.Progress); err != nil {
		return image{}, err
	}
	packages, shared, err := python.files(dir)
	if err != nil {
		return image{}, err
	}
	executable := "usr/local/bin/python" + python.version
	packages[executable] = program(python.executable)
	packages["usr/local/bin/python3"] = symlink("python" + python.version)
	for command, module := range commands {
		packages["usr/local/bin/"+command] = script("#!/usr/local/bin/python3\nimport sys\nfrom " + module + " import cli\nsys.exit(cli())\n")
	}
	others := append(shared, python.executable)
	for _, name := range binaries {
		others = append(others, filepath.Join(dir, "site-packages", "persia", name))
	}
	system, err := debian(ctx, trainingTools, others, dir)
	if err != nil {
		return image{}, err
	}
	own, err := folder(example, "opt/training")
	if err != nil {
		return image{}, err
	}
	return image{
		names:       []string{Training},
		layers:      []layer{system, packages, own},
		environment: append(slices.Clone(searchPath), "LANG=C.UTF-8", "PYTHONUNBUFFERED=1"),
	}, nil
}

// commands are those of PERSIA's package, by the modules that they are in.
var commands = map[string]string{"persia-launcher": "persia.launcher", "persia-k8s-utils": "persia.k8s_utils"}

// binaries are the programs of PERSIA's package.
var binaries = []string{"persia-embedding-worker", "persia-embedding-parameter-server", "operator"}

// searchPath is where all images have their programs.
var searchPath = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

// trainingTools are what people and scripts expect in an image of Debian, and what the base
// of the Dockerfile has.
var trainingTools = strings.Fields(`
	bash sh cat chmod cp cut date dirname basename env find grep head hostname id ln ls mkdir mv nproc
	readlink realpath rm rmdir sed seq sha256sum sleep sort stat tail tee timeout touch tr uname wc xargs`)

// debian is the system that tools and other programs of this machine run on: this
// machine's own.
func debian(ctx context.Context, tools, others []string, own string) (layer, error) {
	files := skeleton()
	all := slices.Clone(others)
	for _, tool := range tools {
		found, err := exec.LookPath(tool)
		if err != nil {
			return nil, err
		}
		// A shell may be known by another name.
		if found, err = filepath.EvalSymlinks(found); err != nil {
			return nil, err
		}
		files[path.Join("usr/bin", tool)] = program(found)
		all = append(all, found)
	}
	needed, err := libraries(ctx, all, own)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, needed)
	return files, nil
}

// skeleton is what every image has.
func skeleton() layer {
	return layer{
		"bin":               symlink("usr/bin"),
		"lib":               symlink("usr/lib"),
		"lib64":             symlink("usr/lib64"),
		"usr/bin":           directory(0o755),
		"usr/lib":           directory(0o755),
		"usr/lib64":         directory(0o755),
		"proc":              directory(0o555),
		"sys":               directory(0o555),
		"dev":               directory(0o755),
		"run":               directory(0o755),
		"root":              directory(0o700),
		"var/lib":           directory(0o755),
		"tmp":               directory(0o777 | fs.ModeSticky),
		"etc/passwd":        text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"),
		"etc/group":         text("root:x:0:\nnogroup:x:65534:\n"),
		"etc/nsswitch.conf": text("passwd: files\ngroup: files\nhosts: files dns\n"),
	}
}

// folder is a folder of the repository.
func folder(from, to string) (layer, error) {
	files := layer{}
	err := filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == "__pycache__" {
				return fs.SkipDir
			}
			return nil
		}
		relative, err := filepath.Rel(from, name)
		files[path.Join(to, filepath.ToSlash(relative))] = file{mode: 0o644, source: name}
		return err
	})
	return files, err
}
