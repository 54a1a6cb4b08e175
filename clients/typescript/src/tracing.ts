/** W3C trace context: that of OpenTelemetry where the program uses it, else one that is passed on. */

import { AsyncLocalStorage } from "node:async_hooks";

import { context, propagation } from "@opentelemetry/api";

const passing = new AsyncLocalStorage<string>();

/** Calls made by `work` carry this traceparent, unless OpenTelemetry has a running span. */
export function withTraceparent<T>(traceparent: string, work: () => T): T {
  return passing.run(traceparent, work);
}

/** The headers that make the spans of a server children of the caller's. */
export function traceHeaders(): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  propagation.inject(context.active(), headers);
  const passed = passing.getStore();
  return passed && !headers["traceparent"] ? { ...headers, traceparent: passed } : headers;
}
