package dev

import "syscall"

// attributes gives a child its own process group, the account, and its stop
// signal in case the parent dies. The stop signal rather than SIGKILL lets
// PostgreSQL write its data and lets Docker end its containers.
func attributes(as *Account, onParentDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onParentDeath, Credential: as.credential()}
}
