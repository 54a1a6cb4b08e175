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
 * key belongs to another server. For the same reason a key of the environment is not sent to an address that
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
    if (address && other !== undefined && other !== address) continue;
    if (!address && other !== undefined) {
      address = other;
      source = layer.source;
      if (layer.isFile) refuseBareKeys(flags, environment, layer.source);
    }
    const values = { ...layer.values };
    // A key of an earlier layer is used for administrative calls too.
    if ("key" in found) delete values["admin_key"];
    if (!("key" in found) && "key" in values && layer.isFile) keyFile = layer.source;
    found = { ...values, ...found };
  }
  if (!address) {
    throw new NoContext(
      "no server is configured: start one here with `make up` or `taskyard up`," +
        " or set TASKYARD_ADDRESS and TASKYARD_KEY",
    );
  }
  return {
    address,
    scheduler: found["scheduler"] ?? "",
    key: found["key"] ?? "",
    adminKey: found["admin_key"] ?? "",
    tenant: found["tenant"] ?? "default",
    tlsCa: found["tls_ca"] ?? "",
    source,
    keyFile,
  };
}

function filled(values: Environment): Values {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => !!entry[1]));
}

function* layers(flags: Values, environment: Environment, start: string): Generator<Layer> {
  yield { source: "argument", values: flags, isFile: false };
  const variables = Object.entries(VARIABLES).map(([name, variable]) => [name, environment[variable]]);
  const values = filled(Object.fromEntries(variables) as Environment);
  yield { source: "TASKYARD_ADDRESS", values, isFile: false };
  for (const file of files(environment, start)) {
    if (!existsSync(file)) continue;
    yield fileLayer(file);
  }
}

function fileLayer(file: string): Layer {
  const distrusted = distrust(file);
  if (distrusted) return { source: file, values: {}, isFile: true, problem: new ContextError(distrusted) };
  const values = read(file);
  const expires = values["expire_time"] ?? "";
  if (!expires || !isPast(file, expires)) return { source: file, values, isFile: true };
  const problem = new ContextExpired(`${file} expired at ${expires}; get a new one`);
  return { source: file, values: {}, isFile: true, problem };
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
  const home = environment["HOME"] || homedir();
  yield join(environment["XDG_CONFIG_HOME"] || join(home, ".config"), "taskyard", "config.toml");
  // The default data directory of `taskyard up`.
  yield join(environment["XDG_DATA_HOME"] || join(home, ".local", "share"), "taskyard", "context.toml");
}

function read(file: string): Values {
  let values: Record<string, unknown>;
  try {
    values = parse(readFileSync(file, "utf-8"));
  } catch (error) {
    throw new ContextError(`${file} cannot be read (${firstLine(error)}); correct or remove it`);
  }
  for (const [name, value] of Object.entries(values)) {
    if (!SETTINGS.includes(name)) {
      throw new ContextError(`${file}: unknown setting '${name}'; use ${SETTINGS.join(", ")}`);
    }
    if (typeof value !== "string") {
      throw new ContextError(`${file}: ${name} = ${JSON.stringify(value)} must be a text in quotes`);
    }
  }
  return filled(values as Environment);
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";
}
