package leasestore_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryTestThatAPromiseNamesExists(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	for _, file := range try(filepath.Glob("*_test.go")).or(t) {
		tests.Write(try(os.ReadFile(file)).or(t))
	}
	named := regexp.MustCompile(`Test[A-Z]\w+`).FindAllString(string(try(os.ReadFile("doc.go")).or(t)), -1)
	if len(named) < 15 {
		t.Errorf("doc.go names only %v", named)
	}
	for _, name := range named {
		if !strings.Contains(tests.String(), "func "+name+"(t *testing.T)") {
			t.Errorf("doc.go names %s, which does not exist", name)
		}
	}
}
