/** Resource names and the ids of requests. */

import { randomBytes } from "node:crypto";

/** The full name of a tenant, and the parent of its tasks. */
export function tenantName(tenant: string): string {
  return tenant.startsWith("tenants/") ? tenant : `tenants/${tenant}`;
}

/** The full name of a task that is given by id or by full name. */
export function taskName(tenant: string, task: string): string {
  return task.startsWith("tenants/") ? task : `${tenantName(tenant)}/tasks/${task}`;
}

/** A unique id that begins with the time, so that ids made together are stored together in the server's index. */
export function newRequestId(): string {
  return Date.now().toString(16).padStart(12, "0") + randomBytes(10).toString("hex");
}
