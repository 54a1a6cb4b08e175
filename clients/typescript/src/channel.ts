/** Calls to the servers of a context: key, TLS, deadlines, retries by service config, failover, trace context. */

import { readFileSync } from "node:fs";
import { isIP } from "node:net";

import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";

import type { Context } from "./context.js";
import { ContextError, PlaintextRefused } from "./errors.js";
import { repeatable, retryConfig, timeouts } from "./serviceConfig.js";
import { fromServiceError, type Target } from "./status.js";
import { traceHeaders } from "./tracing.js";

/** taskdb with the ordinary key, taskdb with the administrator's, or the scheduler. */
export type Server = "taskdb" | "admin" | "scheduler";

/** What every call takes. */
export interface CallOptions {
  /** Cancels the call; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Replaces the timeout of service_config.json. */
  timeoutMs?: number | undefined;
}

const MIB = 1024 * 1024;
const OPTIONS: grpc.ChannelOptions = {
  "grpc.service_config": retryConfig,
  "grpc.service_config_disable_resolution": 1,
  "grpc.enable_retries": 1,
  // A replica that hangs shows within 15 s, while a call is open.
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
  "grpc.keepalive_permit_without_calls": 0,
  "grpc.max_receive_message_length": 64 * MIB,
  "grpc.max_send_message_length": -1,
  "grpc.initial_reconnect_backoff_ms": 200,
  "grpc.max_reconnect_backoff_ms": 1_000,
};

/** Whether an address reaches this machine only: a unix socket, localhost or a loopback address. */
export function isLocal(address: string): boolean {
  if (/^unix(-abstract)?:/.test(address)) return true;
  const host = address
    .replace(/^(ipv4:|ipv6:|dns:\/\/\/)/, "")
    .replace(/:[^:]*$/, "")
    .replace(/^\[|\]$/g, "");
  return host === "localhost" || (isIP(host) === 4 && host.startsWith("127.")) || host === "::1";
}

/** The addresses of a list "host:port,host:port"; a target like "ipv4:1.2.3.4:5,1.2.3.4:6" is one address. */
export function splitAddresses(target: string): string[] {
  if (/^ipv[46]:/.test(target)) return [target];
  const addresses = target.split(",").map((address) => address.trim());
  if (addresses.includes("")) {
    throw new ContextError(`'${target}' contains an empty address; use host:port,host:port`);
  }
  return addresses;
}

interface Replica {
  readonly address: string;
  readonly client: grpc.Client;
}

/** The replicas of one server with one key; calls go to one of them until it is unavailable. */
class Replicas {
  private current = 0;

  constructor(
    readonly key: string,
    private readonly all: readonly Replica[],
  ) {}

  get count(): number {
    return this.all.length;
  }

  choose(): Replica {
    return this.all[this.current] as Replica;
  }

  leave(replica: Replica): void {
    if (this.choose() === replica) this.current = (this.current + 1) % this.all.length;
  }

  close(): void {
    for (const replica of this.all) replica.client.close();
  }
}

/** The connections of a client, each opened when it is first used. */
export class Channels {
  private readonly open = new Map<string, Replicas>();
  private readonly live = new Set<grpc.Call>();

  /** Throws PlaintextRefused if a key would leave this machine in plaintext. */
  constructor(
    readonly context: Context,
    private readonly timeoutMs?: number,
  ) {
    for (const target of [context.address, context.scheduler]) if (target) this.addresses(target);
  }

  /** The response of one call; throws errors of Taskyard, or the reason of the signal. */
  async unary<I extends DescMessage, O extends DescMessage>(
    server: Server,
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const replicas = this.replicas(server);
    const path = pathOf(method);
    const message = create(method.input, request);
    const limit = options.timeoutMs ?? this.timeoutMs ?? timeouts.get(path);
    const deadline = limit === undefined ? undefined : Date.now() + limit;
    for (let left = replicas.count - 1; ; left--) {
      const replica = replicas.choose();
      try {
        return await this.once(replica, replicas.key, method, message, deadline, options.signal);
      } catch (error) {
        options.signal?.throwIfAborted();
        if (!isServiceError(error)) throw error;
        const unavailable = error.code === grpc.status.UNAVAILABLE;
        if (unavailable) replicas.leave(replica);
        const again = unavailable && left > 0 && repeatable.has(path) && (deadline ?? Infinity) > Date.now();
        if (!again) throw this.translated(error, replica, replicas.key, method.parent.typeName);
      }
    }
  }

