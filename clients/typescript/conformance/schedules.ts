/** The operations on schedules. */

import type { Schedules } from "../src/index.js";
import type { Schedule } from "../src/v1.js";
import { newTask, showTask, text, type Arguments } from "./driver.js";

export async function scheduleAnswer(op: string, given: Arguments, schedules: Schedules): Promise<object> {
  const schedule = text(given, "schedule");
  const note = text(given, "note");
  switch (op) {
    case "schedule_create": {
      const times = { cron: given["cron"] as string[], paused: given["paused"] === true, pauseNote: note };
      return show(await schedules.create(schedule, newTask(given), times));
    }
    case "schedule_get":
      return show(await schedules.get(schedule));
    case "schedule_list": {
      const names = [];
      const pageSize = (given["page_size"] ?? 0) as number;
      for await (const found of schedules.list({ filter: text(given, "filter"), pageSize })) names.push(found.name);
      return { names };
    }
    case "schedule_pause":
      return show(await schedules.pause(schedule, { note }));
    case "schedule_resume":
      return show(await schedules.resume(schedule));
    case "schedule_run":
      return showTask(await schedules.run(schedule));
    case "schedule_delete":
      await schedules.delete(schedule);
      return {};
    default:
      throw new Error(`no such operation: ${op}`);
  }
}

function show(schedule: Schedule): object {
  return {
    name: schedule.name,
    cron: schedule.cron,
    paused: schedule.paused,
    note: schedule.pauseNote,
  };
}
