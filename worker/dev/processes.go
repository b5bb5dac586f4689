package dev

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// childrenOf returns the direct children of a process. It returns none where
// there is no proc file system.
func childrenOf(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var children []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// hasProc tells whether the functions here can see other processes.
func hasProc() bool {
	_, err := os.Stat("/proc/self/cwd")
	return err == nil
}

// processesIn returns the processes whose working folder is dir.
func processesIn(dir string) []int {
	target, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var found []int
	for _, link := range links {
		if cwd, err := os.Readlink(link); err != nil || cwd != target {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// awaitGone waits, for up to five seconds, until none of the processes is there.
func awaitGone(pids []int) error {
	const within = 5 * time.Second
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(within); ; <-look.C {
		left := pids[:0:0]
		for _, pid := range pids {
			if alive(pid) {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v are still there after %s", left, within)
		}
		pids = left
	}
}

// alive does not count a zombie, whose parent is slow to reap it.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// processesWith returns the processes that have the text in one of their
// arguments.
func processesWith(argument string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), argument) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() && alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}
