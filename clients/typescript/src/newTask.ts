/** Builders of new tasks, one per kind of execution, and the options that every kind takes. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";

import { RestartPolicy } from "./gen/taskyard/v1/common_pb.js";
import {
  AdmissionPolicy,
  DependencyCondition,
  Interpreter,
  OverlapPolicy,
  RunnerLostPolicy,
  type ExecutionSchema,
} from "./gen/taskyard/v1/task_pb.js";
import { CreateTaskRequestSchema, type CreateTaskRequest } from "./gen/taskyard/v1/task_service_pb.js";
import { toPayload } from "./payload.js";
import type { TaskRef } from "./tenant.js";

/** How an unsuccessful task is retried. */
export interface Retry {
  maxRetries?: number;
  /** First delay. */
  initialMs?: number;
  /** Longest delay. */
  maxMs?: number;
  factor?: number;
  restart?: "never" | "on_failure" | "always";
  retryOnTimeout?: boolean;
}

/** A task that has to end before another starts. */
export interface After {
  task: TaskRef;
  /** How it has to end; succeeded by default. */
  when?: "succeeded" | "ended" | "not_succeeded";
  /** The name under which its result reaches the workload; without one it does not. */
  alias?: string;
}

/** Options of every task; a field that is missing here can be set on `NewTask.request`. */
export interface TaskOptions {
  /** The caller's own id; the server makes one otherwise. */
  id?: string;
  /** Repeating a create with it returns the first task; made by the client otherwise. */
  requestId?: string;
  /** To find the task by. */
  labels?: Record<string, string>;
  /** A registered type with its defaults, or a mere classification. */
  taskType?: string;
  /** Input: a Uint8Array or Payload as it is, anything else as JSON. */
  payload?: unknown;
  /** Environment of the workload. */
  env?: Record<string, string>;
  /** 0 to 1000, higher first; the default is that of the task type, or 10. */
  priority?: number;
  /** At most one live task of a slot runs at a time. */
  slot?: string;
  /** Type and id of the business object the task works on; makes the slot if none is given. */
  entity?: readonly [type: string, id: string];
  /** What to do if the slot is occupied. */
  admission?: "queue" | "replace" | "drop_if_running";
  /** The retry policy; a number is the number of retries. */
  retry?: Retry | number;
  /** Longest time of one attempt. */
  timeoutMs?: number;
  /** Longest time from creation to end, over all attempts. */
  totalTimeoutMs?: number;
  /** Longest wait for a runner. */
  queueTimeoutMs?: number;
  /** Longest time without a sign of the workload. */
  silenceTimeoutMs?: number;
  /** Time between the stop signal and the forced stop. */
  stopGracePeriodMs?: number;
  /** How long the ended task is kept. */
  retentionMs?: number;
  /** Tasks that have to end first: each has to succeed, unless After has another condition. */
  after?: readonly (TaskRef | After)[];
  /** Earliest start. */
  notBefore?: Date;
  /** Cores to reserve and enforce. */
  cpu?: number;
  memoryMb?: number;
  diskMb?: number;
  /** Only runners with these labels. */
  runnerLabels?: Record<string, string>;
  /** Only these runners. */
  runnerIds?: readonly string[];
  /** Whether a new run may start while an old one, out of reach, may still be running. */
  overlap?: "forbid" | "allow";
  /** What happens to the task when its runner is lost. */
  onRunnerLost?: "wait" | "redistribute" | "fail" | "hold";
  /** Full name of the task that created this one. */
  parentTask?: string;
  /** URL that is called with the ended task. */
  callback?: string;
}

/** A task to create; `request` is the message that is sent, for fields that the options do not cover. */
export interface NewTask {
  readonly request: CreateTaskRequest;
}

type Execution = MessageInitShape<typeof ExecutionSchema>;

/** A program on the runner's host, started without a shell. */
export function command(program: string, args: readonly string[] = [], options: TaskOptions = {}): NewTask {
  return newTask({ kind: { case: "command", value: { program, args: [...args] } } }, options);
}

/** A script on the runner's host; `args` follow it. */
export function script(
  interpreter: "bash" | "python" | "node",
  body: string,
  args: readonly string[] = [],
  options: TaskOptions = {},
): NewTask {
  const value = {
    interpreter: number(Interpreter, interpreter),
    body: new TextEncoder().encode(body),
    args: [...args],
  };
  return newTask({ kind: { case: "script", value } }, options);
}

/** A function that a worker or a runner's application has registered. */
export function fn(name: string, payload?: unknown, options: TaskOptions = {}): NewTask {
  return newTask({ kind: { case: "function", value: { function: name } } }, { ...options, payload });
}

