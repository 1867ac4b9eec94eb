package toolchain

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
)

// archived are the programs of the archive: all that stacks run without a real node.
var archived = slices.Concat(ofStack, ofPods, ofJobSet, ofQueues)

// WriteArchive compiles the archived programs in binDir, a folder of their own, writes them to file,
// and records in the module root what they are. The same sources and the same Go make the same bytes on
// every machine.
func WriteArchive(ctx context.Context, moduleRoot, binDir, file string, progress io.Writer) error {
	b, err := newBuilder(ctx, moduleRoot, binDir)
	if err != nil {
		return err
	}
	return b.writeArchive(ctx, archived, file, progress)
}

func (b *builder) writeArchive(ctx context.Context, tools []tool, file string, progress io.Writer) error {
	b.reproducible = true
	if err := b.build(ctx, tools, progress); err != nil {
		return err
	}
	made, err := b.record(ctx, tools)
	if err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	if err := b.pack(made, file); err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	if err := made.write(b.moduleRoot); err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	return nil
}

// record describes the compiled tools.
func (b *builder) record(ctx context.Context, tools []tool) (record, error) {
	made := record{Go: b.goVersion, Platform: platform}
	for _, t := range tools {
		p := program{Name: t.name}
		var err error
		if p.Version, err = b.version(ctx, t); err != nil {
			return made, err
		}
		if p.Stamp, err = b.stamp(t); err != nil {
			return made, err
		}
		if p.Size, p.SHA256, err = digest(filepath.Join(b.binDir, t.name)); err != nil {
			return made, err
		}
		made.Programs = append(made.Programs, p)
	}
	return made, nil
}

// digest returns a file's size and SHA-256.
func digest(file string) (int64, string, error) {
	opened, err := os.Open(file)
	if err != nil {
		return 0, "", err
	}
	defer opened.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, opened)
	return size, hex.EncodeToString(sum.Sum(nil)), err
}

// pack writes the programs and their record to an archive.
func (b *builder) pack(made record, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	pending, err := renameio.NewPendingFile(file, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer func() { _ = pending.Cleanup() }()
	compressed := gzip.NewWriter(pending)
	writer := tar.NewWriter(compressed)
	text, err := made.text()
	if err != nil {
		return err
	}
	if err := writer.WriteHeader(&tar.Header{Name: recordFile, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	if _, err := writer.Write(text); err != nil {
		return err
	}
	for _, p := range made.Programs {
		if err := b.packProgram(writer, p); err != nil {
			return err
		}
	}
	if err := writer.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return pending.CloseAtomicallyReplace()
}

// packProgram adds a program, without a time or an owner.
func (b *builder) packProgram(writer *tar.Writer, p program) error {
	if err := writer.WriteHeader(&tar.Header{Name: p.Name, Mode: 0o755, Size: p.Size}); err != nil {
		return err
	}
	binary, err := os.Open(filepath.Join(b.binDir, p.Name))
	if err != nil {
		return err
	}
	defer binary.Close()
	_, err = io.Copy(writer, binary)
	return err
}
