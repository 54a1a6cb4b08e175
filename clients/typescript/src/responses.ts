/** Responses of the server: the pages of a list, and fields that have to be there. */

/** Every page of a list; one is fetched when the one before it has been read. */
export async function* pages<P extends { nextPageToken: string }>(fetch: (token: string) => Promise<P>): AsyncGenerator<P> {
  for (let token = ""; ; ) {
    const page = await fetch(token);
    yield page;
    if (!page.nextPageToken) return;
    token = page.nextPageToken;
  }
}

/** The value of a field that the contract promises. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError("the server left a required field out");
  return value;
}
