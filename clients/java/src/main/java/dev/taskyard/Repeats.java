package dev.taskyard;

import dev.taskyard.v1.LogEntry;
import dev.taskyard.v1.LogLevel;
import dev.taskyard.v1.LogSource;
import dev.taskyard.v1.TailTaskLogsResponse;
import dev.taskyard.v1.TaskEvent;
import dev.taskyard.v1.TaskEventType;
import dev.taskyard.v1.WatchTasksResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Drops what a resumed stream delivers again; one instance per stream. */
final class Repeats {
  // Tasks whose newest version is kept.
  private static final int MAX_TRACKED_TASKS = 100_000;

  private final Map<String, Long> versions =
      new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Long> eldest) {
          return size() > MAX_TRACKED_TASKS;
        }
      };
  private final Map<Long, Long> sequences = new HashMap<>();

  /** The new events of a response; `before` is the token before it. */
  List<WatchEvent> events(WatchTasksResponse response, String before) {
    List<TaskEvent> fresh = response.getEventsList().stream().filter(this::isNew).toList();
    List<WatchEvent> events = new ArrayList<>();
    for (TaskEvent event : fresh) {
      // Until the last event of a response is processed, only the token before it is safe.
      boolean last = events.size() == fresh.size() - 1 && !response.getResumeToken().isEmpty();
      events.add(new WatchEvent(event, last ? response.getResumeToken() : before));
    }
    return events;
  }

  private boolean isNew(TaskEvent event) {
    // A task that was deleted and created again has the old name and a new uid.
    String uid = event.getTask().getMetadata().getUid();
    String key = uid.isEmpty() ? event.getTask().getName() : uid;
    boolean deleted = event.getType() == TaskEventType.TASK_EVENT_TYPE_DELETED;
    long version = deleted ? Long.MAX_VALUE : event.getResourceVersion();
    long last = versions.getOrDefault(key, -1L);
    versions.put(key, Math.max(version, last));
    return version > last;
  }

  /** The new entries of a response, with a warning where the runner had to drop some. */
  List<LogEntry> entries(TailTaskLogsResponse response) {
    List<LogEntry> entries = new ArrayList<>();
    if (response.getDroppedCount() > 0) {
      entries.add(
          LogEntry.newBuilder()
              .setGeneration(response.getEntriesCount() > 0 ? response.getEntries(0).getGeneration() : 0)
              .setLevel(LogLevel.LOG_LEVEL_WARNING)
              .setSource(LogSource.LOG_SOURCE_RUNNER)
              .setMessage(
                  response.getDroppedCount() + " lines are missing here; they were written too fast to be sent")
              .build());
    }
    for (LogEntry entry : response.getEntriesList()) {
      if (entry.getSequence() > sequences.getOrDefault(entry.getGeneration(), 0L)) {
        sequences.put(entry.getGeneration(), entry.getSequence());
        entries.add(entry);
      }
    }
    return entries;
  }
}
