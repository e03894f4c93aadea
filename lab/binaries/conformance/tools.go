//go:build tools

// Package tools pins what `make conformance` runs: Kubernetes' own end-to-end suite, and the programs in its images.
package tools

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/images/agnhost"
	_ "k8s.io/kubernetes/test/images/nonewprivs"
)
