/** The driver of the TypeScript client; the protocol is in tests/conformance/README.md. */

import { createInterface } from "node:readline";

import { create } from "@bufbuild/protobuf";

import {
  Client,
  command,
  errors,
  external,
  fn,
  fromPayload,
  phaseOf,
  withTraceparent,
  type After,
  type NewTask,
  type TaskOptions,
} from "../src/index.js";
import { CreateOutcome, LogLevel, PayloadSchema, TaskEventType, TaskPhase, type Task } from "../src/v1.js";
import { scheduleAnswer } from "./schedules.js";
import { Workers } from "./workers.js";

export type Arguments = Readonly<Record<string, unknown>>;

const KINDS: readonly (readonly [new (...args: never[]) => Error, string])[] = [
  [errors.NoContext, "NO_CONTEXT"],
  [errors.ContextExpired, "CONTEXT_EXPIRED"],
  [errors.PlaintextRefused, "PLAINTEXT_REFUSED"],
  [errors.ContextError, "CONTEXT_INVALID"],
  [errors.ServerUnreachable, "SERVER_UNREACHABLE"],
  [errors.CertificateUntrusted, "CERTIFICATE_UNTRUSTED"],
  [errors.VersionUnsupported, "VERSION_UNSUPPORTED"],
  [errors.WaitTimeout, "TIMEOUT"],
];

function showError(error: unknown): object {
  const known = KINDS.find(([type]) => error instanceof type)?.[1];
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof errors.TaskyardError)) {
    return { kind: known ?? (error as Error).name, message, fields: [], retry_after: null };
  }
  return {
    kind: known ?? (error.reason || errors.Code[error.code]),
    message,
    fields: error.violations.map(({ field, description }) => ({ field, description })),
    retry_after: error.retryAfterMs === undefined ? null : error.retryAfterMs / 1000,
  };
}

export function showTask(task: Task): object {
  const payload = task.spec?.payload?.value;
  const { status } = task;
  return {
    name: task.name,
    phase: phaseOf(task),
    attempt: status?.attempt ?? 0,
    exit_code: status?.exitCode ?? null,
    payload_text: payload?.case === "raw" ? new TextDecoder().decode(payload.value) : "",
    output: fromPayload(status?.result?.output) ?? null,
    error: status?.error ? { code: status.error.code, message: status.error.message } : null,
    traceparent: task.metadata?.traceparent ?? "",
  };
}

export function newTask(given: Arguments): NewTask {
  const options: TaskOptions = {
    id: text(given, "task_id"),
    requestId: text(given, "request_id"),
    labels: (given["labels"] ?? {}) as Record<string, string>,
    payload: payloadOf(given),
    after: (given["after"] ?? []) as After[],
  };
  const retries = given["retries"];
  if (typeof retries === "number") options.retry = { maxRetries: retries, initialMs: 10, maxMs: 10 };
  if (typeof given["function"] === "string") return fn(given["function"], options.payload, options);
  if (given["command"]) {
    const [program, ...args] = given["command"] as string[];
    return command(program ?? "", args, options);
  }
  return external(options);
}

function payloadOf(given: Arguments): unknown {
  const exact = text(given, "payload_text");
  if (!exact) return given["payload"];
  const raw = new TextEncoder().encode(exact);
  return create(PayloadSchema, { value: { case: "raw", value: raw }, contentType: "application/json" });
}

export function text(given: Arguments, name: string): string {
  return (given[name] ?? "") as string;
}

class Driver {
  private connected: Client | undefined;
  private readonly streams = new Map<string, AsyncGenerator<object, void, undefined>>();
  private readonly workers = new Workers();

  private get client(): Client {
    if (!this.connected) throw new Error("connect comes first");
    return this.connected;
  }

  close(): void {
    this.connected?.close();
  }

  async answer(op: string, given: Arguments): Promise<object> {
    switch (op) {
      case "hello":
        return { language: "typescript", features: ["worker"] };
      case "connect":
        return this.connect(given);
      case "create": {
        const made = await withTraceparent(text(given, "traceparent"), () => this.client.create(newTask(given)));
        return { name: made.name, outcome: CreateOutcome[made.outcome], phase: phaseOf(made) };
      }
      case "get":
        return showTask(await this.client.get(text(given, "task")));
      case "wait": {
        const timeout = given["timeout"] as number | undefined;
        const limit = timeout === undefined ? {} : { timeoutMs: timeout * 1000 };
        return showTask(await this.client.wait(text(given, "task"), limit));
      }
      case "cancel":
        return showTask(await this.client.cancel(text(given, "task"), { reason: text(given, "reason") }));
      case "list": {
        const names = [];
        const pageSize = (given["page_size"] ?? 1000) as number;
        for await (const task of this.client.list({ filter: text(given, "filter"), pageSize })) names.push(task.name);
        return { names };
      }
      case "watch":
        this.streams.set(text(given, "stream"), this.watch(given));
        return {};
      case "logs":
        this.streams.set(text(given, "stream"), this.logs(given));
        return {};
      case "next":
        return this.next(text(given, "stream"), given["count"] as number);
      case "close":
        await this.streams.get(text(given, "stream"))?.return();
        return {};
      default:
        if (op.startsWith("schedule_")) return scheduleAnswer(op, given, this.client.schedules);
        return this.workers.answer(op, given, this.client);
    }
  }

  private connect(given: Arguments): object {
    this.close();
    const outage = given["outage_timeout"] as number | undefined;
    this.connected = new Client({
      address: given["address"] as string | undefined,
      key: given["key"] as string | undefined,
      tenant: given["tenant"] as string | undefined,
      scheduler: given["scheduler"] as string | undefined,
      tlsCa: given["tls_ca"] as string | undefined,
      ...(outage === undefined ? {} : { outageTimeoutMs: outage * 1000 }),
    });
    return { address: this.client.context.address, tenant: this.client.context.tenant };
  }

  private async *watch(given: Arguments): AsyncGenerator<object, void, undefined> {
    const events = this.client.watch({
      tasks: (given["tasks"] ?? []) as string[],
      filter: text(given, "filter"),
      snapshot: given["snapshot"] === true,
      untilTerminal: given["until_terminal"] === true,
    });
    for await (const event of events) {
      yield {
        type: TaskEventType[event.type],
        name: event.task?.name,
        phase: TaskPhase[event.status?.phase ?? 0],
        version: Number(event.resourceVersion),
      };
    }
  }

  private async *logs(given: Arguments): AsyncGenerator<object, void, undefined> {
    for await (const entry of this.client.logs(text(given, "task"), { follow: given["follow"] === true })) {
      yield {
        message: entry.message,
        level: LogLevel[entry.level],
        generation: Number(entry.generation),
        sequence: Number(entry.sequence),
      };
    }
  }

  private async next(stream: string, count: number): Promise<object> {
    const items: object[] = [];
    const source = this.streams.get(stream);
    while (items.length < count) {
      const next = await source?.next();
      if (!next || next.done) return { items, ended: true };
      items.push(next.value);
    }
    return { items, ended: false };
  }
}

const driver = new Driver();
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, op, ...given } = JSON.parse(line) as { id: number; op: string } & Record<string, unknown>;
  driver.answer(op, given).then(
    (ok) => { console.log(JSON.stringify({ id, ok })); },
    (error: unknown) => { console.log(JSON.stringify({ id, error: showError(error) })); },
  );
});
lines.on("close", () => {
  driver.close();
  process.exit(0);
});
