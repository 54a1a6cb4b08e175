package taskyard

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	// Tenant is empty if it is that of the key.
	Tenant string
	// TLSCA is the file of the authority that signed the servers' certificates.
	TLSCA string
	// Gateway is where HTTP is served; of use to other tools.
	Gateway string
	// ExpireTime is when the context file ceases to be good, in RFC 3339; empty if it does not.
	ExpireTime string
	Source     string
	// KeyFile is the context file that named the key; empty if it came from elsewhere.
	KeyFile string
}

// defaultTenant is the tenant of a key that belongs to none: an administrator's.
const defaultTenant = "default"

// names lists the settings in the spelling of the context file, with the environment variable of each.
var names = map[string]string{
	"address":     "TASKYARD_ADDRESS",
	"scheduler":   "TASKYARD_SCHEDULER",
	"key":         "TASKYARD_KEY",
	"admin_key":   "TASKYARD_ADMIN_KEY",
	"tenant":      "TASKYARD_TENANT",
	"tls_ca":      "TASKYARD_TLS_CA",
	"gateway":     "TASKYARD_GATEWAY",
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
// did not set. A layer with a different address is skipped, since its key belongs to another server; one of the replicas
// that a layer lists is not different. For the same reason a key of the environment is not sent to an address that only a
// file names.
func FindContext(given map[string]string) (*Context, error) {
	start, err := os.Getwd()
	if err != nil {
		return nil, &ContextError{Message: err.Error()}
	}
	return findContext(given, os.Getenv, start)
}

func findContext(given map[string]string, getenv func(string) string, start string) (*Context, error) {
	address, source, keyFile := "", "", ""
	found := map[string]string{}
	for _, each := range layers(given, getenv, start) {
		if each.problem != nil {
			if address == "" {
				return nil, each.problem
			}
			continue
		}
		named, has := each.values["address"]
		if address != "" && has && !lists(named, address) {
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
		if found["key"] == "" && each.values["key"] != "" && each.isFile {
			keyFile = each.source
		}
		merge(found, each.values)
	}
	if address == "" {
		return nil, &NoContextError{}
	}
	for _, name := range []string{"key", "admin_key"} {
		if strings.ContainsFunc(found[name], func(one rune) bool { return one <= ' ' || one > '~' }) {
			return nil, &ContextError{Message: fmt.Sprintf("the %s contains a line break, a blank or another character that no "+
				"key has; correct %s or the file that names it", strings.ReplaceAll(name, "_", " "), names[name])}
		}
	}
	return &Context{
		Address: address, Scheduler: found["scheduler"], Key: found["key"], AdminKey: found["admin_key"],
		Tenant: found["tenant"], TLSCA: found["tls_ca"], Gateway: found["gateway"], ExpireTime: found["expire_time"],
		Source: source, KeyFile: keyFile,
	}, nil
}

// lists reports whether each replica of the address is one of those that are listed.
func lists(listed, address string) bool {
	known := replicas(listed)
	return !slices.ContainsFunc(replicas(address), func(one string) bool { return !slices.Contains(known, one) })
}

func replicas(address string) []string {
	found := strings.Split(address, ",")
	for index, one := range found {
		found[index] = strings.TrimSpace(one)
	}
	return found
}

// merge completes the values of earlier layers by those of the next one. The tenant and the administrator's key of a layer
// go with its key. A tenant that an earlier layer names, and that is not the one of the key, is only accessible to the
// administrator.
func merge(found, values map[string]string) {
	_, keyed := found["key"]
	tenant, named := found["tenant"]
	foreign := !keyed && values["key"] != "" && named && tenant != values["tenant"]
	for name, value := range values {
		if _, set := found[name]; !set && !(keyed && (name == "admin_key" || name == "tenant")) {
			found[name] = value
		}
	}
	if foreign && values["admin_key"] != "" {
		found["key"] = values["admin_key"]
	}
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
	if name := getenv("TASKYARD_CONTEXT"); name != "" {
		return append(found, namedLayer(configFile(getenv), name))
	}
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
	files = append(files, configFile(getenv))
	return append(files, filepath.Join(userFolder(getenv, "XDG_DATA_HOME", ".local", "share"), "taskyard", "context.toml"))
}

// configFile is the user's configuration, which holds contexts by name.
func configFile(getenv func(string) string) string {
	return filepath.Join(userFolder(getenv, "XDG_CONFIG_HOME", ".config"), "taskyard", "config.toml")
}

func userFolder(getenv func(string) string, variable string, below ...string) string {
	if folder := getenv(variable); folder != "" {
		return folder
	}
	home := getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	return filepath.Join(append([]string{home}, below...)...)
}

func readLayer(file string, info fs.FileInfo) layer {
	made := layer{source: file, isFile: true}
	if made.problem = distrust(file, info); made.problem != nil {
		return made
	}
	config, err := readConfig(file)
	if err != nil {
		made.problem = err
		return made
	}
	made.values = config.unnamed
	if config.current != "" {
		made.values = config.contexts[config.current]
	}
	made.problem = expired(file, made.values["expire_time"])
	return made
}

// namedLayer is a context of the configuration, which the user chose.
func namedLayer(file, name string) layer {
	made := layer{source: fmt.Sprintf("context %s of %s", name, file)}
	info, err := os.Stat(file)
	if err == nil {
		if made.problem = distrust(file, info); made.problem != nil {
			return made
		}
	}
	config, err := readConfig(file)
	if err != nil {
		made.problem = err
		return made
	}
	values, found := config.contexts[name]
	if !found {
		known := "none"
		if len(config.contexts) > 0 {
			known = strings.Join(sorted(config.contexts), ", ")
		}
		made.problem = &ContextError{Message: fmt.Sprintf(
			"%s has no context %q, only: %s; add it with `taskyard login --name %s`", file, name, known, name)}
		return made
	}
	made.values = values
	made.problem = expired(made.source, values["expire_time"])
	return made
}

func expired(source, moment string) error {
	if moment == "" {
		return nil
	}
	expires, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		return &ContextError{Message: fmt.Sprintf(
			"%s: expire_time = %q is not of the form 2030-01-31T12:00:00Z", source, moment)}
	}
	if !time.Now().Before(expires) {
		return &ContextExpiredError{File: source, ExpireTime: moment}
	}
	return nil
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

// config is a file: contexts by name, the current one, and values without a name.
type config struct {
	contexts map[string]map[string]string
	current  string
	unnamed  map[string]string
}

// readConfig reads a file; it is empty if there is none.
func readConfig(file string) (*config, error) {
	var values map[string]any
	if _, err := toml.DecodeFile(file, &values); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &ContextError{Message: fmt.Sprintf("%s cannot be read (%v); correct or remove it", file, err)}
	}
	read := &config{contexts: map[string]map[string]string{}}
	tables, isTable := values["contexts"].(map[string]any)
	for name, table := range tables {
		one, ok := table.(map[string]any)
		if isTable = isTable && ok; !ok {
			break
		}
		checked, err := checkSettings(one, fmt.Sprintf("%s: contexts.%s", file, name))
		if err != nil {
			return nil, err
		}
		read.contexts[name] = checked
	}
	if _, has := values["contexts"]; has && !isTable {
		return nil, &ContextError{Message: file + ": contexts must be tables, such as [contexts.production]"}
	}
	current, isText := values["current"].(string)
	_, known := read.contexts[current]
	if value, has := values["current"]; has && !(isText && (known || current == "")) {
		return nil, &ContextError{Message: fmt.Sprintf(
			"%s: current = %v names no context; use %s", file, value, strings.Join(sorted(read.contexts), ", "))}
	}
	read.current = current
	delete(values, "contexts")
	delete(values, "current")
	var err error
	read.unnamed, err = checkSettings(values, file)
	return read, err
}

func checkSettings(values map[string]any, where string) (map[string]string, error) {
	read := map[string]string{}
	for name, value := range values {
		if _, known := names[name]; !known {
			return nil, &ContextError{Message: fmt.Sprintf(
				"%s: unknown setting %q; use %s", where, name, strings.Join(sorted(names), ", "))}
		}
		text, ok := value.(string)
		if !ok {
			return nil, &ContextError{Message: fmt.Sprintf("%s: %s = %v must be a text in quotes", where, name, value)}
		}
		if text != "" {
			read[name] = text
		}
	}
	return read, nil
}

func sorted[V any](table map[string]V) []string { return slices.Sorted(maps.Keys(table)) }

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
