//go:build tools

// Package tools pins the wireguard-go binary that the lab builds and puts into the image of Tributary.
package tools

import _ "golang.zx2c4.com/wireguard"