  private once<I extends DescMessage, O extends DescMessage>(
    replica: Replica,
    key: string,
    method: DescMethodUnary<I, O>,
    message: MessageShape<I>,
    deadline: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<MessageShape<O>> {
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const call = replica.client.makeUnaryRequest(
        pathOf(method),
        serializer(method.input),
        parser(method.output),
        message,
        headers(key),
        deadline === undefined ? {} : { deadline },
        (error, response) => {
          this.live.delete(call);
          signal?.removeEventListener("abort", cancel);
          if (response !== undefined && !error) resolve(response);
          else reject(error ?? new TypeError("the call ended without a response"));
        },
      );
      const cancel = (): void => {
        call.cancel();
      };
      signal?.addEventListener("abort", cancel, { once: true });
      this.live.add(call);
    });
  }

  /** The responses of one stream, read only as fast as they are taken; leaving the loop cancels the call. */
  async *serverStream<I extends DescMessage, O extends DescMessage>(
    server: Server,
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    options.signal?.throwIfAborted();
    const replicas = this.replicas(server);
    const replica = replicas.choose();
    const limit = options.timeoutMs ?? timeouts.get(pathOf(method));
    const call = replica.client.makeServerStreamRequest(
      pathOf(method),
      serializer(method.input),
      parser(method.output),
      create(method.input, request),
      headers(replicas.key),
      limit === undefined ? {} : { deadline: Date.now() + limit },
    );
    // The loop below throws the error; without a listener Node would end the process.
    call.on("error", () => undefined);
    const cancel = (): void => {
      call.cancel();
    };
    options.signal?.addEventListener("abort", cancel, { once: true });
    this.live.add(call);
    try {
      for await (const response of call as AsyncIterable<MessageShape<O>>) yield response;
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!isServiceError(error)) throw error;
      if (error.code === grpc.status.UNAVAILABLE) replicas.leave(replica);
      throw this.translated(error, replica, replicas.key, method.parent.typeName);
    } finally {
      this.live.delete(call);
      options.signal?.removeEventListener("abort", cancel);
      call.cancel();
    }
  }

  /** The response to a stream of requests. */
  clientStream<I extends DescMessage, O extends DescMessage>(
    server: Server,
    method: DescMethodClientStreaming<I, O>,
    requests: Iterable<MessageInitShape<I>>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const replicas = this.replicas(server);
    const replica = replicas.choose();
    const limit = options.timeoutMs ?? timeouts.get(pathOf(method));
    return new Promise((resolve, reject) => {
      const call = replica.client.makeClientStreamRequest(
        pathOf(method),
        serializer(method.input),
        parser(method.output),
        headers(replicas.key),
        limit === undefined ? {} : { deadline: Date.now() + limit },
        (error, response) => {
          if (response !== undefined && !error) resolve(response);
          else if (options.signal?.aborted) reject(options.signal.reason as Error);
          else reject(this.translated(error as grpc.ServiceError, replica, replicas.key, method.parent.typeName));
        },
      );
      options.signal?.addEventListener("abort", () => { call.cancel(); }, { once: true });
      for (const request of requests) call.write(create(method.input, request));
      call.end();
    });
  }

  /** Closes the connections and cancels the calls in flight. */
  close(): void {
    for (const call of this.live) call.cancel();
    for (const replicas of this.open.values()) replicas.close();
    this.open.clear();
  }

  private replicas(server: Server): Replicas {
    const { context } = this;
    const target = server === "scheduler" ? context.scheduler : context.address;
    if (!target) {
      throw new ContextError(`${context.source} names no scheduler; set TASKYARD_SCHEDULER to its host and port`);
    }
    const key = server === "admin" && context.adminKey ? context.adminKey : context.key;
    const name = JSON.stringify([target, key]);
    let found = this.open.get(name);
    if (!found) {
      found = new Replicas(key, this.connect(target));
      this.open.set(name, found);
    }
    return found;
  }

  private connect(target: string): Replica[] {
    const ca = this.context.tlsCa;
    const { secure, addresses } = this.addresses(target);
    const credentials = secure ? grpc.credentials.createSsl(ca ? readCa(ca) : null) : grpc.credentials.createInsecure();
    return addresses.map((address) => ({
      address,
      client: new grpc.Client(address, credentials, { ...OPTIONS, ...proxyOptions(address, secure) }),
    }));
  }

  private addresses(target: string): { secure: boolean; addresses: string[] } {
    const secure = this.context.tlsCa !== "" || target.includes("https://");
    const addresses = splitAddresses(target.replace(/https?:\/\//g, ""));
    const plain = addresses.find((address) => !secure && !isLocal(address));
    if (plain === undefined) return { secure, addresses };
    throw new PlaintextRefused(
      `${plain} is not on this machine and would get the key in plaintext; use TLS:` +
        " https:// before the address, or TASKYARD_TLS_CA",
    );
  }

  private translated(error: grpc.ServiceError, replica: Replica, key: string, service: string): Error {
    const target: Target = { address: replica.address, key, service, context: this.context };
    return fromServiceError(error, target);
  }
}

/** No proxy in plaintext or on this machine, where it would read the key; TLS passes it unread. */
function proxyOptions(address: string, secure: boolean): grpc.ChannelOptions {
  const named = process.env["TASKYARD_PROXY"] ?? "";
  if (!secure || isLocal(address) || named === "off") return { "grpc.enable_http_proxy": 0 };
  if (named && named !== process.env["grpc_proxy"]) {
    throw new ContextError(`TASKYARD_PROXY is ${named}; this client reads its proxy from grpc_proxy: set that as well`);
  }
  return {};
}

function readCa(file: string): Buffer {
  let pem: Buffer;
  try {
    pem = readFileSync(file);
  } catch (error) {
    throw new ContextError(`TASKYARD_TLS_CA ${file} cannot be read (${String(error)}); name a PEM file`);
  }
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) {
    throw new ContextError(`TASKYARD_TLS_CA ${file} holds no certificate; name a PEM file`);
  }
  return pem;
}

function pathOf(method: { parent: { typeName: string }; name: string }): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function serializer<D extends DescMessage>(schema: D): (message: MessageShape<D>) => Buffer {
  return (message) => Buffer.from(toBinary(schema, message));
}

function parser<D extends DescMessage>(schema: D): (bytes: Buffer) => MessageShape<D> {
  return (bytes) => fromBinary(schema, bytes);
}

function headers(key: string): grpc.Metadata {
  const metadata = new grpc.Metadata();
  if (key) metadata.set("authorization", `Bearer ${key}`);
  for (const [name, value] of Object.entries(traceHeaders())) metadata.set(name, value);
  return metadata;
}

function isServiceError(error: unknown): error is grpc.ServiceError {
  return error instanceof Error && "code" in error && "details" in error && "metadata" in error;
}
