// The databases that this sidecar serves, those that need attention first.

import { get, Problem } from "./api.js";
import { h, put } from "./dom.js";
import { count, counted } from "./format.js";
import { problemNotice, sentence } from "./notices.js";
import { session, signInButton } from "./session.js";

const EVERY_MS = 1000;
const ORDER = ["refused", "unreachable", "starting", "disabled", "serving", "resting"];
const LABELS = { refused: "failing", unreachable: "failing", starting: "initializing", disabled: "suspended", serving: "fresh", resting: "fresh" };

const view = document.getElementById("view");
const search = h("input", { type: "search", placeholder: "Find a database", "aria-label": "Find a database", oninput: () => show() });
const list = h("tbody", {});
const title = h("h1", {});
let databases = [];

function show() {
  const wanted = search.value.trim().toLowerCase();
  const found = databases.filter((one) => one.name.toLowerCase().includes(wanted));
  found.sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || a.name.localeCompare(b.name));
  const troubled = databases.filter((one) => LABELS[one.state] === "failing").length;
  put(title, databases.length === 0 ? "No database is served yet."
    : troubled ? `${count(troubled)} of ${counted(databases.length, "database")} cannot be served.`
      : databases.length === 1 ? "One database is served." : `All ${count(databases.length)} databases are served.`);
  put(list, found.map(row));
}

function row(database) {
  const failing = database.statuses.ERROR ?? 0;
  const suspended = database.statuses.SUSPENDED ?? 0;
  const notes = [
    database.error,
    failing ? `${counted(failing, "stream table")} failing` : null,
    suspended ? `${counted(suspended, "stream table")} suspended` : null,
  ].filter(Boolean);
  return h("tr", {},
    h("td", {}, h("a", { class: "name", href: database.path }, database.name),
      notes.length ? h("div", { class: "soft" }, sentence(notes.join("; "))) : null),
    h("td", {}, h("span", { class: `state ${LABELS[database.state]}` }, database.state)),
    h("td", { class: "number" }, database.stream_tables === null ? "–" : count(database.stream_tables)),
    h("td", { class: "number wide-only" }, database.behind === null ? "–" : count(database.behind)),
    h("td", { class: "number wide-only" }, `${count(database.busy)} of ${count(database.quota)}`));
}

async function load() {
  try {
    databases = await get("/databases");
    if (!list.isConnected) {
      put(view, h("div", { class: "overview-top" }, title, search),
        h("section", { class: "panel" }, h("table", { class: "plain" },
          h("thead", {}, h("tr", {}, h("th", {}, "Database"), h("th", {}, "State"), h("th", { class: "number" }, "Stream tables"),
            h("th", { class: "number wide-only" }, "Behind"), h("th", { class: "number wide-only" }, "Workers"))), list)));
    }
    show();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    put(view, problemNotice(error), error.needsToken ? signInButton() : null);
  }
}

async function start() {
  put(document.getElementById("bar-end"), signInButton());
  await session.start();
  session.addEventListener("change", load);
  await load();
  setInterval(load, EVERY_MS);
}

start();
