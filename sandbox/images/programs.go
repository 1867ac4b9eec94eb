package images

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// natsServer is NATS as the NATS operator starts it.
func natsServer(_ context.Context, args Args) (image, error) {
	files := skeleton()
	files["usr/local/bin/nats-server"] = program(args.Tools.NATSServer)
	// The operator names it by this path.
	files["nats-server"] = symlink("usr/local/bin/nats-server")
	return image{names: []string{"docker.io/library/nats:2.10.22"}, layers: []layer{files}, environment: searchPath}, nil
}

// natsOperator is the NATS operator, which runs in its pod where the node is real.
func natsOperator(_ context.Context, args Args) (image, error) {
	files := skeleton()
	files["usr/local/bin/nats-operator"] = program(args.Tools.NATSOperator)
	return image{
		names:       []string{"docker.io/natsio/nats-operator:0.8.3"},
		layers:      []layer{files},
		environment: searchPath,
	}, nil
}

// reloader tells a NATS server that its configuration has changed.
func reloader(_ context.Context, args Args) (image, error) {
	files := skeleton()
	files["usr/local/bin/nats-server-config-reloader"] = program(args.Tools.NATSReloader)
	return image{
		names:       []string{"docker.io/natsio/nats-server-config-reloader:0.16.0"},
		layers:      []layer{files},
		environment: searchPath,
	}, nil
}

// pushgateway is the Pushgateway on BusyBox, as upstream's image is: the completion of
// a job runs in it, too, with its shell, wget and awk.
func pushgateway(ctx context.Context, args Args) (image, error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return image{}, fmt.Errorf("%w: install it, for example with `apt-get install busybox`", err)
	}
	busybox, err = filepath.EvalSymlinks(busybox)
	if err != nil {
		return image{}, err
	}
	files := skeleton()
	needed, err := libraries(ctx, []string{busybox}, "")
	if err != nil {
		return image{}, err
	}
	for name, library := range needed {
		files[name] = library
	}
	files["usr/bin/busybox"] = program(busybox)
	for _, applet := range []string{"sh", "wget", "awk", "cat", "date", "echo", "kill", "ls", "printf", "sleep", "timeout"} {
		files["usr/bin/"+applet] = symlink("busybox")
	}
	files["usr/bin/pushgateway"] = program(args.Tools.Pushgateway)
	return image{
		// PERSIA's operator names no version.
		names:       []string{"docker.io/prom/pushgateway:v1.11.1", "docker.io/prom/pushgateway:latest"},
		layers:      []layer{files},
		environment: searchPath,
		command:     []string{"/usr/bin/pushgateway"},
	}, nil
}
