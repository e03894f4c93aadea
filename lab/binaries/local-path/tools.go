//go:build tools

// Package tools pins the local-path-provisioner binary that the lab builds.
package tools

import _ "github.com/rancher/local-path-provisioner"
