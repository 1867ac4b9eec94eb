package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
// container of the pod. Like GKE's, it gives a pod no other mount when gcsfuse has ended.
type bucketDriver struct {
	csi.UnimplementedNodeServer
	pluginregistration.UnimplementedRegistrationServer
	node, server string // server is the address of the server of the buckets
}

// serve serves the kubelet until the machine ends.
func (d *bucketDriver) serve() error {
	_ = os.Remove(pluginSocket) // of the machine before it was started again
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
	return &pluginregistration.PluginInfo{Type: "CSIPlugin", Name: gcp.DriverGCSFuse, Endpoint: pluginSocket,
		SupportedVersions: []string{"1.0.0"}}, nil
}

func (d *bucketDriver) NotifyRegistrationStatus(context.Context,
	*pluginregistration.RegistrationStatus) (*pluginregistration.RegistrationStatusResponse, error) {
	return &pluginregistration.RegistrationStatusResponse{}, nil
}

func (d *bucketDriver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *bucketDriver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume mounts a bucket for a pod. gcsfuse returns when it has mounted it, and runs on.
func (d *bucketDriver) NodePublishVolume(ctx context.Context,
	request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	target := request.GetTargetPath()
	if err := os.MkdirAll(target, 0o750); err != nil {
		return nil, err
	}
	arguments := []string{
		"-o", "allow_other", "--temp-dir", filepath.Dir(target), "--log-file", logDir + "/gcsfuse.log", "--log-severity", "warning",
		"--anonymous-access", "--enable-hns=false", "--custom-endpoint", "http://" + d.server + "/storage/v1/",
	}
	for _, option := range request.GetVolumeCapability().GetMount().GetMountFlags() {
		// An option may be a path in gcsfuse's configuration, like metadata-cache:ttl-secs:60.
		if at := strings.LastIndex(option, ":"); at >= 0 {
			option = strings.ReplaceAll(option[:at], ":", "-") + "=" + option[at+1:]
		}
		arguments = append(arguments, "--"+option)
	}
	output, err := exec.CommandContext(ctx, programsDir+"/gcsfuse", append(arguments, request.GetVolumeId(), target)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("gcsfuse: %w: %s", err, output)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (d *bucketDriver) NodeUnpublishVolume(_ context.Context,
	request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	_ = unix.Unmount(target, unix.MNT_DETACH) // unless that was done before
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
