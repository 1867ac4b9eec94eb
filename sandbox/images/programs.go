package images

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"

	"persia/sandbox/images/archive"
	"persia/sandbox/toolchain"
)

// nats returns the images of NATS and its operator.
func nats(tools toolchain.Tools) []archive.Image {
	server := static("docker.io/library/nats:2.10.22", "nats-server", tools.NATSServer)
	// The path in the command of the operator's pods.
	server.Layers[0]["nats-server"] = archive.Symlink("usr/local/bin/nats-server")
	return []archive.Image{
		server,
		static("docker.io/natsio/nats-operator:0.8.3", "nats-operator", tools.NATSOperator),
		static("docker.io/natsio/nats-server-config-reloader:0.16.0", "nats-server-config-reloader", tools.NATSReloader),
	}
}

// jobSet returns the image of JobSet's own program, at the path of its Dockerfile.
func jobSet(tools toolchain.Tools) archive.Image {
	files := skeleton()
	files["manager"] = archive.Program(tools.JobSetManager)
	return archive.Image{
		Names: []string{"registry.k8s.io/jobset/jobset:v0.10.1"}, Layers: []archive.Layer{files},
		Environment: searchPath, Entrypoint: []string{"/manager"}, User: "65532:65532",
	}
}

// static returns the image of a statically linked program.
func static(reference, name, program string) archive.Image {
	files := skeleton()
	files["usr/local/bin/"+name] = archive.Program(program)
	return archive.Image{Names: []string{reference}, Layers: []archive.Layer{files}, Environment: searchPath}
}

// pushgateway returns the image of the Pushgateway. Like the published one, it has
// BusyBox: the completion of a job runs in this image and uses a shell, wget, and awk.
func pushgateway(ctx context.Context, tools toolchain.Tools) (archive.Image, error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return archive.Image{}, fmt.Errorf("%w: install it, for example with `apt-get install busybox`", err)
	}
	busybox, err = filepath.EvalSymlinks(busybox)
	if err != nil {
		return archive.Image{}, err
	}
	files := skeleton()
	needed, err := libraries(ctx, []string{busybox}, "")
	if err != nil {
		return archive.Image{}, err
	}
	maps.Copy(files, needed)
	files["usr/bin/busybox"] = archive.Program(busybox)
	for _, applet := range []string{"sh", "wget", "awk", "cat", "date", "echo", "kill", "ls", "printf", "sleep", "timeout"} {
		files["usr/bin/"+applet] = archive.Symlink("busybox")
	}
	files["usr/bin/pushgateway"] = archive.Program(tools.Pushgateway)
	return archive.Image{
		// PERSIA's operator uses the tag latest.
		Names:       []string{"docker.io/prom/pushgateway:v1.11.1", "docker.io/prom/pushgateway:latest"},
		Layers:      []archive.Layer{files},
		Environment: searchPath,
		Entrypoint:  []string{"/usr/bin/pushgateway"},
	}, nil
}
