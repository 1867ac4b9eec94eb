package node

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"persia/sandbox/controlplane"
)

const (
	// restartDelay is the time between the end of a program and its next start.
	restartDelay = time.Second
	// containerdPoll and containerdPolls bound the wait for containerd.
	containerdPoll  = 200 * time.Millisecond
	containerdPolls = 300
	reapInterval    = time.Second
	servicePoll     = 200 * time.Millisecond
	// lastServiceChain is a chain that kube-proxy makes with its last rules.
	lastServiceChain = "KUBE-MARK-MASQ"
)

// Boot is the first process of a machine for the node. It returns only if the machine
// cannot start.
func Boot(o Options, node string, logger *slog.Logger) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("the machine has no process namespace of its own: its first process is %d, not 1", os.Getpid())
	}
	// The host closes its end once the network is there.
	if _, err := io.Copy(io.Discard, os.NewFile(3, "network")); err != nil {
		return err
	}
	// Nothing of the user's environment is for the machine's programs.
	os.Clearenv()
	if err := os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(node)); err != nil {
		return err
	}
	if err := o.enterRoot(); err != nil {
		return fmt.Errorf("root directory: %w", err)
	}
	if err := o.configureNetwork(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	go reapOrphans()
	keep(logger, "containerd", "--config", configDir+"/containerd.toml")
	if err := importImages(logger); err != nil {
		return fmt.Errorf("images: %w", err)
	}
	for _, command := range commands(linkOf(o.Dir).machine, node) {
		keep(logger, command...)
	}
	awaitServiceRules()
	keep(logger, networkPolicies(node)...)
	select {}
}

// awaitServiceRules waits until kube-proxy has written its rules. The program of the
// network policies reads a whole table of rules, changes it, and writes it back. If it did
// so while kube-proxy writes its first rules, these would fail, and kube-proxy writes them
// again only when a Service changes (OnServiceSynced in pkg/proxy/iptables/proxier.go).
func awaitServiceRules() {
	for exec.Command("iptables", "--table", "nat", "--list-rules", lastServiceChain).Run() != nil {
		time.Sleep(servicePoll)
	}
}

// networkPolicies is the command that enforces network policies.
func networkPolicies(node string) []string {
	return []string{
		programsDir + "/network-policies", "--kubeconfig", configDir + "/admin.kubeconfig",
		"--hostname-override", node, "--service-cluster-ip-range", serviceSubnet,
	}
}

// commands are those of all other programs except containerd.
func commands(address netip.Addr, node string) [][]string {
	return [][]string{
		{programsDir + "/coredns", "-conf", configDir + "/Corefile"},
		{programsDir + "/kube-proxy", "--config", configDir + "/kube-proxy.json", "--hostname-override", node},
		{
			programsDir + "/kubelet", "--config", configDir + "/kubelet.json",
			"--kubeconfig", configDir + "/kubelet.kubeconfig",
			"--hostname-override", node, "--node-ip", address.String(),
		},
	}
}

// configureNetwork gives the machine its addresses. There is no route to anything but
// the host's end of the link: what comes from elsewhere is never answered.
func (o Options) configureNetwork() error {
	l := linkOf(o.Dir)
	for _, command := range []string{
		"link set lo up",
		"addr add " + controlplane.AdvertisedAddress + "/32 dev lo",
		"addr add " + dnsAddress + "/32 dev lo",
		fmt.Sprintf("addr add %s/%d dev eth0", l.machine, l.prefix),
		"link set eth0 up",
		// Until kube-proxy knows a Service, what is sent to it gets lost and is sent
		// again, as on any node. Without a route, it would fail at once.
		"route add blackhole " + serviceSubnet,
	} {
		if err := ip(command); err != nil {
			return err
		}
	}
	return nil
}

// importImages gives containerd the images that there are, once it answers.
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

// keep runs a program, with its output in a file of its name, for as long as the machine
// is there. One that ends is started again, as by the service manager of an ordinary
// machine.
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

// reapOrphans lets go of processes that have ended and whose parents had ended before:
// the kernel makes them children of the first process. Its own children are waited for
// at once, and so are not found twice.
func reapOrphans() {
	ended := map[int]bool{}
	for range time.Tick(reapInterval) {
		now := map[int]bool{}
		for _, pid := range endedChildren() {
			if ended[pid] {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			} else {
				now[pid] = true
			}
		}
		ended = now
	}
}

// endedChildren are the children of the first process that nobody has waited for yet.
func endedChildren() []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// PID (NAME) STATE PARENT: the name may have anything in it.
		var state string
		var parent int
		_, err = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent)
		if err != nil || state != "Z" || parent != 1 {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
