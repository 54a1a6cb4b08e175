package dev.taskyard;

import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Function;

/** A list over many pages as one stream; a page is fetched when the one before it has been read. */
final class Pages<P, T> implements TaskStream<T> {
  private final Function<String, P> fetch;
  private final Function<P, List<T>> items;
  private final Function<P, String> nextToken;
  private Iterator<T> page;
  private String token = "";
  private boolean last;

  Pages(Function<String, P> fetch, Function<P, List<T>> items, Function<P, String> nextToken) {
    this.fetch = fetch;
    this.items = items;
    this.nextToken = nextToken;
  }

  @Override
  public boolean hasNext() {
    while ((page == null || !page.hasNext()) && !last) {
      P found = fetch.apply(token);
      page = items.apply(found).iterator();
      token = nextToken.apply(found);
      last = token.isEmpty();
    }
    return page != null && page.hasNext();
  }

  @Override
  public T next() {
    if (!hasNext()) {
      throw new NoSuchElementException("the list has ended");
    }
    return page.next();
  }

  @Override
  public void close() {
    last = true;
    page = null;
  }
}
