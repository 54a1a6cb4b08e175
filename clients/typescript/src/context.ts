/** The server and key to use: from arguments, then the environment, then files. */

import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";

import { parse } from "smol-toml";

import { ContextError, ContextExpired, NoContext } from "./errors.js";

/** The settings of a context; every one may come from a different source. */
export interface ContextOptions {
  /** taskdb as host:port; several replicas are separated by commas. "https://" in front means TLS. */
  address?: string | undefined;
  /** The scheduler as host:port, for explain and workers. */
  scheduler?: string | undefined;
  key?: string | undefined;
  /** For administrative calls; `key` if it is not given. */
  adminKey?: string | undefined;
  tenant?: string | undefined;
  /** File with the certificates of the CA; its presence means TLS. */
  tlsCa?: string | undefined;
}

/** The effective settings; `source` describes where the address came from, `keySource` where the key did. */
export interface Context {
  readonly address: string;
  readonly scheduler: string;
  readonly key: string;
  readonly adminKey: string;
  /** Empty if it is that of the key. */
  readonly tenant: string;
  readonly tlsCa: string;
  readonly source: string;
  /** The context file that named the key; empty if it came from elsewhere. */
  readonly keyFile: string;
}

type Values = Readonly<Record<string, string>>;
type Environment = Readonly<Record<string, string | undefined>>;

const VARIABLES: Values = {
  address: "TASKYARD_ADDRESS",
  scheduler: "TASKYARD_SCHEDULER",
  key: "TASKYARD_KEY",
  admin_key: "TASKYARD_ADMIN_KEY",
  tenant: "TASKYARD_TENANT",
  tls_ca: "TASKYARD_TLS_CA",
};
const SETTINGS = [...Object.keys(VARIABLES), "expire_time", "gateway"].sort();

interface Layer {
  readonly source: string;
  readonly values: Values;
  readonly isFile: boolean;
  /** Why it must not be used. */
  readonly problem?: ContextError;
}

/**
 * The effective context; throws ContextError if no server is configured or a file is damaged.
 *
 * Each layer fills in values that earlier layers did not set. A layer with a different address is skipped: its
 * key belongs to another server; one of the replicas that a layer lists is not different. For the same reason a key of the environment is not sent to an address that
 * only a file names.
 */
export function findContext(
  given: ContextOptions = {},
  environment: Environment = process.env,
  start: string = process.cwd(),
): Context {
  const flags = filled({
    address: given.address,
    scheduler: given.scheduler,
    key: given.key,
    admin_key: given.adminKey,
    tenant: given.tenant,
    tls_ca: given.tlsCa,
  });
  let address = "";
  let source = "";
  let keyFile = "";
  let found: Record<string, string> = {};
  for (const layer of layers(flags, environment, start)) {
    if (layer.problem) {
      if (address) continue;
      throw layer.problem;
    }
    const other = layer.values["address"];
    if (address && other !== undefined && !lists(other, address)) continue;
    if (!address && other !== undefined) {
      address = other;
      source = layer.source;
      if (layer.isFile) refuseBareKeys(flags, environment, layer.source);
    }
    if (!("key" in found) && "key" in layer.values && layer.isFile) keyFile = layer.source;
    found = merged(found, layer.values);
  }
  if (!address) {
    throw new NoContext(
      "no server is configured: start one here with `make up` or `taskyard up`," +
        " or set TASKYARD_ADDRESS and TASKYARD_KEY",
    );
  }
  for (const name of ["key", "admin_key"]) {
    if (/[^!-~]/.test(found[name] ?? "")) {
      throw new ContextError(
        `the ${name.replace("_", " ")} contains a line break, a blank or another character that no key has;` +
          ` correct ${VARIABLES[name] ?? ""} or the file that names it`,
      );
    }
  }
  return {
    address,
    scheduler: found["scheduler"] ?? "",
    key: found["key"] ?? "",
    adminKey: found["admin_key"] ?? "",
    tenant: found["tenant"] ?? "",
    tlsCa: found["tls_ca"] ?? "",
    source,
    keyFile,
  };
}

/** Whether each replica of the address is one of those that are listed. */
function lists(listed: string, address: string): boolean {
  const known = replicas(listed);
  return replicas(address).every((one) => known.includes(one));
}

function replicas(address: string): string[] {
  return address.split(",").map((one) => one.trim());
}

/**
 * The values of earlier layers, completed by those of the next one. The tenant and the administrator's key of a
 * layer go with its key. A tenant that an earlier layer names, and that is not the one of the key, is only accessible
 * to the administrator.
 */
function merged(found: Values, values: Values): Record<string, string> {
  const { key, admin_key: adminKey, tenant, ...others } = values;
  if ("key" in found) return { ...others, ...found };
  const foreign = key && "tenant" in found && found["tenant"] !== tenant;
  return { ...values, ...found, ...(foreign && adminKey ? { key: adminKey } : {}) };
}

function filled(values: Environment): Values {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => !!entry[1]));
}

function* layers(flags: Values, environment: Environment, start: string): Generator<Layer> {
  yield { source: "argument", values: flags, isFile: false };
  const variables = Object.entries(VARIABLES).map(([name, variable]) => [name, environment[variable]]);
  const values = filled(Object.fromEntries(variables) as Environment);
  yield { source: "TASKYARD_ADDRESS", values, isFile: false };
  const name = environment["TASKYARD_CONTEXT"];
  if (name) {
    yield namedLayer(configFile(environment), name);
    return;
  }
  for (const file of files(environment, start)) {
    if (!existsSync(file)) continue;
    yield fileLayer(file);
  }
}

