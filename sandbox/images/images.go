// Package images builds the container images for a training on this machine, from programs of this machine and packages
// of the Python Package Index. It uses neither a container engine nor a registry.
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

	"persia/sandbox/files"
	"persia/sandbox/process"
	"persia/sandbox/toolchain"
)

// Training is the image of PERSIA's roles, with examples/training in /opt/training.
const Training = "docker.io/persia/training:0.1.dev251"

// Args has the sources of the images.
type Args struct {
	// Repository is the folder of Pulumi.yaml.
	Repository string
	// Dir receives the archives and the Python packages, about 4 GB.
	Dir string
	// Tools must have been compiled.
	Tools toolchain.Tools
	// JobSet adds the image of the JobSet controller.
	JobSet bool
	// Progress receives a line for each image that Build writes.
	Progress io.Writer
}

// Build writes an archive, *.tar, for each image that is missing or out of date. Its
// error is [ErrNoPython] if this machine has no Python that runs PERSIA.
func Build(ctx context.Context, args Args) error {
	if err := args.build(ctx); err != nil {
		return fmt.Errorf("images: %w", err)
	}
	return nil
}

func (a Args) build(ctx context.Context) error {
	// Images contain no relative paths, so that the working directory does not matter.
	if err := files.Absolute(&a.Dir, &a.Repository, (*string)(&a.Tools)); err != nil {
		return err
	}
	if err := os.MkdirAll(a.Dir, 0o755); err != nil {
		return err
	}
	unlock, err := process.Lock(ctx, filepath.Join(a.Dir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	training, err := a.training(ctx)
	if err != nil {
		return err
	}
	pushgateway, err := pushgateway(ctx, a.Tools)
	if err != nil {
		return err
	}
	all := append(nats(a.Tools), training, pushgateway)
	if a.JobSet {
		all = append(all, jobSet(a.Tools))
	}
	for _, image := range all {
		if err := a.write(image); err != nil {
			return err
		}
	}
	return nil
}

// write writes the archive of an image unless it is up to date.
func (a Args) write(image Image) error {
	_, name, _ := strings.Cut(image.Names[0], "/")
	file := filepath.Join(a.Dir, strings.NewReplacer("/", "-", ":", "-").Replace(name)+".tar")
	stamp, err := fingerprint(image)
	if err != nil {
		return err
	}
	if last, err := os.ReadFile(file + ".stamp"); err == nil && string(last) == stamp {
		if _, err := os.Stat(file); err == nil {
			return nil
		}
	}
	fmt.Fprintf(a.Progress, "images: writing %s\n", image.Names[0])
	if err := image.Write(file); err != nil {
		return err
	}
	return os.WriteFile(file+".stamp", []byte(stamp), 0o644)
}

// fingerprint identifies an image by the sizes and times of its files, because reading gigabytes takes too long.
func fingerprint(image Image) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, image.Names, image.Environment, image.Entrypoint, image.User)
	for _, layer := range image.Layers {
		for _, name := range slices.Sorted(maps.Keys(layer)) {
			f := layer[name]
			fmt.Fprintln(sum, name, f)
			if f.Source == "" {
				continue
			}
			info, err := os.Stat(f.Source)
			if err != nil {
				return "", err
			}
			fmt.Fprintln(sum, info.Size(), info.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// training returns the image of the roles: a shell with the usual tools, Python with
// PERSIA and PyTorch, and the example.
func (a Args) training(ctx context.Context) (Image, error) {
	python, err := findPython(ctx)
	if err != nil {
		return Image{}, err
	}
	example := filepath.Join(a.Repository, "examples", "training")
	dir := filepath.Join(a.Dir, "python"+python.version)
	if err := python.install(ctx, dir, filepath.Join(example, "requirements.txt"), a.Progress); err != nil {
		return Image{}, err
	}
	packages, shared, err := python.files(dir)
	if err != nil {
		return Image{}, err
	}
	executable := "usr/local/bin/python" + python.version
	packages[executable] = Program(python.executable)
	packages["usr/local/bin/python3"] = Symlink("python" + python.version)
	for command, module := range commands {
		packages["usr/local/bin/"+command] = Script("#!/usr/local/bin/python3\nimport sys\nfrom " + module + " import cli\nsys.exit(cli())\n")
	}
	others := append(shared, python.executable)
	for _, name := range binaries {
		others = append(others, filepath.Join(dir, "site-packages", "persia", name))
	}
	system, err := debian(ctx, trainingTools, others, dir)
	if err != nil {
		return Image{}, err
	}
	own, err := folder(example, "opt/training", "__pycache__")
	if err != nil {
		return Image{}, err
	}
	return Image{
		Names:       []string{Training},
		Layers:      []Layer{system, packages, own},
		Environment: append(slices.Clone(searchPath), "LANG=C.UTF-8", "PYTHONUNBUFFERED=1"),
	}, nil
}

// commands maps the commands of PERSIA's package to their modules.
var commands = map[string]string{"persia-launcher": "persia.launcher", "persia-k8s-utils": "persia.k8s_utils"}

// binaries are the compiled programs in PERSIA's package.
var binaries = []string{"persia-embedding-worker", "persia-embedding-parameter-server", "operator"}

// searchPath is the environment of every image.
var searchPath = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

// trainingTools are the commands that scripts may expect, because the Debian image that
// examples/training/Dockerfile starts from has them.
var trainingTools = strings.Fields(`
	bash sh cat chmod cp cut date dirname basename env find grep head hostname id ln ls mkdir mv nproc
	readlink realpath rm rmdir sed seq sha256sum sleep sort stat tail tee timeout touch tr uname wc xargs`)

// debian returns a layer with tools of this machine, and with the shared libraries that
// the tools and the programs in others load from outside of the folder own.
func debian(ctx context.Context, tools, others []string, own string) (Layer, error) {
	files := skeleton()
	all := slices.Clone(others)
	for _, tool := range tools {
		found, err := exec.LookPath(tool)
		if err != nil {
			return nil, err
		}
		// For example, sh is a link to dash.
		if found, err = filepath.EvalSymlinks(found); err != nil {
			return nil, err
		}
		files[path.Join("usr/bin", tool)] = Program(found)
		all = append(all, found)
	}
	needed, err := libraries(ctx, all, own)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, needed)
	return files, nil
}

// skeleton returns the files that all images have.
func skeleton() Layer {
	return Layer{
		"bin":               Symlink("usr/bin"),
		"lib":               Symlink("usr/lib"),
		"lib64":             Symlink("usr/lib64"),
		"usr/bin":           Directory(0o755),
		"usr/lib":           Directory(0o755),
		"usr/lib64":         Directory(0o755),
		"proc":              Directory(0o555),
		"sys":               Directory(0o555),
		"dev":               Directory(0o755),
		"run":               Directory(0o755),
		"root":              Directory(0o700),
		"var/lib":           Directory(0o755),
		"tmp":               Directory(0o777 | fs.ModeSticky),
		"etc/passwd":        Text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"),
		"etc/group":         Text("root:x:0:\nnogroup:x:65534:\n"),
		"etc/nsswitch.conf": Text("passwd: files\ngroup: files\nhosts: files dns\n"),
	}
}

// folder returns a layer with the files of a folder, without some of the folders in it.
func folder(from, to string, without ...string) (Layer, error) {
	files := Layer{}
	err := filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(without, relative) {
				return fs.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		file := File{Mode: 0o644, Source: name}
		if info.Mode()&0o100 != 0 {
			file = Program(name)
		}
		files[path.Join(to, relative)] = file
		return nil
	})
	return files, err
}
