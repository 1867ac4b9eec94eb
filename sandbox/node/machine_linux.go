package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"

	"persia/sandbox/controlplane"
	"persia/sandbox/node/cgroup"
)

// machine is a running one.
type machine struct {
	options Options
	cmd     *exec.Cmd
	// plugged is closed once the machine has its network.
	plugged *os.File
	relays  []net.Listener
}

// runMachine runs a machine for a node until ctx ends or the machine does. It leaves
// nothing behind but the machine's disk.
//
// The kernel ends the machine with the thread that has started it, so that a killed
// host process leaves none behind either.
func runMachine(ctx context.Context, o Options, node string, logger *slog.Logger) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// An earlier machine may have been killed.
	if err := CleanUp(ctx, o.Dir); err != nil {
		return err
	}
	defer func() {
		if err := CleanUp(ctx, o.Dir); err != nil {
			logger.Error("clean up", "error", err)
		}
	}()
	group := cgroupOf(o.Dir)
	if err := o.prepare(node, group); err != nil {
		return err
	}
	m, err := start(o, node)
	if err != nil {
		return err
	}
	if err := m.connect(ctx, group); err != nil {
		m.closeRelays()
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		return fmt.Errorf("connect the machine: %w", err)
	}
	defer m.closeRelays()
	stop := context.AfterFunc(ctx, func() { _ = m.cmd.Process.Kill() })
	defer stop()
	err = m.cmd.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the machine has stopped: %v", err)
}

// CleanUp removes what the kernel keeps of the machine in dir, whose processes have
// ended: its end of the link, which the kernel lets go in its own time, and its control
// groups.
func CleanUp(ctx context.Context, dir string) error {
	if link := linkOf(dir).name; exists(link) {
		if err := ip("link del " + link); err != nil && exists(link) {
			return err
		}
	}
	return cgroup.Remove(ctx, cgroupOf(dir))
}

// Remains are what the kernel has of the machine in dir: the host's end of its link, and
// its control group in each hierarchy. Of one that was cleaned up, it has none.
func Remains(dir string) ([]string, error) {
	remains, err := cgroup.Find(cgroupOf(dir))
	if link := linkOf(dir).name; exists(link) {
		remains = append(remains, link)
	}
	return remains, err
}

// PeakMemory is the most memory, in bytes, that the node in dir has used so far, its
// pods and its page cache included.
func PeakMemory(dir string) (int64, error) {
	peak, err := cgroup.PeakMemory(cgroupOf(dir))
	if err != nil {
		return 0, fmt.Errorf("the node in %s: %w", dir, err)
	}
	return peak, nil
}

// cgroupOf names the control group of the machine in dir.
func cgroupOf(dir string) string { return "persia-" + linkOf(dir).name }

func exists(link string) bool {
	_, err := net.InterfaceByName(link)
	return err == nil
}

// prepare writes what the machine's programs read.
func (o Options) prepare(node, group string) error {
	if err := os.MkdirAll(o.path(configDir), 0o755); err != nil {
		return err
	}
	if err := o.writeConfigs(group); err != nil {
		return err
	}
	if err := o.writeCredentials(node); err != nil {
		return err
	}
	if err := writePauseImage(o.path(configDir, pauseArchive), o.Tools.Pause); err != nil {
		return fmt.Errorf("image %s: %w", pauseImage, err)
	}
	return cgroup.Make(group)
}

// start starts the machine's first process, which waits for the network.
func start(o Options, node string) (*machine, error) {
	if err := o.Write(o.path(configDir, "options.json")); err != nil {
		return nil, err
	}
	wait, plugged, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = wait.Close() }()
	cmd := exec.Command("/proc/self/exe", "machine", "--options", o.path(configDir, "options.json"), "--node", node)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{wait}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
		Setsid:     true,
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the machine: %w", err)
	}
	return &machine{options: o, cmd: cmd, plugged: plugged}, nil
}

// connect links the machine with the host, relays the control plane into it, and lets
// it go on.
func (m *machine) connect(ctx context.Context, group string) error {
	pid := m.cmd.Process.Pid
	if err := cgroup.Join(group, pid); err != nil {
		return err
	}
	l := linkOf(m.options.Dir)
	for _, command := range []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", l.name, pid),
		fmt.Sprintf("addr add %s/%d dev %s", l.host, l.prefix, l.name),
		fmt.Sprintf("link set %s up", l.name),
	} {
		if err := ip(command); err != nil {
			return err
		}
	}
	server, err := apiServer(m.options.Kubeconfig)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(server)
	if err != nil {
		return err
	}
	// The machine's own programs call the API server by the address that the host has
	// for it, and pods by the address of its Service.
	for _, address := range []string{
		net.JoinHostPort("127.0.0.1", port),
		net.JoinHostPort(controlplane.AdvertisedAddress, strconv.Itoa(controlplane.AdvertisedPort)),
	} {
		listener, err := listenIn(pid, address)
		if err != nil {
			return err
		}
		m.relays = append(m.relays, listener)
		go relay(ctx, listener, server)
	}
	return m.plugged.Close()
}

func (m *machine) closeRelays() {
	for _, listener := range m.relays {
		_ = listener.Close()
	}
}

// apiServer is the address of the API server, as host:port.
func apiServer(kubeconfig string) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", err
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		return "", err
	}
	return address.Host, nil
}

// ip runs the command of that name.
func ip(arguments string) error {
	output, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", arguments, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// listenIn listens in the network of the process pid, which need not have the address
// yet.
func listenIn(pid int, address string) (net.Listener, error) {
	type result struct {
		listener net.Listener
		err      error
	}
	done := make(chan result)
	go func() {
		// The thread is not unlocked, and so ends with the goroutine: it is of another
		// network than the rest of the process.
		runtime.LockOSThread()
		listener, err := func() (net.Listener, error) {
			network, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/net")
			if err != nil {
				return nil, err
			}
			defer func() { _ = network.Close() }()
			if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
				return nil, fmt.Errorf("enter the machine's network: %w", err)
			}
			early := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) error {
				var set error
				err := socket.Control(func(fd uintptr) {
					set = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1)
				})
				return errors.Join(err, set)
			}}
			return early.Listen(context.Background(), "tcp", address)
		}()
		done <- result{listener, err}
	}()
	r := <-done
	return r.listener, r.err
}

// relay passes what connects to the listener on to the address, until the listener is
// closed.
func relay(ctx context.Context, listener net.Listener, address string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = client.Close() }()
			var dialer net.Dialer
			server, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			go func() {
				_, _ = io.Copy(server, client)
				_ = server.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(client, server)
		}()
	}
}
