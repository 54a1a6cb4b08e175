/** The retry and timeout of every method: service_config.json, the gRPC service config that all clients read. */

import { createRequire } from "node:module";

interface MethodConfig {
  readonly name: readonly { readonly service: string; readonly method: string }[];
  readonly timeout?: string;
  readonly retryPolicy?: object;
}
interface ServiceConfig {
  readonly methodConfig: readonly MethodConfig[];
}

const config = createRequire(import.meta.url)("../../src/service_config.json") as ServiceConfig;

function paths(entry: MethodConfig): string[] {
  return entry.name.map((name) => `/${name.service}/${name.method}`);
}

/** The config for gRPC's own use, without timeouts: the client sends a deadline with each call. */
export const retryConfig: string = JSON.stringify({
  ...config,
  methodConfig: config.methodConfig.map((entry) => ({ ...entry, timeout: undefined })),
});

/** The timeout in milliseconds by method, "/taskyard.v1.TaskService/GetTask"; streams have none. */
export const timeouts: ReadonlyMap<string, number> = new Map(
  config.methodConfig.flatMap((entry) =>
    entry.timeout ? paths(entry).map((path) => [path, parseFloat(entry.timeout ?? "") * 1000] as const) : [],
  ),
);

/** The methods that are safe to repeat: those with a retry policy. */
export const repeatable: ReadonlySet<string> = new Set(
  config.methodConfig.flatMap((entry) => (entry.retryPolicy ? paths(entry) : [])),
);
