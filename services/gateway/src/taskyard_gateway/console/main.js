// The frame around every page: who is signed in, where one can go, and whether what is shown is current.
import { ApiError, call, get, whenSignedOut } from "./api.js";
import { html, render, useEffect, useState } from "./dom.js";
import { live } from "./live.js";
import { Audit } from "./pages/audit.js";
import { Create } from "./pages/create.js";
import { Doctor } from "./pages/doctor.js";
import { GroupPage } from "./pages/group.js";
import { Groups } from "./pages/groups.js";
import { Keys } from "./pages/keys.js";
import { Overview } from "./pages/overview.js";
import { Runners } from "./pages/runners.js";
import { SchedulePage } from "./pages/schedule.js";
import { Schedules } from "./pages/schedules.js";
import { SignIn } from "./pages/sign_in.js";
import { TaskPage } from "./pages/task.js";
import { Tasks } from "./pages/tasks.js";
import { Tenants } from "./pages/tenants.js";
import { Types } from "./pages/types.js";
import { here, link, useRoute } from "./router.js";
import { Foot } from "./shortcuts.js";

/** What the signed-in key may see and do. @typedef {{admin: boolean, writes: boolean, tenant: string, parent: string, key: string, expires: string}} Me */

/** @type {[string, string, any, boolean][]} path, title, page, for administrators only */
const PAGES = [
  ["overview", "Overview", Overview, false],
  ["tasks", "Tasks", Tasks, false],
  ["create", "Create", Create, false],
  ["schedules", "Schedules", Schedules, false],
  ["groups", "Groups", Groups, false],
  ["runners", "Runners", Runners, true],
  ["types", "Task types", Types, false],
  ["tenants", "Tenants", Tenants, true],
  ["keys", "Keys", Keys, false],
  ["audit", "Audit", Audit, false],
  ["doctor", "Doctor", Doctor, true],
];

/** Pages of one thing: #/tasks/{tenant}/{id}. @type {Record<string, any>} */
const DETAILS = { tasks: TaskPage, groups: GroupPage, schedules: SchedulePage };

/** @param {any} key @returns {Me} */
function meOf(key) {
  const admin = key.kind === "PRINCIPAL_KIND_ADMIN";
  const tenant = key.tenant || here().query.get("tenant") || sessionStorage.getItem("tenant") || "default";
  return { admin, writes: !key.readOnly, tenant, parent: admin ? "tenants/-" : `tenants/${tenant}`, key: key.name, expires: key.expireTime || "" };
}

function App() {
  const [me, setMe] = useState(/** @type {Me | null | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {any} */ (null));
  const route = useRoute();
  const signIn = async () => {
    const code = here().query.get("code");
    try {
      if (code) {
        history.replaceState(null, "", link([]));
        await call("POST", "session", { code });
      }
      const found = meOf((await get("v1/whoami")).apiKey);
      setError(null);
      setMe(found);
      live.start(found.parent);
    } catch (problem) {
      setMe(null);
      setError(problem instanceof ApiError && problem.status === 401 && !code ? null : problem);
    }
  };
  useEffect(() => {
    // Another key sees other things: the page begins anew, with its stream.
    whenSignedOut(() => (live.parent ? location.reload() : setMe(null)));
    signIn();
  }, []);
  if (me === undefined) return html`<p class="loading">Loading…</p>`;
  if (me === null) return html`<${SignIn} error=${error} onSignedIn=${signIn} />`;
  return html`<${Frame} me=${me} route=${route} />`;
}

/** @param {{me: Me, route: import("./router.js").Route}} properties */
function Frame({ me, route }) {
  const [name, tenant, id] = route.path;
  const pages = PAGES.filter(([, , , admins]) => me.admin || !admins);
  const [path, title, Page] = pages.find(([each]) => each === (name || "overview")) || pages[0];
  useEffect(() => { document.title = id ? `${id} · Taskyard` : `${title} · Taskyard`; }, [title, id]);
  const signOut = async () => {
    await call("DELETE", "session");
    location.reload();
  };
  return html`
    <a class="skip" href="#content" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>Skip to content</a>
    <header><strong class="brand">Taskyard</strong>
      <nav aria-label="pages">${pages.map(([each, label]) => html`<a href=${link([each])} aria-current=${each === path ? "page" : null}>${label}</a>`)}</nav>
      <span class="who">${me.admin ? "administrator" : me.tenant}${me.writes ? "" : ", read-only"}</span>
      <button onClick=${signOut}>Sign out</button></header>
    <${Banner} />
    <main id="content" tabindex="-1">${id && DETAILS[path]
      ? html`<${DETAILS[path]} key=${`${tenant}/${id}`} me=${me} tenant=${tenant} id=${id} />`
      : html`<${Page} me=${me} route=${route} />`}</main>
    <${Foot} pages=${pages.map(([each, label]) => [each, label])} />`;
}

function Banner() {
  const [state, setState] = useState(live.state);
  useEffect(() => {
    live.watchers.add(setState);
    return () => { live.watchers.delete(setState); };
  }, []);
  if (state === "live") return html`<div class="banner-room" role="status"></div>`;
  return html`<div class="banner" role="status">${state === "lost" ? "No news from the server: what you see may be old." : "Connecting: what you see may be a moment old."}</div>`;
}

const root = document.getElementById("app");
if (root) {
  root.textContent = "";
  render(html`<${App} />`, root);
}
