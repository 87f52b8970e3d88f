// One stream table: what state it is in, what to do about it, and how it is built.

import { drop, pause, refresh, repair, resume, verify } from "../actions.js";
import { get, Problem, tablePath } from "../api.js";
import { freshnessBar } from "../charts.js";
import { debounce, h, put } from "../dom.js";
import { count, counted, lastPart, milliseconds, rowChange, seconds, time } from "../format.js";
import { follow, live } from "../live.js";
import { problemNotice, sentence } from "../notices.js";
import { rowsTable } from "../rows.js";
import { session, signInNotice } from "../session.js";
import { stateLabel } from "../states.js";
import { definitionTab, eventsTab, historyTab, planTab } from "./table_tabs.js";

const TABS = [["overview", "Overview"], ["plan", "Plan"], ["history", "History"], ["definition", "Definition"], ["events", "Events"]];
const LATEST = 12;
const SHOWN_ROWS = 50;
const SHOWN_CHANGES = 20;

export async function tableView(view, signal, name, tab = "overview") {
  document.title = `${lastPart(name)} · pgtrickle`;
  const head = h("div", {});
  const body = h("div", { role: "tabpanel" }, h("p", { class: "loading" }, "Loading…"));
  put(view, head, tabs(name, tab), body);
  let details = null;
  const showHead = () => {
    const row = live.tables.get(name) ?? details;
    if (row) put(head, header(row, details));
  };
  showHead();
  follow(signal, {
    table: (table) => table.name === name && showHead(),
    added: (table) => table.name === name && showHead(),
    reload: showHead,
    removed: (removed) => { if (removed === name) location.hash = "#/"; },
  });
  try {
    // events may not have told yet of a table that was just created: only the server knows that there is none
    details = await get(tablePath(name), { signal });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // the link below is the list that the hint speaks of
    if (error.code === "PGT-S002") error.hint = error.hint?.match(/^Did you mean [^?]*\?/)?.[0] ?? null;
    put(view, problemNotice(error), h("p", { class: "empty" }, h("a", { href: "#/" }, "All stream tables")));
    return;
  }
  showHead();
  const content = { overview: overviewTab, plan: planTab, history: historyTab, definition: definitionTab, events: eventsTab };
  await (content[tab] ?? overviewTab)(body, signal, details);
}

function tabs(name, current) {
  return h("div", { class: "tabs", role: "tablist" }, TABS.map(([key, text]) =>
    h("a", { role: "tab", href: `#/tables/${encodeURIComponent(name)}/${key}`, "aria-selected": String(key === current) }, text)));
}

function header(table, details) {
  const readers = details?.readers ?? [];
  const isSuspended = table.state === "suspended";
  return [
    h("div", { class: "table-head" },
      h("div", {},
        h("h1", {}, table.name),
        h("div", { class: "under" }, stateLabel(table.state), h("span", {}, situation(table)), h("a", { href: `#/graph/${encodeURIComponent(table.name)}` }, "Show in the graph"))),
      h("div", { class: "actions" },
        h("button", { class: isSuspended ? null : "primary", onclick: () => refresh(table), disabled: isSuspended }, "Refresh"),
        isSuspended
          ? h("button", { onclick: () => resume(table) }, "Resume")
          : h("button", { onclick: () => pause(table) }, "Pause"),
        h("button", { onclick: () => verify(table) }, "Verify"),
        h("a", { class: "button", href: `#/edit/${encodeURIComponent(table.name)}` }, "Edit"),
        h("button", { class: "danger", onclick: () => drop(table, readers) }, "Drop"))),
    trouble(table, details),
  ];
}

function situation(table) {
  if (!table.is_populated) return "It has not been loaded yet.";
  const age = table.staleness_seconds;
  const last = table.last ? h("span", {}, ", last refreshed ", time(table.last.at)) : null;
  return [age ? `${seconds(age)} behind its sources` : "It shows every change of its sources", last, "."];
}

