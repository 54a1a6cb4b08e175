package dev.taskyard;

import dev.taskyard.v1.TaskEvent;

/** A change of a task, and the token after which a later watch continues behind it. */
public record WatchEvent(TaskEvent event, String resumeToken) {}
