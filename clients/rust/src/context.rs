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
/// is skipped: its key belongs to another server. For the same reason a key of the environment is not sent to an address
/// that only a file names.
pub(crate) fn find(given: &Values, environment: &dyn Fn(&str) -> Option<String>, start: &Path) -> Result<Context> {
    let mut found = Values::new();
    let (mut source, mut key_file) = (String::new(), String::new());
    let variables = VARIABLES.iter().filter_map(|(name, variable)| {
        let value = environment(variable).filter(|value| !value.is_empty())?;
        Some(((*name).to_owned(), value))
    });
    let flags = Layer::new("argument", given.clone(), false);
    let exported = Layer::new("TASKYARD_ADDRESS", variables.collect(), false);
    let files = files(environment, start).into_iter().filter(|file| file.is_file());
    for layer in [Ok(flags), Ok(exported)].into_iter().chain(files.map(|file| file_layer(&file))) {
        let mut layer = layer?;
        let address = found.get("address");
        if let Some(problem) = layer.problem {
            if address.is_some() {
                continue;
            }
            return Err(problem);
        }
        match (address, layer.values.get("address")) {
            (Some(address), Some(other)) if address != other => continue,
            (None, Some(_)) => {
                source.clone_from(&layer.source);
                if layer.is_file {
                    refuse_bare_keys(given, environment, &layer.source)?;
                }
            }
            _ => {}
        }
        if found.contains_key("key") {
            // A key of an earlier layer is used for administrative calls too.
            layer.values.remove("admin_key");
        } else if layer.is_file && layer.values.contains_key("key") {
            key_file.clone_from(&layer.source);
        }
        for (name, value) in layer.values {
            found.entry(name).or_insert(value);
        }
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
    let tenant = take("tenant");
    Ok(Context {
        address,
        scheduler: take("scheduler"),
        key: take("key"),
        admin_key: take("admin_key"),
        tenant: if tenant.is_empty() { "default".to_owned() } else { tenant },
        tls_ca: take("tls_ca"),
        source,
        key_file,
    })
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
    let folder = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = folder("HOME").unwrap_or_default();
    let config = folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    found.push(config.join("taskyard/config.toml"));
    // The default data directory of `taskyard up`.
    let data = folder("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    found.push(data.join("taskyard/context.toml"));
    found
}

fn file_layer(file: &Path) -> Result<Layer> {
    let mut layer = Layer::new(&file.display().to_string(), Values::new(), true);
    layer.problem = distrust(file).map_err(|error| unreadable(file, &error))?.map(Error::ContextInvalid);
    if layer.problem.is_some() {
        return Ok(layer);
    }
    layer.values = read(file)?;
    if let Some(moment) = layer.values.get("expire_time") {
        let expires = OffsetDateTime::parse(moment, &Rfc3339).map_err(|_| {
            let form = "is not of the form 2030-01-31T12:00:00Z";
            Error::ContextInvalid(format!("{}: expire_time = '{moment}' {form}", file.display()))
        })?;
        if expires <= OffsetDateTime::now_utc() {
            let message = format!("{} expired at {moment}; get a new one", file.display());
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

fn read(file: &Path) -> Result<Values> {
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| unreadable(file, &error.message()))?;
    let mut allowed: Vec<&str> = VARIABLES.iter().map(|(name, _)| *name).chain(ONLY_IN_FILES).collect();
    allowed.sort_unstable();
    let mut values = Values::new();
    for (name, value) in table {
        let file = file.display();
        if !allowed.contains(&name.as_str()) {
            let message = format!("{file}: unknown setting '{name}'; use {}", allowed.join(", "));
            return Err(Error::ContextInvalid(message));
        }
        match value {
            toml::Value::String(text) if text.is_empty() => {}
            toml::Value::String(text) => drop(values.insert(name, text)),
            other => {
                let message = format!("{file}: {name} = {other} must be a text in quotes");
                return Err(Error::ContextInvalid(message));
            }
        }
    }
    Ok(values)
}
