package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	pluginregistration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"persia/gcp"
)

// pluginSocket is where the kubelet looks for drivers of volumes.
const pluginSocket = "/var/lib/kubelet/plugins_registry/gcsfuse.sock"

// bucketDriver is the driver of buckets on a node. For each pod and bucket it runs gcsfuse, as GKE does in a
// container of the pod, and like GKE's it leaves a mount alone after gcsfuse has ended: only another pod
// gets a new one.
type bucketDriver struct {
	csi.UnimplementedNodeServer
	pluginregistration.UnimplementedRegistrationServer
	node, server string // server is the address of the server of the buckets
	logger       *slog.Logger
}

// serve serves the kubelet until the machine ends.
func (d *bucketDriver) serve() error {
	if err := os.Remove(pluginSocket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(pluginSocket), 0o750); err != nil {
		return err
	}
	listener, err := net.Listen("unix", pluginSocket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	csi.RegisterNodeServer(server, d)
	pluginregistration.RegisterRegistrationServer(server, d)
	return server.Serve(listener)
}

func (d *bucketDriver) GetInfo(context.Context, *pluginregistration.InfoRequest) (*pluginregistration.PluginInfo, error) {
	return &pluginregistration.PluginInfo{
		Type: "CSIPlugin", Name: gcp.DriverGCSFuse, Endpoint: pluginSocket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (d *bucketDriver) NotifyRegistrationStatus(_ context.Context, status *pluginregistration.RegistrationStatus) (*pluginregistration.RegistrationStatusResponse, error) {
	d.logger.Info("the kubelet has the driver of buckets", "registered", status.PluginRegistered, "error", status.Error)
	return &pluginregistration.RegistrationStatusResponse{}, nil
}

func (d *bucketDriver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *bucketDriver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume mounts a bucket for a pod. gcsfuse returns when it has mounted it, and runs on.
func (d *bucketDriver) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	target := request.GetTargetPath()
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), " "+target+" ") {
		return &csi.NodePublishVolumeResponse{}, err
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return nil, err
	}
	arguments := []string{
		"-o", "allow_other", "--temp-dir", filepath.Dir(target), "--log-file", logDir + "/gcsfuse.log", "--log-severity", "warning",
		"--anonymous-access", "--enable-hns=false", "--custom-endpoint", "http://" + d.server + "/storage/v1/",
	}
	for _, option := range request.GetVolumeCapability().GetMount().GetMountFlags() {
		arguments = append(arguments, flagOf(option))
	}
	output, err := exec.CommandContext(ctx, programsDir+"/gcsfuse", append(arguments, request.GetVolumeId(), target)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("gcsfuse: %w: %s", err, output)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// flagOf returns the flag of gcsfuse for a mount option, which may be a path in its configuration, like
// metadata-cache:ttl-secs:60.
func flagOf(option string) string {
	if at := strings.LastIndex(option, ":"); at >= 0 {
		option = strings.ReplaceAll(option[:at], ":", "-") + "=" + option[at+1:]
	}
	return "--" + option
}

func (d *bucketDriver) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	if err := unix.Unmount(target, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("unmount %s: %w", target, err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, os.RemoveAll(target)
}
