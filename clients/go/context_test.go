package taskyard

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeContext(t *testing.T, folder, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(folder, ".taskyard", "context.toml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestNearestFileAboveIsFound(t *testing.T) {
	folder := t.TempDir()
	file := writeContext(t, folder, `address = "a:1"`+"\n"+`key = "k"`, 0o600)
	below := filepath.Join(folder, "x", "y")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := findContext(nil, environment(nil), below)
	if err != nil || found.Address != "a:1" || found.Key != "k" || found.Tenant != "" || found.Source != file {
		t.Fatalf("%+v %v", found, err)
	}
}

func TestKeyOfAnotherServerIsNotUsed(t *testing.T) {
	folder := t.TempDir()
	writeContext(t, folder, `address = "a:1"`+"\n"+`key = "k"`+"\n"+`admin_key = "admin"`, 0o600)
	found, err := findContext(map[string]string{"address": "b:1"}, environment(nil), folder)
	if err != nil || found.Key != "" {
		t.Fatalf("%+v %v", found, err)
	}
	found, err = findContext(map[string]string{"address": "a:1", "key": "own"}, environment(nil), folder)
	if err != nil || found.Key != "own" || found.AdminKey != "" {
		t.Fatalf("an own key is for administrative calls too: %+v %v", found, err)
	}
}

func TestEnvironmentKeyIsNotSentToTheAddressOfAFile(t *testing.T) {
	folder := t.TempDir()
	writeContext(t, folder, `address = "a:1"`, 0o600)
	_, err := findContext(nil, environment(map[string]string{"TASKYARD_KEY": "k"}), folder)
	var invalid *ContextError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "TASKYARD_ADDRESS") {
		t.Fatal(err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for text, expected := range map[string]string{
		`address = `: "cannot be read", `adress = "a"`: `"adress"`, `address = 5`: "text in quotes",
		`expire_time = "soon"`: "2030-01-31T12:00:00Z",
	} {
		folder := t.TempDir()
		writeContext(t, folder, text, 0o600)
		if _, err := findContext(nil, environment(nil), folder); err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("%s: %v", text, err)
		}
	}
	folder := t.TempDir()
	writeContext(t, folder, `address = "a:1"`, 0o666)
	if _, err := findContext(nil, environment(nil), folder); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Error(err)
	}
}

func TestExpiredFileHasATypeOfItsOwn(t *testing.T) {
	folder := t.TempDir()
	writeContext(t, folder, `address = "a:1"`+"\n"+`expire_time = "2020-01-31T12:00:00Z"`, 0o600)
	_, err := findContext(nil, environment(nil), folder)
	var expired *ContextExpiredError
	if !errors.As(err, &expired) || expired.ExpireTime != "2020-01-31T12:00:00Z" {
		t.Fatal(err)
	}
	if _, err := findContext(map[string]string{"address": "b:1"}, environment(nil), folder); err != nil {
		t.Fatal(err)
	}
}

func TestNoServerIsConfigured(t *testing.T) {
	_, err := findContext(nil, environment(map[string]string{"HOME": t.TempDir()}), t.TempDir())
	var none *NoContextError
	if !errors.As(err, &none) {
		t.Fatal(err)
	}
}

func TestTenantOfALayerGoesWithItsKey(t *testing.T) {
	folder := t.TempDir()
	writeContext(t, folder, "address = \"a:1\"\nkey = \"k\"\nadmin_key = \"admin\"\ntenant = \"from-file\"", 0o600)
	found, err := findContext(nil, environment(map[string]string{"TASKYARD_ADDRESS": "a:1", "TASKYARD_KEY": "own"}), folder)
	if err != nil || found.Key != "own" || found.Tenant != "" {
		t.Fatalf("the tenant of another key is not used: %+v %v", found, err)
	}
	found, err = findContext(map[string]string{"tenant": "other"}, environment(nil), folder)
	if err != nil || found.Key != "admin" || found.Tenant != "other" {
		t.Fatalf("another tenant is accessible to the administrator only: %+v %v", found, err)
	}
}

func TestNamedContextIsChosen(t *testing.T) {
	home := t.TempDir()
	folder := filepath.Join(home, ".config", "taskyard")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "current = \"one\"\n[contexts.one]\naddress = \"a:1\"\n[contexts.two]\naddress = \"b:1\"\nkey = \"k\"\n"
	if err := os.WriteFile(filepath.Join(folder, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"HOME": home}
	found, err := findContext(nil, environment(variables), home)
	if err != nil || found.Address != "a:1" {
		t.Fatalf("%+v %v", found, err)
	}
	variables["TASKYARD_CONTEXT"] = "two"
	found, err = findContext(nil, environment(variables), home)
	if err != nil || found.Address != "b:1" || found.Key != "k" {
		t.Fatalf("%+v %v", found, err)
	}
	variables["TASKYARD_CONTEXT"] = "three"
	if _, err = findContext(nil, environment(variables), home); err == nil || !strings.Contains(err.Error(), "only: one, two") {
		t.Fatalf("%v", err)
	}
}
