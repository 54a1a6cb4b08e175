/** Schedules: tasks that are created by time. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";

import type { CallOptions, Channels } from "./channel.js";
import { ScheduleSchema, type Schedule, type ScheduledInstant } from "./gen/taskyard/v1/schedule_pb.js";
import { ScheduleService } from "./gen/taskyard/v1/schedule_service_pb.js";
import type { Task } from "./gen/taskyard/v1/task_pb.js";
import { newRequestId } from "./names.js";
import type { NewTask } from "./newTask.js";
import { pages, present } from "./responses.js";
import type { Tenant } from "./tenant.js";

/** When a schedule creates its task: the fields of the message, such as `cron`, `every`, `timeZone` and `overlap`. */
export type ScheduleTimes = Omit<MessageInitShape<typeof ScheduleSchema>, "template" | "$typeName">;

export interface ScheduleListOptions extends CallOptions {
  /** An expression such as 'paused = false'. */
  filter?: string;
  pageSize?: number;
}

const { method } = ScheduleService;

/** The schedules of a client's tenant. A schedule is given by its id or its full name. */
export class Schedules {
  constructor(
    private readonly tenant: Tenant,
    private readonly channels: Channels,
  ) {}

  /** Creates a schedule of a task; its first instant is after now. A retry inside creates no second schedule. */
  async create(scheduleId: string, task: NewTask, times: ScheduleTimes, options: CallOptions = {}): Promise<Schedule> {
    const { metadata, spec } = present(task.request.task);
    const request = {
      parent: await this.tenant.parent(options),
      scheduleId,
      schedule: create(ScheduleSchema, { ...times, template: { metadata, spec } }),
      requestId: newRequestId(),
    };
    return present((await this.channels.unary("taskdb", method.createSchedule, request, options)).schedule);
  }

  /** A schedule. */
  async get(schedule: string, options: CallOptions = {}): Promise<Schedule> {
    const request = { name: await this.name(schedule, options) };
    return present((await this.channels.unary("taskdb", method.getSchedule, request, options)).schedule);
  }

  /** Schedules by id, fetched page by page as they are read. */
  async *list(options: ScheduleListOptions = {}): AsyncGenerator<Schedule, void, undefined> {
    const request = {
      parent: await this.tenant.parent(options),
      filter: options.filter ?? "",
      pageSize: options.pageSize ?? 0,
    };
    const fetch = (pageToken: string) =>
      this.channels.unary("taskdb", method.listSchedules, { ...request, pageToken }, options);
    for await (const page of pages(fetch)) yield* page.schedules;
  }

  /** Changes the fields that `paths` name, such as "cron"; throws if the schedule changed since it was read. */
  async update(schedule: Schedule, paths: readonly string[], options: CallOptions = {}): Promise<Schedule> {
    const request = { schedule, updateMask: { paths: [...paths] } };
    return present((await this.channels.unary("taskdb", method.updateSchedule, request, options)).schedule);
  }

  /** Lets a schedule create no tasks until it is resumed. Repeating it is safe. */
  async pause(schedule: string, options: CallOptions & { note?: string } = {}): Promise<Schedule> {
    const request = { name: await this.name(schedule, options), note: options.note ?? "" };
    return present((await this.channels.unary("taskdb", method.pauseSchedule, request, options)).schedule);
  }

  /** Lets a schedule go on at its next instant; the pause is not caught up. Repeating it is safe. */
  async resume(schedule: string, options: CallOptions = {}): Promise<Schedule> {
    const request = { name: await this.name(schedule, options) };
    return present((await this.channels.unary("taskdb", method.resumeSchedule, request, options)).schedule);
  }

  /** Creates the task of a schedule now; its overlap policy applies. */
  async run(schedule: string, options: CallOptions = {}): Promise<Task> {
    const request = { name: await this.name(schedule, options), requestId: newRequestId() };
    return present((await this.channels.unary("taskdb", method.runSchedule, request, options)).task);
  }

  /** Creates the tasks of past instants from `start` to before `end`, at most 1,000; their full names. */
  async backfill(schedule: string, start: Date, end: Date, options: CallOptions = {}): Promise<string[]> {
    const request = {
      name: await this.name(schedule, options),
      startTime: timestampFromDate(start),
      endTime: timestampFromDate(end),
    };
    return (await this.channels.unary("taskdb", method.backfillSchedule, request, options)).tasks;
  }

  /** The next instants of a stored schedule. */
  async preview(schedule: string, count = 10, options: CallOptions = {}): Promise<ScheduledInstant[]> {
    const request = { parent: await this.tenant.parent(options), name: await this.name(schedule, options), count };
    return (await this.channels.unary("taskdb", method.previewSchedule, request, options)).instants;
  }

  /** Deletes a schedule; its tasks stay. */
  async delete(schedule: string, options: CallOptions = {}): Promise<void> {
    await this.channels.unary("taskdb", method.deleteSchedule, { name: await this.name(schedule, options) }, options);
  }

  private async name(schedule: string, options: CallOptions): Promise<string> {
    return schedule.startsWith("tenants/") ? schedule : `${await this.tenant.parent(options)}/schedules/${schedule}`;
  }
}
