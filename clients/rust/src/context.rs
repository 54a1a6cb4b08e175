//! The server and key to use: from options, then the environment, then files.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use time::{format_description::well_known::Rfc3339, OffsetDateTime};

use crate::{Error, Result};

pub(crate) type Values = BTreeMap<String, String>;

const VARIABLES: [(&str, &str); 6] = [
    ("address", "TASKYARD_ADDRESS"),
    ("scheduler", "TASKYARD_SCHEDULER"),
    ("key", "TASKYARD_KEY"),
    ("admin_key", "TASKYARD_ADMIN_KEY"),
    ("tenant", "TASKYARD_TENANT"),
    ("tls_ca", "TASKYARD_TLS_CA"),
];
const ONLY_IN_FILES: [&str; 2] = ["expire_time", "gateway"];

/// The effective servers and keys.
#[derive(Clone)]
pub struct Context {
    pub address: String,
    pub scheduler: String,
    pub key: String,
    /// For administrative calls; if empty, `key` is used.
    pub admin_key: String,
    /// Empty if it is that of the key.
    pub tenant: String,
    pub tls_ca: String,
    /// Where the address came from.
    pub source: String,
    /// The context file that named the key; empty if it came from elsewhere.
    pub key_file: String,
}

struct Layer {
    source: String,
    values: Values,
    is_file: bool,
    /// Why it must not be used.
    problem: Option<Error>,
}

impl Layer {
    fn new(source: &str, values: Values, is_file: bool) -> Self {
        Self { source: source.to_owned(), values, is_file, problem: None }
    }
}

/// The effective context. Each layer fills in values that earlier layers did not set. A layer with a different address
/// is skipped: its key belongs to another server; one of the replicas that a layer lists is not different. For the same
/// reason a key of the environment is not sent to an address that only a file names.
pub(crate) fn find(given: &Values, environment: &dyn Fn(&str) -> Option<String>, start: &Path) -> Result<Context> {
    let mut found = Values::new();
    let (mut source, mut key_file) = (String::new(), String::new());
    let variables = VARIABLES.iter().filter_map(|(name, variable)| {
        let value = environment(variable).filter(|value| !value.is_empty())?;
        Some(((*name).to_owned(), value))
    });
    let flags = Layer::new("argument", given.clone(), false);
    let exported = Layer::new("TASKYARD_ADDRESS", variables.collect(), false);
    let stored: Vec<Result<Layer>> = match environment("TASKYARD_CONTEXT").filter(|name| !name.is_empty()) {
        Some(name) => vec![named_layer(&config_file(environment), &name)],
        None => files(environment, start).iter().filter(|file| file.is_file()).map(|file| file_layer(file)).collect(),
    };
    for layer in [Ok(flags), Ok(exported)].into_iter().chain(stored) {
        let layer = layer?;
        let address = found.get("address");
        if let Some(problem) = layer.problem {
            if address.is_some() {
                continue;
            }
            return Err(problem);
        }
        match (address, layer.values.get("address")) {
            (Some(address), Some(other)) if !lists(other, address) => continue,
            (None, Some(_)) => {
                source.clone_from(&layer.source);
                if layer.is_file {
                    refuse_bare_keys(given, environment, &layer.source)?;
                }
            }
            _ => {}
        }
        if !found.contains_key("key") && layer.is_file && layer.values.contains_key("key") {
            key_file.clone_from(&layer.source);
        }
        merge(&mut found, layer.values);
    }
    let mut take = |name: &str| found.remove(name).unwrap_or_default();
    let address = take("address");
    if address.is_empty() {
        return Err(Error::NoContext(
            "no server is configured: start one here with `make up` or `taskyard up`, \
             or set TASKYARD_ADDRESS and TASKYARD_KEY"
                .to_owned(),
        ));
    }
    let (key, admin_key) = (take("key"), take("admin_key"));
    for (value, name, variable) in [(&key, "key", "TASKYARD_KEY"), (&admin_key, "admin key", "TASKYARD_ADMIN_KEY")] {
        if !value.bytes().all(|one| one.is_ascii_graphic()) {
            return Err(Error::ContextInvalid(format!(
                "the {name} contains a line break, a blank or another character that no key has; \
                 correct {variable} or the file that names it"
            )));
        }
    }
    Ok(Context {
        address,
        scheduler: take("scheduler"),
        key,
        admin_key,
        tenant: take("tenant"),
        tls_ca: take("tls_ca"),
        source,
        key_file,
    })
}

