package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const oldestPostgres = 14

// findPostgres returns the folder with initdb and postgres of the wanted major
// version; 0 is any from 14 on. What PATH has comes first, then the highest
// version in the folders of the usual packages.
func findPostgres(ctx context.Context, wanted int) (string, error) {
	var best string
	bestMajor := 0
	for i, dir := range postgresDirs() {
		major := postgresMajor(ctx, dir)
		if wanted != 0 && major != wanted || major < oldestPostgres {
			continue
		}
		if i == 0 {
			return dir, nil
		}
		if major > bestMajor {
			best, bestMajor = dir, major
		}
	}
	switch {
	case best != "":
		return best, nil
	case wanted != 0:
		return "", &MissingError{
			What: fmt.Sprintf("PostgreSQL %d, which made the data that is there,", wanted),
			Cure: "install that version, or use another folder for new data",
		}
	default:
		return "", &MissingError{
			What: "PostgreSQL 14 or later",
			Cure: "install it (Debian: apt-get install postgresql) or set DATABASE_URL",
		}
	}
}

// postgresDirs returns the folder that PATH leads to first, or "", and then the
// folders that packages of Debian, Red Hat and Homebrew use.
func postgresDirs() []string {
	dirs := []string{""}
	if path, err := exec.LookPath("initdb"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil { // the link may stand apart from postgres
			dirs[0] = filepath.Dir(target)
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the only error is a bad pattern
		dirs = append(dirs, found...)
	}
	return dirs
}

var postgresVersion = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// postgresMajor returns 0 for a folder without a complete PostgreSQL server.
func postgresMajor(ctx context.Context, dir string) int {
	if dir == "" {
		return 0
	}
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	match := postgresVersion.FindSubmatch(out)
	if match == nil {
		return 0
	}
	major, err := strconv.Atoi(string(match[1]))
	if err != nil {
		return 0
	}
	return major
}

// initialise makes a new cluster. It works beside the final folder and renames
// at the end, so that half a cluster is never taken for a whole one.
func (c *cluster) initialise(ctx context.Context) error {
	unfinished := c.dir + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	if err := c.account.adopt(unfinished); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	initdb := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), "-D", unfinished, "--username=postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
	initdb.Dir = unfinished
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: c.account.credential()}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(unfinished, c.dir); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	return nil
}

// removeStaleMark removes the postmaster.pid of a PostgreSQL that is gone.
// PostgreSQL does this too, unless the number belongs to some other process of
// the account by now, as happens after the machine was started anew. The mark
// also keeps a new PostgreSQL from the data while sessions of a killed one still
// use it, so it is removed only when nobody works in the folder.
func (c *cluster) removeStaleMark() error {
	file := filepath.Join(c.dir, "postmaster.pid")
	mark, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) || !hasProc() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	first, _, _ := strings.Cut(string(mark), "\n")
	users := processesIn(c.dir)
	if pid, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && slices.Contains(users, pid) {
		return fmt.Errorf("start PostgreSQL: process %d serves %s already: stop it first", pid, c.dir)
	}
	if err := awaitGone(users); err != nil {
		return fmt.Errorf("start PostgreSQL: %s is in use: %w", c.dir, err)
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	return nil
}
