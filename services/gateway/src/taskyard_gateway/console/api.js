// Calls of the gateway: every path is relative to the page, so that the console works below any prefix.

/** An error of the API: `reason` is its machine-readable cause, `status` the HTTP status. */
export class ApiError extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body) {
    super(body?.message || `the gateway answered ${status}`);
    this.status = status;
    this.reason = body?.details?.find((/** @type {any} */ detail) => detail.reason)?.reason || "";
    this.violations = body?.details?.find((/** @type {any} */ detail) => detail.fieldViolations)?.fieldViolations || [];
  }
}

/** Runs when the session is over, so that the page asks for a key again. */
let onSignedOut = () => {};
/** @param {() => void} callback */
export function whenSignedOut(callback) {
  onSignedOut = callback;
}

/**
 * One call. Throws ApiError, or TypeError if the gateway cannot be reached.
 * @param {string} method @param {string} path @param {any} [body] @param {Record<string, any>} [query]
 * @returns {Promise<any>}
 */
export const call = (method, path, body, query) => counted(() => send(method, path, body, query));

/** A call that takes long by its nature: the page is complete without its answer. @param {string} path @param {any} [body] */
export const postInBackground = (path, body = {}) => send("POST", path, body);

/** @param {string} method @param {string} path @param {any} [body] @param {Record<string, any>} [query] */
async function send(method, path, body, query) {
  const response = await fetch(path + queryText(query), {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: "same-origin",
  });
  const text = await response.text();
  const answer = text && (response.headers.get("content-type") || "").includes("json") ? JSON.parse(text) : {};
  if (response.ok) return answer;
  if (response.status === 401 && path !== "session") onSignedOut();
  throw new ApiError(response.status, answer);
}

let inFlight = 0;
/** Marks the page as busy while calls are in flight. @template T @param {() => Promise<T>} work @returns {Promise<T>} */
async function counted(work) {
  document.body.setAttribute("aria-busy", String((inFlight += 1) > 0));
  try {
    return await work();
  } finally {
    document.body.setAttribute("aria-busy", String((inFlight -= 1) > 0));
  }
}

/** @param {string} path @param {Record<string, any>} [query] */
export const get = (path, query) => call("GET", path, undefined, query);
/** @param {string} path @param {any} [body] */
export const post = (path, body = {}) => call("POST", path, body);

/** @param {Record<string, any>} [query] */
export function queryText(query) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {})) {
    if (value === undefined || value === "" || value === null) continue;
    for (const each of Array.isArray(value) ? value : [value]) pairs.append(name, String(each));
  }
  const text = pairs.toString();
  return text ? `?${text}` : "";
}

/** Every item of a list, page by page, at most `limit`. @param {string} path @param {string} field @param {any} query */
export async function all(path, field, query = {}, limit = 5000) {
  const found = [];
  let pageToken = "";
  do {
    const page = await get(path, { ...query, pageToken });
    found.push(...(page[field] || []));
    pageToken = page.nextPageToken || "";
  } while (pageToken && found.length < limit);
  return found;
}

/** The path of a resource, each segment encoded. @param {string} name */
export function path(name) {
  return "v1/" + name.split("/").map(encodeURIComponent).join("/");
}
