package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"persia/sandbox/files"
	"persia/sandbox/process"
)

// sandboxCommand is the file name of the sandbox command, which scripts/record-sandbox.sh compiles.
const sandboxCommand = "sandbox"

// recordFile, in the module root, lists the programs of the archive and their checksums. It is part of
// the repository, so that users need not trust the archive.
const recordFile = "archive.json"

// platform is the platform that programs are compiled for.
const platform = runtime.GOOS + "/" + runtime.GOARCH

// record is the content of recordFile.
type record struct {
	// Go compiled the programs for Platform.
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
	Programs []program `json:"programs"`
}

// program is a program of the archive.
type program struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Stamp is the digest of all that decides what the program contains.
	Stamp  string `json:"stamp"`
	SHA256 string `json:"sha256"`
}

func readRecord(moduleRoot string) (r record, err error) {
	err = files.ReadJSON(filepath.Join(moduleRoot, recordFile), &r)
	return r, err
}

func (r record) write(moduleRoot string) error {
	return files.WriteJSON(filepath.Join(moduleRoot, recordFile), r, 0o644)
}

// matches reports whether the archive has exactly the tools, compiled as they are here.
func (r record) matches(tools []tool, b *builder) (bool, error) {
	same := len(r.Programs) == len(tools)
	for i := 0; same && i < len(tools); i++ {
		stamp, err := b.stamp(tools[i])
		if err != nil {
			return false, err
		}
		same = r.Programs[i].Name == tools[i].Name && r.Programs[i].Stamp == stamp
	}
	return same, nil
}

// WriteArchive compiles the archived programs into binDir, which must hold nothing but the sandbox command,
// packs the folder into file, and records the checksum of each program in the module root. The same sources
// and the same Go give the same programs on every machine.
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
	if err == nil {
		err = b.pack(ctx, tools, others, file)
	}
	if err == nil {
		err = made.write(b.moduleRoot)
	}
	if err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	return nil
}

// record describes the compiled tools.
func (b *builder) record(ctx context.Context, tools []tool) (record, error) {
	made := record{Go: b.goVersion, Platform: platform}
	for _, t := range tools {
		p := program{Name: t.Name}
		var err error
		if p.Version, err = b.version(ctx, t); err != nil {
			return made, err
		}
		if p.Stamp, err = b.stamp(t); err != nil {
			return made, err
		}
		if p.SHA256, err = process.Digest(filepath.Join(b.binDir, t.Name)); err != nil {
			return made, err
		}
		made.Programs = append(made.Programs, p)
	}
	return made, nil
}

// pack writes other files of binDir and the programs to an archive, without times and owners.
// scripts/compile-sandbox.sh reads no further than to the first, the sandbox command.
func (b *builder) pack(ctx context.Context, tools []tool, others []string, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	const script = `tar -ch --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=755 "${@:2}" | gzip -n > "$1.building" &&
		mv "$1.building" "$1"`
	arguments := append([]string{file, "-C", b.binDir}, others...)
	for _, t := range tools {
		arguments = append(arguments, t.Name)
	}
	return shell(ctx, script, arguments...)
}

// Take copies the archived programs from an archive, which is a file or a URL, if one of them is missing or
// out of date in binDir. It takes all or none, only as they are recorded in the module root, and writes to
// progress why it takes none. [Build] then compiles them.
func Take(ctx context.Context, archive, moduleRoot, binDir string, progress io.Writer) error {
	b, err := newBuilder(ctx, moduleRoot, binDir)
	if err != nil {
		return err
	}
	return b.takeFrom(ctx, archived, archive, progress)
}

func (b *builder) takeFrom(ctx context.Context, tools []tool, archive string, progress io.Writer) error {
	return b.whenStale(ctx, tools, func([]string) error {
		recorded, err := readRecord(b.moduleRoot)
		if err != nil {
			return err
		}
		same, err := recorded.matches(tools, b)
		if err != nil {
			return err
		}
		err = fmt.Errorf("it is compiled by %s for %s from other sources than here, or by another Go for another platform",
			recorded.Go, recorded.Platform)
		if same {
			err = b.take(ctx, archive, recorded.Programs)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			fmt.Fprintf(progress, "toolchain: nothing is taken from the archive %s: %v\n", archive, err)
		default:
			fmt.Fprintf(progress, "toolchain: %d programs taken from the archive\n", len(tools))
		}
		return nil
	})
}

// take unpacks programs of an archive and puts them into binDir, if all are as they are recorded. A server
// may send nothing for some seconds. Root, too, owns what it unpacks.
func (b *builder) take(ctx context.Context, archive string, programs []program) error {
	dir, err := os.MkdirTemp(b.binDir, ".archive")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	const script = `case $1 in
http://*|https://*) curl --fail --location --silent --show-error --connect-timeout "$2" --speed-limit 1 --speed-time "$2" "$1" ;;
*) cat -- "$1" ;;
esac | tar -xz --no-same-owner -C "$3"`
	if err := shell(ctx, script, archive, fmt.Sprint(b.patience.Seconds()), dir); err != nil {
		return err
	}
	for _, p := range programs {
		unpacked := filepath.Join(dir, p.Name)
		if info, err := os.Lstat(unpacked); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no file", p.Name) // but a link to what may change
		}
		if sum, err := process.Digest(unpacked); err != nil || sum != p.SHA256 {
			return errors.Join(err, fmt.Errorf("the SHA-256 of %s is %q, not %s", p.Name, sum, p.SHA256))
		}
	}
	for _, p := range programs {
		if err := b.put(filepath.Join(dir, p.Name), p.Name, p.Stamp); err != nil {
			return err
		}
	}
	return nil
}

// shell runs a script, and ends all of it with ctx.
func shell(ctx context.Context, script string, arguments ...string) error {
	command := exec.CommandContext(ctx, "bash", append([]string{"-o", "pipefail", "-c", script, "toolchain"}, arguments...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
