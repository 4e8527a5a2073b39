// A stand-in for NVIDIA's device plugin: it speaks the kubelet's real gRPC API and reads the same configuration file, but takes the
// GPUs from `nvidia-smi -L`. It knows the device list strategies envvar and cdi-annotations, and time-slicing.
package main

import (
	"context"
	"fmt"
	"io/ioutil"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/yaml"
)

const (
	resource = "nvidia.com/gpu"
	socket   = api.DevicePluginPath + "gpu-ready-lab.sock"
	pause    = 2 * time.Second
	// NVIDIA's plugin looks for the driver's library there: its option --driver-root.
	driverRoot = "/driver-root"
)

var uuid = regexp.MustCompile(`UUID: (GPU-[0-9a-f-]+)`)

// config has the names of api/config/v1 of NVIDIA/k8s-device-plugin.
type config struct {
	Version string `json:"version"`
	Flags   struct {
		Plugin struct {
			DeviceListStrategy []string `json:"deviceListStrategy"`
		} `json:"plugin"`
	} `json:"flags"`
	Sharing struct {
		TimeSlicing struct {
			FailRequestsGreaterThanOne bool `json:"failRequestsGreaterThanOne"`
			Resources                  []struct {
				Name     string `json:"name"`
				Replicas int    `json:"replicas"`
			} `json:"resources"`
		} `json:"timeSlicing"`
	} `json:"sharing"`
}

type plugin struct {
	cdi        bool
	replicas   int
	onlySingle bool
	first      []string
}

func readConfig() (*plugin, error) {
	p := &plugin{replicas: 1, first: gpus()}
	path := os.Getenv("CONFIG_FILE")
	if path == "" {
		return p, nil
	}
	text, err := ioutil.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var c config
	if err := yaml.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	if c.Version != "v1" {
		return nil, fmt.Errorf("%s: unknown version %q", path, c.Version)
	}
	for _, strategy := range c.Flags.Plugin.DeviceListStrategy {
		switch strategy {
		case "envvar":
		case "cdi-annotations":
			p.cdi = true
		default:
			return nil, fmt.Errorf("%s: this stand-in has no device list strategy %q", path, strategy)
		}
	}
	for _, r := range c.Sharing.TimeSlicing.Resources {
		if r.Name == resource {
			p.replicas, p.onlySingle = r.Replicas, c.Sharing.TimeSlicing.FailRequestsGreaterThanOne
		}
	}
	return p, nil
}

func gpus() []string {
	smi := exec.Command("nvidia-smi", "-L")
	if _, err := os.Stat(driverRoot); err == nil { // without the runtime nvidia the container has no files of the driver
		smi = exec.Command("/usr/bin/nvidia-smi", "-L")
		smi.SysProcAttr = &syscall.SysProcAttr{Chroot: driverRoot}
	}
	out, err := smi.CombinedOutput()
	if err != nil {
		log.Printf("nvidia-smi -L: %v: %s", err, out)
	}
	found := []string{}
	for _, match := range uuid.FindAllSubmatch(out, -1) {
		found = append(found, string(match[1]))
	}
	return found
}

func (p *plugin) devices() []*api.Device {
	present := map[string]bool{}
	for _, id := range gpus() {
		present[id] = true
	}
	devices := []*api.Device{}
	for _, id := range p.first {
		health := api.Unhealthy
		if present[id] {
			health = api.Healthy
		}
		for n := 0; n < p.replicas; n++ {
			name := id
			if p.replicas > 1 {
				name = fmt.Sprintf("%s::%d", id, n)
			}
			devices = append(devices, &api.Device{ID: name, Health: health})
		}
	}
	return devices
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	last := ""
	for stream.Context().Err() == nil {
		devices := p.devices()
		if now := fmt.Sprint(devices); now != last {
			log.Printf("%d devices", len(devices))
			if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
				return err
			}
			last = now
		}
		time.Sleep(pause)
	}
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		if p.onlySingle && len(container.DevicesIDs) > 1 {
			return nil, fmt.Errorf("a container may ask for one shared GPU; this one asks for %d", len(container.DevicesIDs))
		}
		seen, ids, names := map[string]bool{}, []string{}, []string{}
		for _, device := range container.DevicesIDs {
			id := strings.SplitN(device, "::", 2)[0]
			if !seen[id] {
				seen[id] = true
				ids, names = append(ids, id), append(names, resource+"="+id)
			}
		}
		log.Printf("allocate %v", container.DevicesIDs)
		one := &api.ContainerAllocateResponse{}
		if p.cdi {
			one.Annotations = map[string]string{"cdi.k8s.io/gpu-ready-lab_" + ids[0]: strings.Join(names, ",")}
		} else {
			one.Envs = map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(ids, ",")}
		}
		answer.ContainerResponses = append(answer.ContainerResponses, one)
	}
	return answer, nil
}

func (p *plugin) PreStartContainer(context.Context, *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	return &api.PreStartContainerResponse{}, nil
}

func (p *plugin) GetPreferredAllocation(context.Context, *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	return &api.PreferredAllocationResponse{}, nil
}

func register() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	dial := func(ctx context.Context, path string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	connection, err := grpc.DialContext(ctx, api.KubeletSocket, grpc.WithInsecure(), grpc.WithBlock(), grpc.WithContextDialer(dial))
	if err != nil {
		return err
	}
	defer connection.Close()
	request := &api.RegisterRequest{Version: api.Version, Endpoint: filepath.Base(socket), ResourceName: resource}
	_, err = api.NewRegistrationClient(connection).Register(ctx, request)
	return err
}

// serve returns when the socket is removed: a kubelet that starts removes those of all plugins, which then have to register again.
func (p *plugin) serve() error {
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	defer server.Stop()
	if err := register(); err != nil {
		return err
	}
	log.Printf("registered %s with the kubelet", resource)
	for {
		if _, err := os.Stat(socket); err != nil {
			return fmt.Errorf("the kubelet has started again")
		}
		time.Sleep(pause)
	}
}

func main() {
	p, err := readConfig()
	if err != nil {
		log.Fatal(err)
	}
	for {
		log.Print(p.serve())
		time.Sleep(pause)
	}
}