/** Why it does not follow its sources, and what to do. */
function trouble(table, details) {
  if (table.state !== "failing" && table.state !== "suspended" && !table.waits) return null;
  if (table.waits && table.state !== "failing" && table.state !== "suspended") return h("div", { class: "notice late" }, sentence(table.waits));
  const error = details?.last_error ?? table.error;
  const needsSignIn = !session.isSignedIn && table.consecutive_errors > 0;
  return h("div", { class: "notice failing", role: "alert" },
    h("strong", {}, table.state === "suspended"
      ? table.consecutive_errors ? `Suspended after ${counted(table.consecutive_errors, "failure")} in a row.` : "Paused."
      : `The last ${table.consecutive_errors > 1 ? `${count(table.consecutive_errors)} refreshes` : "refresh"} failed.`),
    error ? h("p", { class: "mono" }, error) : null,
    needsSignIn ? h("p", { class: "soft" }, "Sign in to see the error.") : null,
    details?.hint ? h("p", { class: "soft" }, sentence(details.hint)) : null,
    table.retry_at && table.state === "failing" ? h("p", { class: "soft" }, "It will be retried automatically.") : null,
    h("div", { class: "actions" },
      table.state === "suspended" ? h("button", { class: "primary", onclick: () => resume(table) }, "Resume") : null,
      table.consecutive_errors ? h("button", { onclick: () => repair(table) }, "Repair") : null));
}

async function overviewTab(body, signal, details) {
  const facts = h("dl", { class: "facts" });
  const flow = h("ul", { class: "flow-list" });
  const rows = h("div", {});
  const preview = h("div", {});
  const keepsChanges = Boolean(details.options.keep_changes);
  const table = () => live.tables.get(details.name) ?? details;
  const latest = (await get(tablePath(details.name, `/history?limit=${LATEST}`), { signal })).filter((refresh) => refresh.action !== "NO_DATA");

  const showFacts = () => put(facts, factsOf(table(), details));
  const showFlow = () => put(flow, latest.length
    ? latest.slice(0, LATEST).map(flowItem)
    : h("li", { class: "faint" }, "Nothing yet."));
  const showRows = async () => {
    if (!session.isSignedIn) return put(rows, signInNotice("its rows"));
    try {
      const found = await get(tablePath(details.name, `/rows?limit=${SHOWN_ROWS}`), { signal });
      return put(rows, rowsTable(found));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return put(rows, problemNotice(error));
    }
  };
  // one load at a time while refreshes come quickly; the first one at once
  let isLoading = false, isAgain = false;
  const renewRows = async () => {
    if (isLoading) { isAgain = true; return; }
    isLoading = true;
    await showRows().catch((error) => { if (error.name !== "AbortError") throw error; });
    isLoading = false;
    if (isAgain && !signal.aborted) { isAgain = false; setTimeout(renewRows, 200); }
  };
  const showFactsSoon = debounce(100, showFacts);
  follow(signal, {
    table: (changed) => changed.name === details.name && showFactsSoon(),
    refresh: (refresh) => {
      if (refresh.name !== details.name || refresh.action === "NO_DATA") return;
      latest.unshift(refresh);
      latest.length = Math.min(latest.length, LATEST);
      showFlow();
      if (session.isSignedIn) renewRows();
    },
  });

  put(body, h("div", { class: "columns" },
    h("div", { class: "stack" },
      panel("Rows", rows, h("span", { class: "help" }, "live")),
      keepsChanges && session.isSignedIn ? panel("Changed rows", changedRows(details, signal), h("span", { class: "help" }, "live")) : null,
      panel("What the next refresh would change", preview, h("button", { onclick: showPreview }, "Preview"))),
    h("div", { class: "stack" },
      panel("Now", h("div", { class: "body" }, facts)),
      panel("Latest changes", flow, h("a", { href: `#/tables/${encodeURIComponent(details.name)}/history` }, "History")))));
  put(preview, h("p", { class: "empty" }, "Computes the change without applying it."));

  async function showPreview() {
    if (!session.isSignedIn) return put(preview, signInNotice("rows"));
    put(preview, h("p", { class: "empty" }, "Computing…"));
    try {
      const found = await get(tablePath(details.name, "/preview"), { signal });
      const all = [...found.deleted, ...found.inserted];
      const kinds = [...found.deleted.map(() => "deleted"), ...found.inserted.map(() => "inserted")];
      return put(preview,
        h("p", { class: "help table-start" }, `${found.strategy.toLowerCase()}: ${found.reason}`),
        all.length ? rowsTable({ ...found, rows: all }, kinds) : h("p", { class: "empty" }, "Nothing: it is up to date."));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return put(preview, h("div", { class: "body" }, problemNotice(error)));
    }
  }

  showFacts();
  showFlow();
  await showRows();
}

