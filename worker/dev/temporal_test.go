package dev_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/worker/dev"
)

func describe(t *testing.T, address, namespace string) error {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(t, err)
	defer conn.Close()
	_, err = workflowservice.NewWorkflowServiceClient(conn).DescribeNamespace(t.Context(),
		&workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	return err
}

func TestTemporalFindsItsDataAgain(t *testing.T) {
	t.Parallel()
	opts := dev.TemporalOptions{DBFile: filepath.Join(t.TempDir(), "temporal.db"), Namespaces: []string{"kept"}}
	first := started[*dev.Temporal](t)(dev.StartTemporal(t.Context(), opts))
	check(t, describe(t, first.Address(), "kept"))
	ui, err := http.Get(first.UIURL())
	check(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer ui.Body.Close()
	if ui.StatusCode != http.StatusOK {
		t.Errorf("the Web UI answers %s", ui.Status)
	}
	check(t, first.Kill())
	check(t, first.Restart(t.Context()))
	check(t, describe(t, first.Address(), "kept"))
	check(t, first.Stop(t.Context()))

	opts.Namespaces = nil
	second := started[*dev.Temporal](t)(dev.StartTemporal(t.Context(), opts))
	check(t, describe(t, second.Address(), "kept"))
}

func TestTwoTemporalServersStandSideBySide(t *testing.T) {
	t.Parallel()
	one := started[*dev.Temporal](t)(dev.StartTemporal(t.Context(),
		dev.TemporalOptions{LogDir: t.TempDir(), Headless: true, Namespaces: []string{"one"}}))
	two := started[*dev.Temporal](t)(dev.StartTemporal(t.Context(), dev.TemporalOptions{LogDir: t.TempDir(), Headless: true}))
	check(t, describe(t, one.Address(), "one"))
	if err := describe(t, two.Address(), "one"); status.Code(err) != codes.NotFound {
		t.Errorf("the second server knows a namespace of the first: %v", err)
	}
	if one.UIURL() != "" {
		t.Errorf("a headless server has a Web UI at %s", one.UIURL())
	}
}

func TestTheTemporalCommandOfTheEnvironmentMustExist(t *testing.T) {
	t.Setenv("LEASEHOLD_TEMPORAL", filepath.Join(t.TempDir(), "temporal"))
	_, err := dev.FindTemporal()
	if _, ok := errors.AsType[*dev.MissingError](err); !ok {
		t.Errorf("got %v, want a MissingError", err)
	}
}
