package dev.taskyard;

import java.util.Iterator;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** Items that are fetched as they are read; closing it ends the call behind it, also from another thread. */
public interface TaskStream<T> extends Iterator<T>, Iterable<T>, AutoCloseable {
  @Override
  default Iterator<T> iterator() {
    return this;
  }

  /** The items as a java.util.stream.Stream. */
  default Stream<T> stream() {
    return StreamSupport.stream(spliterator(), false).onClose(this::close);
  }

  @Override
  void close();
}
