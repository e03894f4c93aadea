//go:build tools

// Package tools pins the helm binary that the lab builds.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