/** An OCI container; `args` go to its entry point. */
export function container(image: string, args: readonly string[] = [], options: TaskOptions = {}): NewTask {
  return newTask({ kind: { case: "container", value: { image, args: [...args] } } }, options);
}

/** Work that its owner executes and reports; no runner is involved. */
export function external(options: TaskOptions = {}): NewTask {
  return newTask({ kind: { case: "external", value: {} } }, options);
}

/** A task of a registered type; the type defines what is executed. */
export function typed(taskType: string, payload?: unknown, options: TaskOptions = {}): NewTask {
  return newTask(undefined, { ...options, taskType, payload });
}

function newTask(execution: Execution | undefined, options: TaskOptions): NewTask {
  const payload = toPayload(options.payload);
  const request = create(CreateTaskRequestSchema, {
    taskId: options.id ?? "",
    requestId: options.requestId ?? "",
    task: {
      metadata: { labels: options.labels ?? {}, parentTask: options.parentTask ?? "" },
      spec: {
        ...(execution ? { execution } : {}),
        ...(payload ? { payload } : {}),
        taskType: options.taskType ?? "",
        slot: options.slot ?? "",
        ...given("priority", options.priority),
        ...given("entity", options.entity && { type: options.entity[0], id: options.entity[1] }),
        ...given("notBefore", options.notBefore && timestampFromDate(options.notBefore)),
        ...given("callback", options.callback ? { url: options.callback } : undefined),
        ...given("retry", options.retry === undefined ? undefined : retryPolicy(options.retry)),
        after: (options.after ?? []).map(dependency),
        ...durations(options),
        ...placement(options),
        env: Object.entries(options.env ?? {}).map(([name, value]) => ({ name, value })),
        admission: number(AdmissionPolicy, options.admission),
        overlap: number(OverlapPolicy, options.overlap),
        onRunnerLost: number(RunnerLostPolicy, options.onRunnerLost),
      },
    },
  });
  return { request };
}

function dependency(prerequisite: TaskRef | After) {
  const after = typeof prerequisite === "object" && "task" in prerequisite ? prerequisite : { task: prerequisite };
  const task = typeof after.task === "string" ? after.task : after.task.name;
  return { task, when: number(DependencyCondition, after.when), alias: after.alias ?? "" };
}

function durations(options: TaskOptions) {
  return {
    ...given("attemptTimeout", duration(options.timeoutMs)),
    ...given("totalTimeout", duration(options.totalTimeoutMs)),
    ...given("queueTimeout", duration(options.queueTimeoutMs)),
    ...given("silenceTimeout", duration(options.silenceTimeoutMs)),
    ...given("stopGracePeriod", duration(options.stopGracePeriodMs)),
    ...given("retention", duration(options.retentionMs)),
  };
}

function placement(options: TaskOptions) {
  const { cpu, memoryMb, diskMb, runnerLabels, runnerIds } = options;
  const sized = cpu !== undefined || memoryMb !== undefined || diskMb !== undefined;
  return {
    ...(sized
      ? { resources: { cpuMillis: Math.round((cpu ?? 0) * 1000), memoryMb: memoryMb ?? 0, diskMb: diskMb ?? 0 } }
      : {}),
    ...(runnerLabels || runnerIds
      ? { placement: { required: { selector: { matchLabels: runnerLabels ?? {} }, runnerIds: [...(runnerIds ?? [])] } } }
      : {}),
  };
}

function retryPolicy(retry: Retry | number) {
  if (typeof retry === "number") return { maxRetries: retry };
  const backoff = {
    ...given("initial", duration(retry.initialMs)),
    ...given("max", duration(retry.maxMs)),
    ...given("factor", retry.factor),
  };
  return {
    ...given("maxRetries", retry.maxRetries),
    restart: number(RestartPolicy, retry.restart),
    retryOnTimeout: retry.retryOnTimeout ?? false,
    ...(Object.keys(backoff).length ? { backoff } : {}),
  };
}

function given<K extends string, V>(name: K, value: V | undefined): { [P in K]?: V } {
  return (value === undefined ? {} : { [name]: value }) as { [P in K]?: V };
}

function duration(ms: number | undefined) {
  return ms === undefined ? undefined : durationFromMs(ms);
}

/** The value of an enum for a word such as "forbid"; the unspecified one for undefined. */
function number<E>(values: Readonly<Record<string, E | string>>, word: string | undefined): E {
  const found = values[(word ?? "unspecified").toUpperCase()];
  if (found === undefined || typeof found === "string") {
    const words = Object.keys(values).filter((name) => /^[A-Z_]+$/.test(name) && name !== "UNSPECIFIED");
    throw new TypeError(`'${word ?? ""}' is not one of ${words.join(", ").toLowerCase()}`);
  }
  return found;
}
