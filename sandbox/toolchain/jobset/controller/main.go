// Command controller is the JobSet controller, run from outside the cluster.
//
// JobSet's own program reads its certificate from a folder of a fixed name below /tmp, into
// which a kubelet mounts the Secret. This one puts the Secret there itself, in a folder of
// its own, and listens where it is told. Controllers, webhooks and settings are JobSet's.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	configapi "sigs.k8s.io/jobset/api/config/v1alpha1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/config"
	"sigs.k8s.io/jobset/pkg/controllers"
	"sigs.k8s.io/jobset/pkg/webhooks"
)

// mountPeriod is how often the Secret is looked at: at first there is none, and the rotator waits.
const mountPeriod = 200 * time.Millisecond

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "jobset:", err)
		os.Exit(1)
	}
}

// flags are where the program runs, in addition to the flags of JobSet's own.
type flags struct {
	config, namespace, certificates string
	port, health                    int
}

func parse() flags {
	var f flags
	flag.StringVar(&f.config, "config", "", "the file of JobSet's settings")
	flag.StringVar(&f.namespace, "namespace", "", "the namespace of the pod")
	flag.StringVar(&f.certificates, "certificates", "", "a folder for the certificate of the webhooks")
	flag.IntVar(&f.port, "port", 0, "the port of the webhooks on loopback")
	flag.IntVar(&f.health, "health-port", 0, "the port on loopback that says whether the program is ready")
	opts := zap.Options{Development: true}
	opts.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts)))
	return f
}

func run() error {
	f := parse()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, jobset.AddToScheme, configapi.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	options, settings, err := config.Load(scheme, f.config)
	if err != nil {
		return err
	}
	options.HealthProbeBindAddress = fmt.Sprintf("127.0.0.1:%d", f.health)
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.LeaderElectionNamespace = f.namespace
	options.WebhookServer = webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: f.port, CertDir: f.certificates,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	})
	access, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	access.QPS, access.Burst = *settings.ClientConnection.QPS, int(*settings.ClientConnection.Burst)
	manager, err := ctrl.NewManager(access, options)
	if err != nil {
		return err
	}
	ready, err := certificates(manager, f, settings)
	if err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("readyz", serving(manager, ready)); err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := errors.Join(
		controllers.SetupJobSetIndexes(ctx, manager.GetFieldIndexer()),
		controllers.SetupPodIndexes(ctx, manager.GetFieldIndexer()),
	); err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() {
		if err := serve(manager, ready); err != nil {
			failed <- err
		}
	}()
	go func() { failed <- manager.Start(ctx) }()
	return <-failed
}

// certificates has the certificate made, as JobSet's own program does, and mounts it. The
// channel is closed when the webhooks can serve.
func certificates(manager ctrl.Manager, f flags, settings configapi.Configuration) (chan struct{}, error) {
	secret := types.NamespacedName{Namespace: f.namespace, Name: *settings.InternalCertManagement.WebhookSecretName}
	mounting := func(ctx context.Context) error { return mount(ctx, manager.GetAPIReader(), secret, f.certificates) }
	if err := manager.Add(runnable(mounting)); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	return ready, rotator.AddRotator(manager, &rotator.CertRotator{
		SecretKey:      secret,
		CertDir:        f.certificates,
		CAName:         "jobset-ca",
		CAOrganization: "jobset",
		DNSName:        *settings.InternalCertManagement.WebhookServiceName + "." + f.namespace + ".svc",
		IsReady:        ready,
		Webhooks: []rotator.WebhookInfo{
			{Type: rotator.Validating, Name: "jobset-validating-webhook-configuration"},
			{Type: rotator.Mutating, Name: "jobset-mutating-webhook-configuration"},
		},
	})
}

// serving is JobSet's own check: there is a certificate, and the webhooks listen.
func serving(manager ctrl.Manager, ready <-chan struct{}) func(*http.Request) error {
	return func(request *http.Request) error {
		select {
		case <-ready:
			return manager.GetWebhookServer().StartedChecker()(request)
		default:
			return errors.New("there is no certificate")
		}
	}
}

// runnable runs in every replica, and not only in the one that is elected.
type runnable func(context.Context) error

func (r runnable) Start(ctx context.Context) error { return r(ctx) }
func (runnable) NeedLeaderElection() bool          { return false }

// mount keeps the content of a Secret in a folder, as a kubelet does.
func mount(ctx context.Context, reader client.Reader, name types.NamespacedName, folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	written := ""
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		var secret corev1.Secret
		if err := reader.Get(ctx, name, &secret); err != nil || secret.ResourceVersion == written {
			return
		}
		for file, content := range secret.Data {
			if renameio.WriteFile(filepath.Join(folder, file), content, 0o600) != nil {
				return
			}
		}
		written = secret.ResourceVersion
	}, mountPeriod)
	return nil
}

// serve adds JobSet's controllers and webhooks once there is a certificate.
func serve(manager ctrl.Manager, ready <-chan struct{}) error {
	<-ready
	webhookOfJobSets, err := webhooks.NewJobSetWebhook(manager.GetClient())
	if err != nil {
		return err
	}
	return errors.Join(
		controllers.NewJobSetReconciler(manager.GetClient(), manager.GetScheme(), manager.GetEventRecorderFor("jobset")).SetupWithManager(manager),
		controllers.NewPodReconciler(manager.GetClient(), manager.GetScheme(), manager.GetEventRecorderFor("pod")).SetupWithManager(manager),
		webhookOfJobSets.SetupWebhookWithManager(manager),
	)
}
