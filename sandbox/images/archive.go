package images

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// layer is the files of one layer of an image, by their paths without a leading
// slash.
type layer map[string]file

// file is an entry of a layer: a directory, a link, or a file that is read from this
// machine or written out here.
type file struct {
	mode fs.FileMode
	// source is a file of this machine.
	source string
	// target is what a symbolic link points to.
	target string
	// content is the file's own, where there is no source.
	content string
}

// image is what an archive is made of. Its layers are not compressed: the largest has
// 1.7 GB, is read on this machine, and thrown away.
type image struct {
	names       []string
	layers      []layer
	environment []string
	command     []string
}

// epoch is the time of all files, so that the same files make the same image.
var epoch = time.Unix(0, 0).UTC()

// write writes a Docker archive, which containerd imports. It is whole or not there.
func (i image) write(name string) error {
	building := name + ".building"
	out, err := os.Create(building)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(building) }()
	err = errors.Join(i.writeTo(out), out.Close())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.Rename(building, name)
}

func (i image) writeTo(out io.Writer) error {
	archive := tar.NewWriter(out)
	var paths, digests []string
	for _, layer := range i.layers {
		digest, size, err := layer.measure()
		if err != nil {
			return err
		}
		name := digest + "/layer.tar"
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: epoch}); err != nil {
			return err
		}
		if err := layer.writeTo(archive); err != nil {
			return err
		}
		paths, digests = append(paths, name), append(digests, "sha256:"+digest)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64",
		"os":           "linux",
		"created":      epoch,
		"config":       map[string]any{"Env": i.environment, "Entrypoint": i.command, "WorkingDir": "/"},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": digests},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": i.names, "Layers": paths}})
	if err != nil {
		return err
	}
	for _, document := range []struct {
		name string
		text []byte
	}{{"config.json", config}, {"manifest.json", manifest}} {
		if err := archive.WriteHeader(&tar.Header{Name: document.name, Mode: 0o644, Size: int64(len(document.text)), ModTime: epoch}); err != nil {
			return err
		}
		if _, err := archive.Write(document.text); err != nil {
			return err
		}
	}
	return archive.Close()
}

// measure is the digest and the size that the layer has when it is written: a tar's
// header comes before what it describes.
func (l layer) measure() (string, int64, error) {
	sum, size := sha256.New(), counter(0)
	if err := l.writeTo(io.MultiWriter(sum, &size)); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(sum.Sum(nil)), int64(size), nil
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// writeTo writes the layer's tar, parents before what they contain.
func (l layer) writeTo(out io.Writer) error {
	l = l.withParents()
	archive := tar.NewWriter(out)
	names := make([]string, 0, len(l))
	for name := range l {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
	for _, name := range names {
		if err := l[name].writeTo(archive, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return archive.Close()
}

func (l layer) withParents() layer {
	all := layer{}
	for name, f := range l {
		all[name] = f
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, known := l[dir]; !known {
				all[dir] = directory(0o755)
			}
		}
	}
	return all
}

func (f file) writeTo(archive *tar.Writer, name string) error {
	header := &tar.Header{Name: name, Mode: int64(f.mode.Perm()), ModTime: epoch, Size: int64(len(f.content))}
	if f.mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	switch {
	case f.mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
	case f.mode&fs.ModeSymlink != 0:
		header.Typeflag, header.Linkname = tar.TypeSymlink, f.target
	}
	if f.source == "" {
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.WriteString(archive, f.content)
		return err
	}
	source, err := os.Open(f.source)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, source)
	return err
}

func directory(mode fs.FileMode) file { return file{mode: fs.ModeDir | mode} }
func symlink(target string) file      { return file{mode: fs.ModeSymlink | 0o777, target: target} }
func text(content string) file        { return file{mode: 0o644, content: content} }
func program(source string) file      { return file{mode: 0o755, source: source} }
func script(content string) file      { return file{mode: 0o755, content: content} }
