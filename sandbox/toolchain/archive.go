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

// sandboxCommand is the file name of the sandbox command, which scripts/record-sandbox.sh compiles.
const sandboxCommand = "sandbox"

// WriteArchive compiles the archived programs in binDir, a folder of their own that has the sandbox
// command, writes all to file, and records in the module root what the programs are. The same sources and the same Go make the same bytes on
// every machine.
func WriteArchive(ctx context.Context, moduleRoot, binDir, file string, progress io.Writer) error {
	b, err := newBuilder(ctx, moduleRoot, binDir)
	if err != nil {
		return err
	}
	return b.writeArchive(ctx, archived, file, progress, sandboxCommand)
}

func (b *builder) writeArchive(ctx context.Context, tools []tool, file string, progress io.Writer, others ...string) error {
	if err := b.build(ctx, tools, progress); err != nil {
		return err
	}
	made, err := b.record(ctx, tools)
	if err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	if err := b.pack(made, others, file); err != nil {
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

// pack writes other files of binDir, the programs, and their record to an archive.
func (b *builder) pack(made record, others []string, file string) error {
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
	// scripts/compile-sandbox.sh reads no further than to the sandbox command.
	for _, name := range slices.Concat(others, made.names()) {
		if err := b.packProgram(writer, name); err != nil {
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
func (b *builder) packProgram(writer *tar.Writer, name string) error {
	binary, err := os.Open(filepath.Join(b.binDir, name))
	if err != nil {
		return err
	}
	defer binary.Close()
	info, err := binary.Stat()
	if err != nil {
		return err
	}
	if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(writer, binary)
	return err
}
