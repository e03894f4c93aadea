// Command greeter is an operator as people write them, with sigs.k8s.io/controller-runtime: it finds its API server as
// in-cluster clients do, elects a leader by a Lease, and answers each Greeting (a custom resource) in its status.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var greeting = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Greeting"}

type reconciler struct {
	client client.Client
	// Name of this pod, which says who has answered.
	name string
}

func (r reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(greeting)
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	to, _, _ := unstructured.NestedString(object.Object, "spec", "to")
	answer := "hello " + to
	before, _, _ := unstructured.NestedString(object.Object, "status", "answer")
	if before == answer {
		return ctrl.Result{}, nil
	}
	status := map[string]any{"answer": answer, "by": r.name}
	if err := unstructured.SetNestedMap(object.Object, status, "status"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.client.Status().Update(ctx, object)
}

func run() error {
	ctrl.SetLogger(zap.New())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	namespace := os.Getenv("POD_NAMESPACE")
	manager, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection:          true,
		LeaderElectionID:        "greeter",
		LeaderElectionNamespace: namespace,
		// The leader gives its Lease back when it is told to end.
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:                       server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(greeting)
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(manager).For(object).Complete(reconciler{manager.GetClient(), name}); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
