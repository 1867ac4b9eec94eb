package images

import (
	"archive/tar"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Layer maps paths without a leading slash to the files of one layer of an image.
type Layer map[string]File

// File is a directory, a symbolic link, or a regular file.
type File struct {
	Mode fs.FileMode
	// Source is the path of a file on this machine that has the content.
	Source string
	// Target is the target of a symbolic link.
	Target string
	// Content is used without a Source.
	Content string
}

// Directory returns a directory, which only needs an entry if it is empty or its mode is
// not 0755: containerd creates the others.
func Directory(mode fs.FileMode) File { return File{Mode: fs.ModeDir | mode} }

// Symlink returns a symbolic link.
func Symlink(target string) File { return File{Mode: fs.ModeSymlink | 0o777, Target: target} }

// Text returns a file with the given content.
func Text(content string) File { return File{Mode: 0o644, Content: content} }

// Script returns an executable file with the given content.
func Script(content string) File { return File{Mode: 0o755, Content: content} }

// Program returns an executable copy of a file on this machine.
func Program(source string) File { return File{Mode: 0o755, Source: source} }

// epoch is the modification time of all files, to make layers reproducible.
var epoch = time.Unix(0, 0).UTC()

// open returns the layer as a tar file, which is generated as it is read.
func (l Layer) open() (io.ReadCloser, error) {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(l.WriteTar(writer)) }()
	return reader, nil
}

// WriteTar writes the layer as a tar file, with directories before their contents.
func (l Layer) WriteTar(out io.Writer) error {
	names := slices.SortedFunc(maps.Keys(l), func(a, b string) int {
		return cmp.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
	archive := tar.NewWriter(out)
	for _, name := range names {
		if err := l[name].writeTo(archive, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return archive.Close()
}

func (f File) writeTo(archive *tar.Writer, name string) error {
	header := &tar.Header{Name: name, Mode: int64(f.Mode.Perm()), ModTime: epoch, Size: int64(len(f.Content))}
	if f.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	var content io.Reader = strings.NewReader(f.Content)
	switch {
	case f.Mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
	case f.Mode&fs.ModeSymlink != 0:
		header.Typeflag, header.Linkname = tar.TypeSymlink, f.Target
	case f.Source != "":
		source, err := os.Open(f.Source)
		if err != nil {
			return err
		}
		defer func() { _ = source.Close() }()
		info, err := source.Stat()
		if err != nil {
			return err
		}
		header.Size, content = info.Size(), source
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}