/// Whether each replica of the address is one of those that are listed.
fn lists(listed: &str, address: &str) -> bool {
    address.split(',').all(|one| listed.split(',').any(|known| known.trim() == one.trim()))
}

/// Completes the values of earlier layers by those of the next one. The tenant and the administrator's key of a layer go
/// with its key. A tenant that an earlier layer names, and that is not the one of the key, is only accessible to the
/// administrator.
fn merge(found: &mut Values, mut values: Values) {
    if found.contains_key("key") {
        values.retain(|name, _| name != "admin_key" && name != "tenant");
    }
    let foreign = found.contains_key("tenant") && found.get("tenant") != values.get("tenant");
    if let Some(admin_key) = values.get("admin_key").filter(|_| foreign && values.contains_key("key")).cloned() {
        values.insert("key".to_owned(), admin_key);
    }
    for (name, value) in values {
        found.entry(name).or_insert(value);
    }
}

fn refuse_bare_keys(given: &Values, environment: &dyn Fn(&str) -> Option<String>, file: &str) -> Result<()> {
    for (name, variable) in [("key", "TASKYARD_KEY"), ("admin_key", "TASKYARD_ADMIN_KEY")] {
        if environment(variable).is_some_and(|value| !value.is_empty()) && !given.contains_key(name) {
            return Err(Error::ContextInvalid(format!(
                "{variable} is set, but only {file} names a server, and it may be for another; \
                 set TASKYARD_ADDRESS as well"
            )));
        }
    }
    Ok(())
}

fn files(environment: &dyn Fn(&str) -> Option<String>, start: &Path) -> Vec<PathBuf> {
    let nearby = start.ancestors().map(|folder| folder.join(".taskyard/context.toml"));
    let mut found: Vec<PathBuf> = nearby.filter(|file| file.is_file()).take(1).collect();
    found.push(config_file(environment));
    // The default data directory of `taskyard up`.
    found.push(user_folder(environment, "XDG_DATA_HOME", ".local/share").join("taskyard/context.toml"));
    found
}

/// The user's configuration, which holds contexts by name.
fn config_file(environment: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    user_folder(environment, "XDG_CONFIG_HOME", ".config").join("taskyard/config.toml")
}

fn user_folder(environment: &dyn Fn(&str) -> Option<String>, variable: &str, below_home: &str) -> PathBuf {
    let folder = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder(variable).unwrap_or_else(|| folder("HOME").unwrap_or_default().join(below_home))
}

fn file_layer(file: &Path) -> Result<Layer> {
    let mut layer = Layer::new(&file.display().to_string(), Values::new(), true);
    layer.problem = distrust(file).map_err(|error| unreadable(file, &error))?.map(Error::ContextInvalid);
    if layer.problem.is_some() {
        return Ok(layer);
    }
    let mut config = read_config(file)?;
    layer.values = config.contexts.remove(&config.current).unwrap_or(config.unnamed);
    unexpired(layer)
}

/// A context of the configuration, which the user chose.
fn named_layer(file: &Path, name: &str) -> Result<Layer> {
    let place = file.display();
    let mut layer = Layer::new(&format!("context {name} of {place}"), Values::new(), false);
    let distrusted = if file.is_file() { distrust(file).map_err(|error| unreadable(file, &error))? } else { None };
    if let Some(problem) = distrusted {
        layer.problem = Some(Error::ContextInvalid(problem));
        return Ok(layer);
    }
    let mut contexts = if file.is_file() { read_config(file)?.contexts } else { BTreeMap::new() };
    if let Some(values) = contexts.remove(name) {
        layer.values = values;
        return unexpired(layer);
    }
    let known: Vec<String> = contexts.into_keys().collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    layer.problem = Some(Error::ContextInvalid(format!(
        "{place} has no context '{name}', only: {known}; add it with `taskyard login --name {name}`"
    )));
    Ok(layer)
}

