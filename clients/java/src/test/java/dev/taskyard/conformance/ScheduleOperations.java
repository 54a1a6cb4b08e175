package dev.taskyard.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.taskyard.Schedules;
import dev.taskyard.v1.Schedule;

/** The operations on schedules. */
final class ScheduleOperations {
  private ScheduleOperations() {}

  static JsonObject answer(String op, JsonObject given, Schedules schedules) {
    String schedule = Driver.text(given, "schedule");
    JsonObject shown = new JsonObject();
    switch (op) {
      case "schedule_create":
        return show(schedules.create(schedule, Driver.newTask(given), times(given)));
      case "schedule_get":
        return show(schedules.get(schedule));
      case "schedule_list":
        JsonArray names = new JsonArray();
        int pageSize = given.has("page_size") ? given.get("page_size").getAsInt() : 0;
        schedules.list(Driver.text(given, "filter"), pageSize).forEachRemaining(found -> names.add(found.getName()));
        shown.add("names", names);
        return shown;
      case "schedule_pause":
        return show(schedules.pause(schedule, Driver.text(given, "note")));
      case "schedule_resume":
        return show(schedules.resume(schedule));
      case "schedule_run":
        return Driver.showTask(schedules.run(schedule));
      case "schedule_delete":
        schedules.delete(schedule);
        return shown;
      default:
        throw new IllegalArgumentException("no such operation: " + op);
    }
  }

  private static Schedule times(JsonObject given) {
    Schedule.Builder times =
        Schedule.newBuilder()
            .setPaused(given.has("paused") && given.get("paused").getAsBoolean())
            .setPauseNote(Driver.text(given, "note"));
    given.getAsJsonArray("cron").forEach(line -> times.addCron(line.getAsString()));
    return times.build();
  }

  private static JsonObject show(Schedule schedule) {
    JsonObject shown = new JsonObject();
    JsonArray lines = new JsonArray();
    schedule.getCronList().forEach(lines::add);
    shown.addProperty("name", schedule.getName());
    shown.add("cron", lines);
    shown.addProperty("paused", schedule.getPaused());
    shown.addProperty("note", schedule.getPauseNote());
    return shown;
  }
}
