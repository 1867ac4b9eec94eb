package images

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"

	"persia/sandbox/toolchain"
)

// nats returns the images of NATS and its operator.
func nats(tools toolchain.Tools) []Image {
	server := static("docker.io/library/nats:2.12.12", "nats-server", tools.Path("nats-server"))
	// The path in the command of the operator's pods.
	server.Layers[0]["nats-server"] = Symlink("usr/local/bin/nats-server")
	return []Image{
		server,
		static("docker.io/natsio/nats-operator:0.8.3", "nats-operator", tools.Path("nats-operator")),
	}
}

// jobSet returns the image of JobSet's own program, at the path of its Dockerfile.
func jobSet(tools toolchain.Tools) Image {
	files := skeleton()
	files["manager"] = Program(tools.Path("jobset-manager"))
	return Image{
		Names: []string{"registry.k8s.io/jobset/jobset:v0.11.1"}, Layers: []Layer{files},
		Environment: searchPath, Entrypoint: []string{"/manager"}, User: "65532:65532",
	}
}

// static returns the image of a statically linked program.
func static(reference, name, program string) Image {
	files := skeleton()
	files["usr/local/bin/"+name] = Program(program)
	return Image{Names: []string{reference}, Layers: []Layer{files}, Environment: searchPath}
}

// pushgateway returns the image of the Pushgateway. Like the published one, it has
// BusyBox: the completion of a job runs in this image and uses a shell, wget, and awk.
func pushgateway(ctx context.Context, tools toolchain.Tools) (Image, error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return Image{}, fmt.Errorf("%w: install it, for example with `apt-get install busybox`", err)
	}
	busybox, err = filepath.EvalSymlinks(busybox)
	if err != nil {
		return Image{}, err
	}
	files := skeleton()
	needed, err := libraries(ctx, []string{busybox}, "")
	if err != nil {
		return Image{}, err
	}
	maps.Copy(files, needed)
	files["usr/bin/busybox"] = Program(busybox)
	for _, applet := range []string{"sh", "wget", "awk", "cat", "date", "echo", "kill", "ls", "printf", "sleep", "timeout"} {
		files["usr/bin/"+applet] = Symlink("busybox")
	}
	files["usr/bin/pushgateway"] = Program(tools.Path("pushgateway"))
	return Image{
		// PERSIA's operator uses the tag latest.
		Names:       []string{"docker.io/prom/pushgateway:v1.11.1", "docker.io/prom/pushgateway:latest"},
		Layers:      []Layer{files},
		Environment: searchPath,
		Entrypoint:  []string{"/usr/bin/pushgateway"},
	}, nil
}
