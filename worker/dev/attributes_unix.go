//go:build unix && !linux

package dev

import "syscall"

// attributes gives a child its own process group and the account. Only Linux
// can end a child with its parent.
func attributes(as *Account, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as.credential()}
}