fn unexpired(mut layer: Layer) -> Result<Layer> {
    if let Some(moment) = layer.values.get("expire_time") {
        let expires = OffsetDateTime::parse(moment, &Rfc3339).map_err(|_| {
            let form = "is not of the form 2030-01-31T12:00:00Z";
            Error::ContextInvalid(format!("{}: expire_time = '{moment}' {form}", layer.source))
        })?;
        if expires <= OffsetDateTime::now_utc() {
            let message = format!("{} expired at {moment}; get a new one", layer.source);
            layer.problem = Some(Error::ContextExpired(message));
        }
    }
    Ok(layer)
}

/// Why a file may hold what others want; none if only its owner can have written it.
fn distrust(file: &Path) -> io::Result<Option<String>> {
    let found = fs::metadata(file)?;
    let owner = found.uid();
    let name = file.display();
    if owner != fs::metadata("/proc/self")?.uid() && owner != 0 {
        let problem = format!("{name} belongs to user {owner}, who could send your keys elsewhere; remove it");
        return Ok(Some(problem));
    }
    if found.mode() & 0o022 != 0 {
        let problem = "can be written by others, who could send your keys elsewhere";
        return Ok(Some(format!("{name} {problem}: chmod go-w {name}")));
    }
    Ok(None)
}

fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::ContextInvalid(format!("{} cannot be read ({error}); correct or remove it", file.display()))
}

/// A file: contexts by name, the current one, and values without a name.
struct Config {
    contexts: BTreeMap<String, Values>,
    current: String,
    unnamed: Values,
}

fn read_config(file: &Path) -> Result<Config> {
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| unreadable(file, &error.message()))?;
    let place = file.display();
    let untabled = || Error::ContextInvalid(format!("{place}: contexts must be tables, such as [contexts.production]"));
    let mut contexts = BTreeMap::new();
    if let Some(named) = table.remove("contexts") {
        let toml::Value::Table(named) = named else { return Err(untabled()) };
        for (name, one) in named {
            let toml::Value::Table(one) = one else { return Err(untabled()) };
            let values = checked(one, &format!("{place}: contexts.{name}"))?;
            contexts.insert(name, values);
        }
    }
    let current = match table.remove("current") {
        None => String::new(),
        Some(toml::Value::String(name)) if name.is_empty() || contexts.contains_key(&name) => name,
        Some(other) => {
            let known: Vec<&str> = contexts.keys().map(String::as_str).collect();
            let message = format!("{place}: current = {other} names no context; use {}", known.join(", "));
            return Err(Error::ContextInvalid(message));
        }
    };
    Ok(Config { contexts, current, unnamed: checked(table, &place.to_string())? })
}

fn checked(table: toml::Table, place: &str) -> Result<Values> {
    let mut allowed: Vec<&str> = VARIABLES.iter().map(|(name, _)| *name).chain(ONLY_IN_FILES).collect();
    allowed.sort_unstable();
    let mut values = Values::new();
    for (name, value) in table {
        if !allowed.contains(&name.as_str()) {
            let message = format!("{place}: unknown setting '{name}'; use {}", allowed.join(", "));
            return Err(Error::ContextInvalid(message));
        }
        match value {
            toml::Value::String(text) if text.is_empty() => {}
            toml::Value::String(text) => drop(values.insert(name, text)),
            other => {
                let message = format!("{place}: {name} = {other} must be a text in quotes");
                return Err(Error::ContextInvalid(message));
            }
        }
    }
    Ok(values)
}
