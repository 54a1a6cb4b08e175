/** The tenant whose tasks a client names: that of its context, otherwise that of its key. */

import type { CallOptions, Channels } from "./channel.js";
import type { Context } from "./context.js";
import { Unimplemented } from "./errors.js";
import { ApiKeyService } from "./gen/taskyard/v1/api_key_service_pb.js";
import { taskName, tenantName } from "./names.js";

/** The tenant of a key that belongs to none: an administrator's. */
const DEFAULT_TENANT = "default";

/** A task by its id, its full name, or as it was returned. */
export type TaskRef = string | { readonly name: string };

export class Tenant {
  private found: string;

  constructor(
    context: Context,
    private readonly channels: Channels,
  ) {
    this.found = context.tenant;
  }

  /** Its id; the first use asks the server for it, where the context names none. */
  async id(options: CallOptions = {}): Promise<string> {
    this.found ||= await this.ofKey(options);
    return this.found;
  }

  /** Its full name, the parent of its tasks. */
  async parent(options: CallOptions = {}): Promise<string> {
    return tenantName(await this.id(options));
  }

  /** The full name of a task. */
  async task(task: TaskRef, options: CallOptions = {}): Promise<string> {
    const given = typeof task === "string" ? task : task.name;
    return given.startsWith("tenants/") ? given : taskName(await this.id(options), given);
  }

  private async ofKey({ signal, timeoutMs }: CallOptions): Promise<string> {
    try {
      const response = await this.channels.unary("taskdb", ApiKeyService.method.whoAmI, {}, { signal, timeoutMs });
      return response.apiKey?.tenant || DEFAULT_TENANT;
    } catch (error) {
      // A server of before this method.
      if (error instanceof Unimplemented) return DEFAULT_TENANT;
      throw error;
    }
  }
}
