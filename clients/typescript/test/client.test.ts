/** The client against a real suite, which the variables of its environment name. */

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http2";
import { createServer as createTcpServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Client, command, errors, external, findContext, fromPayload, phaseOf, withTraceparent } from "../src/index.js";
import { ErrorReason, TaskService } from "../src/v1.js";

let client: Client;
before(() => {
  client = new Client();
});
after(() => {
  client.close();
});

function portOf(server: { address(): AddressInfo | string | null }): number {
  return (server.address() as AddressInfo).port;
}

async function listening<S extends Pick<Server, "listen" | "address">>(server: S): Promise<S> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

async function failure(work: Promise<unknown>): Promise<Error> {
  try {
    await work;
  } catch (error) {
    return error as Error;
  }
  throw new assert.AssertionError({ message: "the call did not fail" });
}

test("a created task runs, and its output is its log", async () => {
  const task = await client.create(command("sh", ["-c", "echo $GREETING"], { env: { GREETING: "hi" }, retry: 0 }));
  const ended = await client.wait(task, { timeoutMs: 60_000 });
  assert.equal(phaseOf(ended), "SUCCEEDED");
  assert.equal(ended.status?.exitCode, 0);
  const lines = [];
  for await (const entry of client.logs(task)) lines.push(entry.message);
  assert.deepEqual(lines, ["hi"]);
});

test("a create that is repeated with its request id creates one task", async () => {
  const task = command("true", [], { requestId: `twice-${Date.now()}` });
  const first = await client.create(task);
  assert.equal((await client.create(task)).name, first.name);
  assert.notEqual((await client.create(command("true"))).name, first.name);
});

test("errors are classes by reason, with violations and metadata", async () => {
  const missing = await failure(client.get("no-such-task"));
  assert.ok(missing instanceof errors.NotFound);
  assert.equal(missing.metadata["name"], "tenants/default/tasks/no-such-task");
  const invalid = await failure(client.create(command("true", [], { priority: 5000 })));
  assert.ok(invalid instanceof errors.FieldInvalid);
  assert.deepEqual(invalid.violations.map((v) => v.field), ["task.spec.priority"]);
});

test("every reason of the contract has a class", () => {
  const reasons = Object.values(ErrorReason).filter((name) => typeof name === "string" && name !== "UNSPECIFIED");
  assert.deepEqual(reasons.filter((name) => !(name in errors.BY_REASON)), []);
});

test("a list follows its pages and its limit", async () => {
  const label = `pages-${Date.now()}`;
  const made = [];
  const tasks = Array.from({ length: 7 }, () => external({ labels: { label } }));
  for await (const one of client.createMany(tasks)) made.push(one);
  assert.ok(made.every((one) => !(one instanceof errors.TaskyardError)));
  const filter = `metadata.labels.label = "${label}"`;
  const names = [];
  for await (const task of client.list({ filter, pageSize: 3 })) names.push(task.name);
  assert.equal(new Set(names).size, 7);
  let count = 0;
  for await (const task of client.list({ filter, pageSize: 3, limit: 4 })) count += task.name ? 1 : 0;
  assert.equal(count, 4);
});

test("createMany gives each task or its own error, in order", async () => {
  const results = [];
  const tasks = [command("true"), command("true", [], { priority: -1 }), command("true")];
  for await (const one of client.createMany(tasks)) results.push(one instanceof errors.TaskyardError ? one.reason : "made");
  assert.deepEqual(results, ["made", "FIELD_INVALID", "made"]);
});

test("a watch yields every change once and ends with its task", async () => {
  const task = await client.create(command("false", [], { retry: 0 }));
  const phases = [];
  for await (const event of client.watch({ tasks: [task], snapshot: true, untilTerminal: true })) {
    phases.push(event.status?.phase);
    assert.notEqual(event.resumeToken, undefined);
  }
  assert.equal(new Set(phases).size, phases.length);
  assert.equal(phaseOf(await client.get(task)), "FAILED");
});

test("an aborted signal ends a wait and a watch with its reason", async () => {
  const task = await client.create(external());
  const reason = new Error("enough");
  assert.equal(await failure(client.wait(task, { signal: AbortSignal.abort(reason) })), reason);
  const stop = new AbortController();
  const seen = client.watch({ tasks: [task], snapshot: true, signal: stop.signal });
  assert.equal((await seen.next()).value?.task?.name, task.name);
  const next = seen.next();
  stop.abort(reason);
  assert.equal(await failure(next), reason);
});

test("a wait that takes too long is WaitTimeout", async () => {
  const task = await client.create(external());
  assert.ok((await failure(client.wait(task, { timeoutMs: 50 }))) instanceof errors.WaitTimeout);
});

