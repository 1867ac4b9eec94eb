package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"persia/sandbox/files"
)

const (
	// restartDelay is the time between the end of a program and its next start.
	restartDelay = time.Second
	// containerdPoll and containerdPolls bound the wait for containerd.
	containerdPoll  = 200 * time.Millisecond
	containerdPolls = 300
	servicePoll     = 200 * time.Millisecond
	// lifeline is the file descriptor of the pipe from [machine.create].
	lifeline = 3
	// lastServiceChain is a chain that kube-proxy creates with its last rules.
	lastServiceChain = "KUBE-MARK-MASQ"
)

// Boot starts and keeps the programs of the machine in dir, a path on the host. It returns only if the
// machine cannot start. The machine's first process is a shell, which waits for Boot, and so for all
// processes that have lost their parents.
func Boot(dir string, logger *slog.Logger) error {
	if os.Getppid() != 1 || unix.Fstat(lifeline, &unix.Stat_t{}) != nil {
		return errors.New("this command runs the programs of a machine, and is not for people")
	}
	go endWithHost()
	node, err := os.Hostname()
	if err != nil {
		return err
	}
	for _, step := range []func() error{shareMounts, pretendSettings, leaveRootGroup} {
		if err := step(); err != nil {
			return err
		}
	}
	keep(logger, "containerd", "--config", configDir+"/containerd.toml")
	if err := importImages(logger); err != nil {
		return fmt.Errorf("images: %w", err)
	}
	keep(logger, programsDir+"/coredns", "-conf", configDir+"/Corefile")
	keep(logger, programsDir+"/kube-proxy", "--config", configDir+"/kube-proxy.yaml", "--hostname-override", node)
	keep(logger, programsDir+"/kubelet", "--config", configDir+"/kubelet.yaml", "--kubeconfig", configDir+"/kubelet.kubeconfig",
		"--hostname-override", node, "--node-ip", linkOf(dir).machine.String())
	if buckets := os.Getenv(bucketsVariable); buckets != "" {
		go func() {
			driver := &bucketDriver{node: node, server: buckets}
			logger.Error("the driver of buckets has ended", "error", driver.serve())
		}()
	}
	awaitServiceRules()
	keep(logger, programsDir+"/network-policies", "--kubeconfig", configDir+"/admin.kubeconfig",
		"--hostname-override", node, "--service-cluster-ip-range", serviceSubnet)
	select {}
}

// endWithHost ends the machine when the process on the host that runs it has ended: the first process
// ends with this one, and the kernel kills all others.
func endWithHost() {
	unix.CloseOnExec(lifeline)
	_, _ = io.Copy(io.Discard, os.NewFile(lifeline, "lifeline"))
	os.Exit(1)
}

// shareMounts lets pods see volumes that the kubelet mounts later, as Kubernetes requires of a node.
func shareMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share the mounts: %w", err)
	}
	return nil
}

// settings are the kernel settings that a kubelet requires. The kernel has them once, so
// the kubelet would change the host's.
var settings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// pretendSettings hides the kernel's settings from the machine behind files with the
// values that the kubelet requires. runc refuses to mount files in /proc.
func pretendSettings() error {
	for name, value := range settings {
		file := filepath.Join("/run/settings", name)
		if err := files.Write(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(file, filepath.Join("/proc/sys", name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}

// leaveRootGroup moves the first process and this one, and so the machine's programs, from the machine's root control
// group into one below it. In version 2, the kubelet could not limit the resources of pods otherwise: a group with
// processes of its own has no controllers for the groups below it.
func leaveRootGroup() error {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/cgroup.procs"); errors.Is(err, fs.ErrNotExist) {
		return nil // version 1
	}
	if err := os.MkdirAll(root+"/system", 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(root+"/system/cgroup.procs", []byte("1"), 0o644), os.WriteFile(root+"/system/cgroup.procs", []byte("0"), 0o644))
}

// awaitServiceRules waits until kube-proxy has written its rules. The network policy controller reads a whole table of
// rules, changes it, and writes it back. If it did so while kube-proxy writes its first rules, kube-proxy would fail,
// and only try again when a Service changes (OnServiceSynced in pkg/proxy/iptables/proxier.go).
func awaitServiceRules() {
	for exec.Command("iptables", "--table", "nat", "--list-rules", lastServiceChain).Run() != nil {
		time.Sleep(servicePoll)
	}
}

// importImages waits for containerd and imports all images.
func importImages(logger *slog.Logger) error {
	var err error
	for range containerdPolls {
		if err = ctr("version"); err == nil {
			break
		}
		time.Sleep(containerdPoll)
	}
	if err != nil {
		return fmt.Errorf("containerd does not answer: %w", err)
	}
	archives, err := filepath.Glob(imagesDir + "/*.tar")
	if err != nil {
		return err
	}
	for _, archive := range append(archives, configDir+"/"+pauseArchive) {
		started := time.Now()
		if err := ctr("images", "import", archive); err != nil {
			return err
		}
		logger.Info("imported", "archive", filepath.Base(archive), "seconds", time.Since(started).Seconds())
	}
	return nil
}

func ctr(arguments ...string) error {
	output, err := exec.Command("ctr", append([]string{"--namespace", "k8s.io"}, arguments...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

// keep runs a program and restarts it whenever it ends, as a service manager does. The program's output
// goes to a file with its name.
func keep(logger *slog.Logger, command ...string) {
	name := filepath.Base(command[0])
	go func() {
		for {
			err := run(filepath.Join(logDir, name+".log"), command)
			logger.Warn("a program has ended and is restarted", "program", name, "end", err)
			time.Sleep(restartDelay)
		}
	}()
}

func run(logFile string, command []string) error {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Run()
}
