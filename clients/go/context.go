package taskyard

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"
)

// Context holds the servers, the key and the tenant that a client uses. Source names where the address came from.
type Context struct {
	Address   string
	Scheduler string
	Key       string
	// AdminKey is for administrative calls; if empty, Key is used.
	AdminKey string
	Tenant   string
	// TLSCA is the file of the authority that signed the servers' certificates.
	TLSCA string
	// Gateway is where HTTP is served; of use to other tools.
	Gateway string
	// ExpireTime is when the context file ceases to be good, in RFC 3339; empty if it does not.
	ExpireTime string
	Source     string
}

const defaultTenant = "default"

// names lists the settings in the spelling of the context file, with the environment variable of each.
var names = map[string]string{
	"address":     "TASKYARD_ADDRESS",
	"scheduler":   "TASKYARD_SCHEDULER",
	"key":         "TASKYARD_KEY",
	"admin_key":   "TASKYARD_ADMIN_KEY",
	"tenant":      "TASKYARD_TENANT",
	"tls_ca":      "TASKYARD_TLS_CA",
	"gateway":     "",
	"expire_time": "",
}

// layer is one place that settings come from; an earlier layer wins.
type layer struct {
	source  string
	values  map[string]string
	isFile  bool
	problem error
}

// FindContext returns the effective context. Each layer (given, the environment, files) fills in values that earlier ones
// did not set. A layer with a different address is skipped, since its key belongs to another server; for the same reason
// a key of the environment is not sent to an address that only a file names.
func FindContext(given map[string]string) (*Context, error) {
	start, err := os.Getwd()
	if err != nil {
		return nil, &ContextError{Message: err.Error()}
	}
	return findContext(given, os.Getenv, start)
}

func findContext(given map[string]string, getenv func(string) string, start string) (*Context, error) {
	address, source := "", ""
	found := map[string]string{}
	for _, each := range layers(given, getenv, start) {
		if each.problem != nil {
			if address == "" {
				return nil, each.problem
			}
			continue
		}
		named, has := each.values["address"]
		if address != "" && has && named != address {
			continue
		}
		if address == "" && has {
			address, source = named, each.source
			if each.isFile {
				if err := refuseBareKeys(given, getenv, each.source); err != nil {
					return nil, err
				}
			}
		}
		_, hasKey := found["key"]
		for name, value := range each.values {
			// An earlier key is used for administrative calls too.
			if _, set := found[name]; !set && (name != "admin_key" || !hasKey) {
				found[name] = value
			}
		}
	}
	if address == "" {
		return nil, &NoContextError{}
	}
	if found["tenant"] == "" {
		found["tenant"] = defaultTenant
	}
	return &Context{
		Address: address, Scheduler: found["scheduler"], Key: found["key"], AdminKey: found["admin_key"],
		Tenant: found["tenant"], TLSCA: found["tls_ca"], Gateway: found["gateway"], ExpireTime: found["expire_time"],
		Source: source,
	}, nil
}

func layers(given map[string]string, getenv func(string) string, start string) []layer {
	arguments, environment := map[string]string{}, map[string]string{}
	for name, variable := range names {
		if value := given[name]; value != "" {
			arguments[name] = value
		}
		if variable != "" && getenv(variable) != "" {
			environment[name] = getenv(variable)
		}
	}
	found := []layer{{source: "option", values: arguments}, {source: "TASKYARD_ADDRESS", values: environment}}
	for _, file := range contextFiles(getenv, start) {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			found = append(found, readLayer(file, info))
		}
	}
	return found
}

func contextFiles(getenv func(string) string, start string) []string {
	var files []string
	for folder := start; ; folder = filepath.Dir(folder) {
		nearby := filepath.Join(folder, ".taskyard", "context.toml")
		if info, err := os.Stat(nearby); err == nil && info.Mode().IsRegular() {
			files = append(files, nearby)
			break
		}
		if folder == filepath.Dir(folder) {
			break
		}
	}
	home := getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	config, data := getenv("XDG_CONFIG_HOME"), getenv("XDG_DATA_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	if data == "" {
		data = filepath.Join(home, ".local", "share")
	}
	files = append(files, filepath.Join(config, "taskyard", "config.toml"))
	return append(files, filepath.Join(data, "taskyard", "context.toml"))
}

func readLayer(file string, info fs.FileInfo) layer {
	made := layer{source: file, isFile: true}
	if made.problem = distrust(file, info); made.problem != nil {
		return made
	}
	values, err := readContextFile(file)
	if err != nil {
		made.problem = err
		return made
	}
	made.values = values
	if moment := values["expire_time"]; moment != "" {
		expires, err := time.Parse(time.RFC3339, moment)
		switch {
		case err != nil:
			made.problem = &ContextError{Message: fmt.Sprintf(
				"%s: expire_time = %q is not of the form 2030-01-31T12:00:00Z", file, moment)}
		case !time.Now().Before(expires):
			made.problem = &ContextExpiredError{File: file, ExpireTime: moment}
		}
	}
	return made
}

// distrust returns why a file may hold what others want; nil if only its owner or root can have written it.
func distrust(file string, info fs.FileInfo) error {
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return &ContextError{Message: fmt.Sprintf(
			"%s belongs to user %d, who could send your keys elsewhere; remove it", file, owner.Uid)}
	}
	if info.Mode().Perm()&0o022 != 0 {
		return &ContextError{Message: fmt.Sprintf(
			"%s can be written by others, who could send your keys elsewhere: chmod go-w %s", file, file)}
	}
	return nil
}

func readContextFile(file string) (map[string]string, error) {
	var values map[string]any
	if _, err := toml.DecodeFile(file, &values); err != nil {
		return nil, &ContextError{Message: fmt.Sprintf("%s cannot be read (%v); correct or remove it", file, err)}
	}
	read := map[string]string{}
	for name, value := range values {
		if _, known := names[name]; !known {
			allowed := make([]string, 0, len(names))
			for each := range names {
				allowed = append(allowed, each)
			}
			sort.Strings(allowed)
			return nil, &ContextError{Message: fmt.Sprintf(
				"%s: unknown setting %q; use %s", file, name, strings.Join(allowed, ", "))}
		}
		text, ok := value.(string)
		if !ok {
			return nil, &ContextError{Message: fmt.Sprintf("%s: %s = %v must be a text in quotes", file, name, value)}
		}
		if text != "" {
			read[name] = text
		}
	}
	return read, nil
}

func refuseBareKeys(given map[string]string, getenv func(string) string, file string) error {
	for _, name := range []string{"key", "admin_key"} {
		if getenv(names[name]) != "" && given[name] == "" {
			return &ContextError{Message: fmt.Sprintf(
				"%s is set, but only %s names a server, and it may be for another; set TASKYARD_ADDRESS as well",
				names[name], file)}
		}
	}
	return nil
}
