package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

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
	// Stamp is the digest of the sources of the program.
	Stamp  string `json:"stamp"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func readRecord(moduleRoot string) (r record, err error) {
	text, err := os.ReadFile(filepath.Join(moduleRoot, recordFile))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

func (r record) write(moduleRoot string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(moduleRoot, recordFile), append(text, '\n'), 0o644)
}

// find returns the program that is exactly the tool, compiled for this machine by the Go that is used
// here, or says why there is none.
func (r record) find(t tool, b *builder) (program, error) {
	if r.Go != b.goVersion || r.Platform != platform {
		return program{}, fmt.Errorf("it is compiled by %s for %s, and this is %s on %s", r.Go, r.Platform, b.goVersion, platform)
	}
	i := slices.IndexFunc(r.Programs, func(p program) bool { return p.Name == t.name })
	if i < 0 {
		return program{}, errors.New("it is not there")
	}
	stamp, err := b.stamp(t)
	if err == nil && r.Programs[i].Stamp != stamp {
		err = fmt.Errorf("%s there is compiled from other sources", r.Programs[i].Version)
	}
	return r.Programs[i], err
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

// pack writes other files of binDir and the programs to an archive, without times and owners.
// scripts/compile-sandbox.sh reads no further than to the first, the sandbox command.
func (b *builder) pack(ctx context.Context, tools []tool, others []string, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	const script = `tar -ch --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=755 "${@:2}" | gzip -n > "$1.building" && mv "$1.building" "$1"`
	arguments := append([]string{file, "-C", b.binDir}, others...)
	for _, t := range tools {
		arguments = append(arguments, t.name)
	}
	return shell(ctx, script, arguments...)
}

// Take copies programs that are missing or out of date in binDir from an archive, which is a file or a
// URL. It takes only what is recorded in the module root, and writes to progress why it does not take
// a program. [Build] compiles the rest.
func Take(ctx context.Context, archive, moduleRoot, binDir string, progress io.Writer) error {
	b, err := newBuilder(ctx, moduleRoot, binDir)
	if err != nil {
		return err
	}
	if err := b.takeFrom(ctx, archived, archive, progress); err != nil {
		return fmt.Errorf("toolchain: %w", err)
	}
	return nil
}

func (b *builder) takeFrom(ctx context.Context, tools []tool, archive string, progress io.Writer) error {
	if stale, err := b.stale(tools); err != nil || len(stale) == 0 {
		return err
	}
	if err := os.MkdirAll(b.binDir, 0o755); err != nil {
		return err
	}
	unlock, err := process.Lock(ctx, filepath.Join(b.binDir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	stale, err := b.stale(tools)
	if err != nil || len(stale) == 0 {
		return err
	}
	recorded, err := readRecord(b.moduleRoot)
	if err != nil {
		return err
	}
	var wanted []program
	for _, t := range tools {
		if !slices.Contains(stale, t.name) {
			continue
		}
		p, err := recorded.find(t, b)
		if err != nil {
			fmt.Fprintf(progress, "toolchain: %s is not taken from the archive: %v\n", t.name, err)
			continue
		}
		wanted = append(wanted, p)
	}
	if len(wanted) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp(b.binDir, ".archive")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// What is not in the archive, or behind its damage, is missing in dir.
	unpacked := b.unpack(ctx, archive, dir, wanted)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, p := range wanted {
		if err := b.install(p, filepath.Join(dir, p.Name)); err != nil {
			fmt.Fprintf(progress, "toolchain: %s is not taken from the archive: %v\n", p.Name, err)
			continue
		}
		fmt.Fprintf(progress, "toolchain: %s %s taken from the archive\n", p.Name, p.Version)
	}
	if unpacked != nil {
		fmt.Fprintf(progress, "toolchain: the archive %s: %v\n", archive, unpacked)
	}
	return nil
}

// unpack unpacks programs of an archive into a folder. A server may send nothing for some seconds. Root, too,
// owns what it unpacks.
func (b *builder) unpack(ctx context.Context, archive, dir string, programs []program) error {
	const script = `case $1 in
http://*|https://*) curl --fail --location --silent --show-error --connect-timeout "$2" --speed-limit 1 --speed-time "$2" "$1" ;;
*) cat -- "$1" ;;
esac | tar -xz --no-same-owner -C "$3" "${@:4}"`
	arguments := []string{archive, fmt.Sprint(b.patience.Seconds()), dir}
	for _, p := range programs {
		arguments = append(arguments, p.Name)
	}
	return shell(ctx, script, arguments...)
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

// install puts the recorded program and its stamp into binDir, or leaves what was there before.
func (b *builder) install(p program, unpacked string) error {
	if info, err := os.Lstat(unpacked); err == nil && !info.Mode().IsRegular() {
		return errors.New("it is no file") // but a link to what may change
	}
	_, sum, err := digest(unpacked)
	if err != nil {
		return err
	}
	if sum != p.SHA256 {
		return fmt.Errorf("its SHA-256 is %s, not %s", sum, p.SHA256)
	}
	binary := filepath.Join(b.binDir, p.Name)
	if err := os.RemoveAll(stampFile(binary)); err != nil {
		return err
	}
	if err := os.Rename(unpacked, binary); err != nil {
		return err
	}
	return renameio.WriteFile(stampFile(binary), []byte(p.Stamp), 0o644)
}