test("an external task is reported by its owner, and its output is exact", async () => {
  const task = await client.create(external());
  await client.report(task, "running", { percent: 10 });
  await client.report(task, "succeeded", { output: { n: 7 } });
  const ended = await client.wait(task);
  assert.deepEqual(fromPayload(ended.status?.result?.output), { n: 7 });
});

test("calls carry the traceparent that is passed on", async () => {
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const task = await withTraceparent(traceparent, () => client.create(external()));
  assert.match((await client.get(task)).metadata?.traceparent ?? "", /4bf92f3577b34da6a3ce929d0e0e4736/);
});

test("a task that no runner may take is explained, before and after it is created", async () => {
  const task = command("true", [], { runnerLabels: { zone: "nowhere" } });
  assert.equal((await client.explain(task)).runnable, false);
  assert.equal((await client.explain(await client.create(task))).runnable, false);
});

test("any method can be called", async () => {
  const stats = await client.call(TaskService.method.getTaskStats, { parent: "tenants/default" });
  assert.ok(stats.groups.length > 0);
});

test("calls go to the next address while the first refuses connections", async () => {
  const dead = await listening(createTcpServer());
  const address = `127.0.0.1:${portOf(dead)},${client.context.address}`;
  dead.close();
  const two = new Client({ address, key: client.context.key });
  assert.equal((await two.get(await two.create(external()))).spec?.taskType, "");
  two.close();
});

test("no server: ServerUnreachable names the address and the remedy", async () => {
  const dead = await listening(createTcpServer());
  const address = `127.0.0.1:${portOf(dead)}`;
  dead.close();
  const error = await failure(new Client({ address, key: "k" }).get("x"));
  assert.ok(error instanceof errors.ServerUnreachable, error.message);
  assert.match(error.message, new RegExp(`no server answers at ${address} .*TASKYARD_ADDRESS`));
});

test("a wrong key: Unauthenticated names the variable", async () => {
  const wrong = new Client({ address: client.context.address, key: `${client.context.key}x` });
  const error = await failure(wrong.get("x"));
  wrong.close();
  assert.ok(error instanceof errors.Unauthenticated);
  assert.match(error.message, /the key is rejected .*TASKYARD_KEY/);
});

test("a server of another major version: VersionUnsupported", async () => {
  const other = createServer();
  other.on("stream", (stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "12" }, { endStream: true });
  });
  await listening(other);
  const old = new Client({ address: `127.0.0.1:${portOf(other)}`, key: "k" });
  const error = await failure(old.get("x"));
  old.close();
  other.close();
  assert.ok(error instanceof errors.VersionUnsupported, error.message);
  assert.match(error.message, /another major version/);
});

test("a key never travels in plaintext to another machine", () => {
  const open = (): Client => new Client({ address: "192.0.2.1:7420", key: "k" });
  assert.throws(open, (error) => error instanceof errors.PlaintextRefused && /192.0.2.1.*use TLS/.test(error.message));
});

test("context files of others, unknown settings and bare keys are refused", () => {
  const folder = mkdtempSync(join(tmpdir(), "taskyard-ts-"));
  mkdirSync(join(folder, ".taskyard"));
  const file = join(folder, ".taskyard", "context.toml");
  const find = (environment: Record<string, string> = {}) => findContext({}, { HOME: folder, ...environment }, folder);
  writeFileSync(file, 'address = "a:1"\nkey = "k"\nadmin_key = "adm"\n', { mode: 0o600 });
  assert.deepEqual([find().key, find().adminKey, find().keyFile], ["k", "adm", file]);
  assert.equal(find({ TASKYARD_ADDRESS: "b:2" }).key, "");
  assert.throws(() => find({ TASKYARD_KEY: "mine" }), /TASKYARD_KEY is set, but only/);
  chmodSync(file, 0o666);
  assert.throws(find, /can be written by others.*chmod go-w/);
  chmodSync(file, 0o600);
  writeFileSync(file, 'adress = "a:1"\n');
  assert.throws(find, /unknown setting 'adress'/);
  writeFileSync(file, 'address = "a:1"\nexpire_time = "2020-01-31T12:00:00Z"\n');
  assert.throws(find, (error) => error instanceof errors.ContextExpired && error.message.includes(file));
  writeFileSync(file, 'address = "a:1"\nexpire_time = "soon"\n');
  assert.throws(find, /expire_time = 'soon'/);
  writeFileSync(file, "address = 7\n");
  assert.throws(find, /must be a text in quotes/);
});
