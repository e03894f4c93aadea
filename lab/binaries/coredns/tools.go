//go:build tools

// Package tools pins the coredns binary that the lab builds.
package tools

import _ "github.com/coredns/coredns"
