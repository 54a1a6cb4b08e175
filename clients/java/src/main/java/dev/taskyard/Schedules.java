package dev.taskyard;

import com.google.protobuf.FieldMask;
import dev.taskyard.v1.BackfillScheduleRequest;
import dev.taskyard.v1.CreateScheduleRequest;
import dev.taskyard.v1.DeleteScheduleRequest;
import dev.taskyard.v1.GetScheduleRequest;
import dev.taskyard.v1.ListSchedulesRequest;
import dev.taskyard.v1.ListSchedulesResponse;
import dev.taskyard.v1.PauseScheduleRequest;
import dev.taskyard.v1.PreviewScheduleRequest;
import dev.taskyard.v1.ResumeScheduleRequest;
import dev.taskyard.v1.RunScheduleRequest;
import dev.taskyard.v1.Schedule;
import dev.taskyard.v1.ScheduleServiceGrpc;
import dev.taskyard.v1.ScheduledInstant;
import dev.taskyard.v1.Task;
import dev.taskyard.v1.UpdateScheduleRequest;
import io.grpc.MethodDescriptor;
import java.time.Instant;
import java.util.List;

/** The schedules of a client's tenant: tasks that are created by time. A schedule is given by its id or full name. */
public final class Schedules {
  private final Taskyard client;

  Schedules(Taskyard client) {
    this.client = client;
  }

  /**
   * Creates a schedule of a task; its first instant is after now. A retry inside creates no second schedule.
   *
   * @param times when it creates the task, and what it does with late and overlapping instants; its template is filled in
   */
  public Schedule create(String id, NewTask task, Schedule times) {
    CreateScheduleRequest request =
        CreateScheduleRequest.newBuilder()
            .setParent(parent())
            .setScheduleId(id)
            .setSchedule(times.toBuilder().setTemplate(task.template()))
            .setRequestId(Names.newRequestId())
            .build();
    return call(ScheduleServiceGrpc.getCreateScheduleMethod(), request).getSchedule();
  }

  public Schedule get(String schedule) {
    GetScheduleRequest request = GetScheduleRequest.newBuilder().setName(name(schedule)).build();
    return call(ScheduleServiceGrpc.getGetScheduleMethod(), request).getSchedule();
  }

  /** Schedules that match a filter such as {@code paused = false}, by id, in pages of the default size. */
  public TaskStream<Schedule> list(String filter) {
    return list(filter, 0);
  }

  /** Schedules that match a filter, by id, fetched page by page as they are read. */
  public TaskStream<Schedule> list(String filter, int pageSize) {
    ListSchedulesRequest.Builder request = ListSchedulesRequest.newBuilder().setFilter(filter).setPageSize(pageSize);
    return new Pages<>(
        token ->
            call(
                ScheduleServiceGrpc.getListSchedulesMethod(),
                request.setParent(parent()).setPageToken(token).build()),
        ListSchedulesResponse::getSchedulesList,
        ListSchedulesResponse::getNextPageToken);
  }

  /** Changes the fields that the paths name, such as "cron"; throws if the schedule changed since it was read. */
  public Schedule update(Schedule schedule, String... paths) {
    UpdateScheduleRequest request =
        UpdateScheduleRequest.newBuilder()
            .setSchedule(schedule)
            .setUpdateMask(FieldMask.newBuilder().addAllPaths(List.of(paths)))
            .build();
    return call(ScheduleServiceGrpc.getUpdateScheduleMethod(), request).getSchedule();
  }

  /** Lets a schedule create no tasks until it is resumed. Repeating it is safe. */
  public Schedule pause(String schedule, String note) {
    PauseScheduleRequest request = PauseScheduleRequest.newBuilder().setName(name(schedule)).setNote(note).build();
    return call(ScheduleServiceGrpc.getPauseScheduleMethod(), request).getSchedule();
  }

  /** Lets a schedule go on at its next instant; the pause is not caught up. Repeating it is safe. */
  public Schedule resume(String schedule) {
    ResumeScheduleRequest request = ResumeScheduleRequest.newBuilder().setName(name(schedule)).build();
    return call(ScheduleServiceGrpc.getResumeScheduleMethod(), request).getSchedule();
  }

  /** Creates the task of a schedule now; its overlap policy applies. */
  public Task run(String schedule) {
    RunScheduleRequest request =
        RunScheduleRequest.newBuilder().setName(name(schedule)).setRequestId(Names.newRequestId()).build();
    return call(ScheduleServiceGrpc.getRunScheduleMethod(), request).getTask();
  }

  /** Creates the tasks of past instants from start to before end, at most 1,000; their full names. */
  public List<String> backfill(String schedule, Instant start, Instant end) {
    BackfillScheduleRequest request =
        BackfillScheduleRequest.newBuilder()
            .setName(name(schedule))
            .setStartTime(NewTask.timestampOf(start))
            .setEndTime(NewTask.timestampOf(end))
            .build();
    return call(ScheduleServiceGrpc.getBackfillScheduleMethod(), request).getTasksList();
  }

  /** The next instants of a stored schedule. */
  public List<ScheduledInstant> preview(String schedule, int count) {
    PreviewScheduleRequest request =
        PreviewScheduleRequest.newBuilder().setParent(parent()).setName(name(schedule)).setCount(count).build();
    return call(ScheduleServiceGrpc.getPreviewScheduleMethod(), request).getInstantsList();
  }

  /** Deletes a schedule; its tasks stay. */
  public void delete(String schedule) {
    DeleteScheduleRequest request = DeleteScheduleRequest.newBuilder().setName(name(schedule)).build();
    call(ScheduleServiceGrpc.getDeleteScheduleMethod(), request);
  }

  private <Q, R> R call(MethodDescriptor<Q, R> method, Q request) {
    return Taskyard.join(client.call(method, request));
  }

  private String parent() {
    return Names.tenant(client.tenant());
  }

  private String name(String schedule) {
    return schedule.startsWith("tenants/") ? schedule : parent() + "/schedules/" + schedule;
  }
}
