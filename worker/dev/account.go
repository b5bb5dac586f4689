package dev

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Account is an account of this machine.
type Account struct {
	Name     string
	UID, GID uint32
}

// unprivileged returns the account that programs which refuse root run under:
// postgres if there is one, otherwise nobody. It returns nil, for the caller's
// own account, if the caller is not root.
func unprivileged() (*Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &Account{Name: name, UID: uint32(uid), GID: uint32(gid)}, nil
		}
	}
	return nil, &MissingError{
		What: "an account for PostgreSQL, which refuses to run as root,",
		Cure: "create one (adduser --system --group postgres) or start this command as an ordinary user",
	}
}

func (a *Account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.UID, Gid: a.GID}
}

// adopt makes dir if it is not there and gives it to the account. It returns an
// error if the account cannot reach it, because a folder above is closed.
func (a *Account) adopt(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if a == nil {
		return nil
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil {
			return err
		}
		if !a.mayEnter(info) {
			return fmt.Errorf("account %s cannot reach %s, because %s is closed to it: use another folder, such as one in /var/lib",
				a.Name, dir, parent)
		}
		if parent == filepath.Dir(parent) {
			break
		}
	}
	return os.Chown(dir, int(a.UID), int(a.GID))
}

func (a *Account) mayEnter(folder os.FileInfo) bool {
	bit := os.FileMode(0o001)
	if owner, ok := folder.Sys().(*syscall.Stat_t); ok {
		switch {
		case owner.Uid == a.UID:
			bit = 0o100
		case owner.Gid == a.GID:
			bit = 0o010
		}
	}
	return folder.Mode().Perm()&bit != 0
}