/** The rows that refreshes change, as they commit; the newest first. */
function changedRows(details, signal) {
  const place = h("div", {}, h("p", { class: "empty" }, "No row has changed since you opened this page."));
  let rows = [], kinds = [];
  const stream = new EventSource(`api/v1${tablePath(details.name, "/changes/stream")}?since=now`);
  signal.addEventListener("abort", () => stream.close());
  stream.addEventListener("changes", (event) => {
    const batch = JSON.parse(event.data);
    rows = [...batch.inserted, ...batch.deleted, ...rows].slice(0, SHOWN_CHANGES);
    kinds = [...batch.inserted.map(() => "inserted"), ...batch.deleted.map(() => "deleted"), ...kinds].slice(0, SHOWN_CHANGES);
    put(place, batch.reset ? h("p", { class: "help table-start" }, sentence(batch.reset)) : null, rowsTable({ columns: details.columns, rows }, kinds));
  });
  stream.addEventListener("failed", (event) => {
    stream.close();
    put(place, h("p", { class: "empty" }, sentence(JSON.parse(event.data).title)));
  });
  return place;
}

export function panel(title, content, extra = null) {
  return h("section", { class: "panel" }, h("header", {}, h("h2", {}, title), extra), content);
}

function factsOf(table, details) {
  const entries = [
    ["Freshness", h("span", {}, table.staleness_seconds ? `${seconds(table.staleness_seconds)} behind` : "up to date", freshnessBar(table))],
    ["Schedule", `${table.schedule}${table.tier === "hot" ? "" : ` (${table.tier})`}`],
    ["Mode", h("span", {}, h("span", { class: "mode" }, table.effective_mode ?? "–"), table.refresh_mode === "AUTO" ? ", chosen automatically" : ", as asked")],
    table.reason ? ["Why", table.reason] : null,
    ["Pending", table.pending_changes === null ? "–" : counted(table.pending_changes, "change row")],
    ["Sources", linked(details.sources.map((source) => source.name ?? source))],
    ["Read by", details.readers.length ? linked(details.readers) : "no other stream table"],
    ["Owner", h("span", { class: "mono" }, table.owner)],
    details.repairs ? ["Repairs", `${counted(details.repairs, "time")}: it held wrong rows and was loaded again`] : null,
  ];
  return entries.filter(Boolean).flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]);
}

function linked(names) {
  return names.map((name, index) => [index ? ", " : null,
    live.tables.has(name) ? h("a", { class: "name", href: `#/tables/${encodeURIComponent(name)}` }, name) : h("span", { class: "name" }, name)]);
}

function flowItem(refresh) {
  return h("li", { title: refresh.reason ?? "" }, time(refresh.at), h("span", { class: "reason" }, refresh.reason ?? ""),
    refresh.status === "FAILED" ? h("span", { class: "state failing" }, "failed") : rowChange(refresh.rows_inserted, refresh.rows_deleted),
    h("span", { class: "number" }, milliseconds(refresh.ms)));
}
