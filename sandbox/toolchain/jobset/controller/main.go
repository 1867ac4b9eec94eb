// Command controller is the JobSet controller, run from outside the cluster.
//
// JobSet's own program reads its certificate from a folder of a fixed name below /tmp. This one reads
// it from the folder that its settings name. Controllers, webhooks and settings are JobSet's.
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	configapi "sigs.k8s.io/jobset/api/config/v1alpha1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/config"
	"sigs.k8s.io/jobset/pkg/controllers"
	"sigs.k8s.io/jobset/pkg/webhooks"
)

func main() {
	file := flag.String("config", "", "the file of JobSet's settings")
	namespace := flag.String("namespace", "", "the namespace of the pod")
	opts := zap.Options{Development: true}
	opts.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts)))
	if err := run(*file, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "jobset:", err)
		os.Exit(1)
	}
}

func run(file, namespace string) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), jobset.AddToScheme(scheme), configapi.AddToScheme(scheme)); err != nil {
		return err
	}
	options, settings, err := config.Load(scheme, file)
	if err != nil {
		return err
	}
	options.WebhookServer = webhook.NewServer(webhook.Options{
		Host: settings.Webhook.Host, Port: *settings.Webhook.Port, CertDir: settings.Webhook.CertDir,
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
	ready := make(chan struct{})
	if err := rotator.AddRotator(manager, &rotator.CertRotator{
		SecretKey:      types.NamespacedName{Namespace: namespace, Name: *settings.InternalCertManagement.WebhookSecretName},
		CertDir:        settings.Webhook.CertDir,
		CAName:         "jobset-ca",
		CAOrganization: "jobset",
		DNSName:        *settings.InternalCertManagement.WebhookServiceName + "." + namespace + ".svc",
		IsReady:        ready,
		Webhooks: []rotator.WebhookInfo{
			{Type: rotator.Validating, Name: "jobset-validating-webhook-configuration"},
			{Type: rotator.Mutating, Name: "jobset-mutating-webhook-configuration"},
		},
	}); err != nil {
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
		<-ready
		if err := serve(manager); err != nil {
			failed <- err
		}
	}()
	go func() { failed <- manager.Start(ctx) }()
	return <-failed
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

// serve adds JobSet's controllers and webhooks.
func serve(manager ctrl.Manager) error {
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