function fileLayer(file: string): Layer {
  const distrusted = distrust(file);
  if (distrusted) return { source: file, values: {}, isFile: true, problem: new ContextError(distrusted) };
  const config = readConfig(file);
  return unexpired({ source: file, values: config.contexts[config.current] ?? config.unnamed, isFile: true });
}

/** A context of the configuration, which the user chose. */
function namedLayer(file: string, name: string): Layer {
  const source = `context ${name} of ${file}`;
  const distrusted = existsSync(file) ? distrust(file) : "";
  const { contexts } = distrusted || !existsSync(file) ? { contexts: {} as Contexts } : readConfig(file);
  const values = contexts[name];
  if (values) return unexpired({ source, values, isFile: false });
  const known = Object.keys(contexts).sort().join(", ") || "none";
  const absent = `${file} has no context '${name}', only: ${known}; add it with \`taskyard login --name ${name}\``;
  return { source, values: {}, isFile: false, problem: new ContextError(distrusted || absent) };
}

function unexpired(layer: Layer): Layer {
  const expires = layer.values["expire_time"] ?? "";
  if (!expires || !isPast(layer.source, expires)) return layer;
  return { ...layer, values: {}, problem: new ContextExpired(`${layer.source} expired at ${expires}; get a new one`) };
}

function isPast(file: string, moment: string): boolean {
  const found = /^\d{4}-\d\d-\d\d[T ].*(Z|[+-]\d\d:\d\d)$/.test(moment) ? Date.parse(moment) : NaN;
  if (Number.isNaN(found)) {
    throw new ContextError(`${file}: expire_time = '${moment}' is not of the form 2030-01-31T12:00:00Z`);
  }
  return found <= Date.now();
}

function refuseBareKeys(flags: Values, environment: Environment, file: string): void {
  for (const name of ["key", "admin_key"]) {
    const variable = VARIABLES[name] ?? "";
    if (environment[variable] && !flags[name]) {
      throw new ContextError(
        `${variable} is set, but only ${file} names a server, and it may be for another; set TASKYARD_ADDRESS as well`,
      );
    }
  }
}

/** Why a file may hold what others want; empty if only its owner can have written it. */
function distrust(file: string): string {
  const found = statSync(file);
  if (found.uid !== process.geteuid?.() && found.uid !== 0) {
    return `${file} belongs to user ${found.uid}, who could send your keys elsewhere; remove it`;
  }
  if (found.mode & 0o022) {
    return `${file} can be written by others, who could send your keys elsewhere: chmod go-w ${file}`;
  }
  return "";
}

function* files(environment: Environment, start: string): Generator<string> {
  for (let folder = resolve(start); ; folder = dirname(folder)) {
    const nearby = join(folder, ".taskyard", "context.toml");
    if (existsSync(nearby)) {
      yield nearby;
      break;
    }
    if (folder === dirname(folder)) break;
  }
  yield configFile(environment);
  const home = environment["HOME"] || homedir();
  // The default data directory of `taskyard up`.
  yield join(environment["XDG_DATA_HOME"] || join(home, ".local", "share"), "taskyard", "context.toml");
}

/** The user's configuration, which holds contexts by name. */
function configFile(environment: Environment): string {
  const folder = environment["XDG_CONFIG_HOME"] || join(environment["HOME"] || homedir(), ".config");
  return join(folder, "taskyard", "config.toml");
}

type Contexts = Readonly<Record<string, Values>>;

/** A file: contexts by name, the current one, and values without a name. */
interface Config {
  readonly contexts: Contexts;
  readonly current: string;
  readonly unnamed: Values;
}

function readConfig(file: string): Config {
  let values: Record<string, unknown>;
  try {
    values = parse(readFileSync(file, "utf-8"));
  } catch (error) {
    throw new ContextError(`${file} cannot be read (${firstLine(error)}); correct or remove it`);
  }
  const { contexts: tables = {}, current = "", ...unnamed } = values;
  if (!isTable(tables) || !Object.values(tables).every(isTable)) {
    throw new ContextError(`${file}: contexts must be tables, such as [contexts.production]`);
  }
  const read = ([name, one]: [string, unknown]) => [name, checked(one as Table, `${file}: contexts.${name}`)];
  const contexts = Object.fromEntries(Object.entries(tables).map(read)) as Contexts;
  if (typeof current !== "string" || (current && !contexts[current])) {
    const known = Object.keys(contexts).sort().join(", ");
    throw new ContextError(`${file}: current = ${JSON.stringify(current)} names no context; use ${known}`);
  }
  return { contexts, current, unnamed: checked(unnamed, file) };
}

type Table = Readonly<Record<string, unknown>>;

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function checked(values: Table, where: string): Values {
  for (const [name, value] of Object.entries(values)) {
    if (!SETTINGS.includes(name)) {
      throw new ContextError(`${where}: unknown setting '${name}'; use ${SETTINGS.join(", ")}`);
    }
    if (typeof value !== "string") {
      throw new ContextError(`${where}: ${name} = ${JSON.stringify(value)} must be a text in quotes`);
    }
  }
  return filled(values as Environment);
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";
}
