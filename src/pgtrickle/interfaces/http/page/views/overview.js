// The overview: one sentence, then every stream table with its state, problems first.

import { freshnessBar, sparkline } from "../charts.js";
import { h, put } from "../dom.js";
import { count, counted, lasting, lastPart, milliseconds, name, rowChange, seconds, time } from "../format.js";
import { follow, live } from "../live.js";
import { rank, STATES, stateIcon, stateLabel } from "../states.js";

const COLUMNS = [
  { key: "state", text: "Stream table", order: (a, b) => rank(a.state) - rank(b.state) || byName(a, b) },
  { key: "freshness", text: "Freshness", order: (a, b) => (b.staleness_seconds ?? 0) - (a.staleness_seconds ?? 0) || byName(a, b) },
  { key: "mode", text: "Mode", order: (a, b) => (a.effective_mode ?? "").localeCompare(b.effective_mode ?? "") || byName(a, b) },
  { key: "last", text: "Last refresh", order: (a, b) => (b.last?.at ?? "").localeCompare(a.last?.at ?? "") || byName(a, b) },
  { key: "time", text: "Time", order: (a, b) => (b.last?.ms ?? -1) - (a.last?.ms ?? -1) || byName(a, b) },
  { key: "sources", text: "Sources", order: (a, b) => (a.sources[0] ?? "").localeCompare(b.sources[0] ?? "") || byName(a, b) },
];

const FIRST_ROWS = 60;
const MORE_ROWS = 200;

// kept while the person looks at other pages
const chosen = { column: COLUMNS[0], isReversed: false, state: null, text: "" };

function byName(a, b) {
  return a.name.localeCompare(b.name);
}

export function overviewView(view, signal) {
  const sentence = h("h1", { class: "sentence" });
  const filters = h("div", { class: "filters", role: "group", "aria-label": "Filter by state" });
  const search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search stream tables", value: chosen.text });
  const head = h("div", { class: "grid-head", role: "row" });
  const body = h("div", { class: "grid-body", role: "rowgroup" });
  const grid = h("div", { class: "overview-grid", role: "table", "aria-label": "Stream tables" }, head, body);
  const none = h("div", { hidden: true });
  const end = h("div", { class: "grid-end", "aria-hidden": "true" });
  const rows = new Map();
  let matches = [];
  let limit = FIRST_ROWS;

  const top = h("div", { class: "overview-top" }, sentence, h("a", { class: "button primary", href: "#/create" }, "Create"));
  const tools = h("div", { class: "overview-tools" }, filters, search);
  put(view, top, tools, grid, end, none);

  function showCounts() {
    const counts = live.counts();
    put(sentence, situation(live.ordered(), counts.fresh));
    put(filters, filter(null, `All ${count(live.tables.size)}`),
      STATES.filter((state) => counts[state]).map((state) => filter(state, [stateIcon(state), `${count(counts[state])} ${state}`])));
    top.hidden = tools.hidden = live.tables.size === 0;
  }

  function filter(state, content) {
    return h("button", { class: "filter", "aria-pressed": String(chosen.state === state),
      onclick: () => { chosen.state = chosen.state === state ? null : state; showCounts(); arrange(); } }, content);
  }

  function showHead() {
    put(head, COLUMNS.map((column) => {
      const isChosen = chosen.column === column;
      const order = isChosen ? (chosen.isReversed ? "descending" : "ascending") : "none";
      return h("div", { role: "columnheader", class: `column-${column.key}`, "aria-sort": order },
        h("button", { class: "plain", onclick: () => sortBy(column) }, column.text, isChosen ? h("span", { class: "sort-arrow", "aria-hidden": "true" }, chosen.isReversed ? "↑" : "↓") : null));
    }));
  }

  function sortBy(column) {
    chosen.isReversed = chosen.column === column && !chosen.isReversed;
    chosen.column = column;
    showHead();
    arrange();
  }

  /** Bring the rows into their order and show those that match; existing rows are moved, not drawn again. */
  function arrange() {
    const wanted = chosen.text.trim().toLowerCase();
    matches = [...live.tables.values()].filter((table) =>
      (!chosen.state || table.state === chosen.state) && (!wanted || searchable(table).includes(wanted)));
    matches.sort(chosen.column.order);
    if (chosen.isReversed) matches.reverse();
    put(body, matches.slice(0, limit).map((table) => rowOf(table).element));
    grid.hidden = matches.length === 0;
    none.hidden = matches.length > 0;
    if (matches.length === 0) put(none, live.tables.size === 0 ? nothingYet() : nothingFound());
  }

  /** Draw more rows as the person comes near the end: nobody waits for a thousand rows to see the first ones. */
  function drawMore() {
    if (body.children.length >= matches.length) return;
    const drawn = body.children.length;
    limit = drawn + MORE_ROWS;
    body.append(...matches.slice(drawn, limit).map((table) => rowOf(table).element));
  }
  const nearEnd = new IntersectionObserver((seen) => seen.some((entry) => entry.isIntersecting) && drawMore(), { rootMargin: "800px" });
  nearEnd.observe(end);
  signal.addEventListener("abort", () => nearEnd.disconnect());

  function rowOf(table) {
    let row = rows.get(table.name);
    if (!row) rows.set(table.name, (row = overviewRow()));
    row.show(table);
    return row;
  }

  function nothingFound() {
    return h("div", { class: "empty" }, h("p", {}, "No stream table matches."),
      h("button", { onclick: () => { chosen.text = search.value = ""; chosen.state = null; showCounts(); arrange(); } }, "Show all"));
  }

  search.addEventListener("input", () => { chosen.text = search.value; limit = FIRST_ROWS; arrange(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { search.value = chosen.text = ""; arrange(); search.blur(); }
    if (event.key === "ArrowDown" || event.key === "Enter") {
      const first = body.querySelector("a.row");
      if (event.key === "Enter" && first && body.children.length === 1) first.click();
      else first?.focus();
      event.preventDefault();
    }
  });
  body.addEventListener("keydown", (event) => moveFocus(event, search));

  function changed(table) {
    const row = rows.get(table.name);
    const before = row?.state ?? matches.find((match) => match.name === table.name)?.state;
    row?.show(table);
    // the order changes only when the person would expect it: not under the pointer at each refresh
    if (before !== table.state) {
      showCounts();
      arrange();
    }
  }

  follow(signal, {
    table: changed,
    added: () => { showCounts(); arrange(); },
    removed: (removed) => { rows.delete(removed); showCounts(); arrange(); },
    reload: () => { showCounts(); arrange(); },
    refresh: (refresh) => rows.get(refresh.name)?.flash(refresh),
  });
  showCounts();
  showHead();
  arrange();
}

function searchable(table) {
  return `${table.name} ${table.sources.join(" ")} ${table.owner} ${table.effective_mode ?? ""}`.toLowerCase();
}

/** One row, which can show another version of its stream table without being drawn again. */
function overviewRow() {
  const cells = Object.fromEntries(COLUMNS.map((column) => [column.key, h("div", { role: "cell", class: `column-${column.key}` })]));
  const element = h("a", { role: "row", class: "row" }, Object.values(cells));
  let shown = null;
  const row = {
    element,
    state: null,
    show(table) {
      if (shown === table) return;
      shown = table;
      row.state = table.state;
      element.href = `#/tables/${encodeURIComponent(table.name)}`;
      element.dataset.name = table.name;
      put(cells.state, h("span", { class: "name-line" }, stateIcon(table.state), name(table)),
        table.state === "fresh" ? h("span", { class: "visually-hidden" }, "fresh") : h("span", { class: "trouble" }, stateLabel(table.state), trouble(table)));
      put(cells.freshness, freshness(table), freshnessBar(table));
      put(cells.mode, h("span", { title: table.reason ?? "" }, (table.effective_mode ?? table.refresh_mode).toLowerCase()));
      put(cells.last, time(table.last?.at), " ", table.last ? rowChange(table.last.rows_inserted, table.last.rows_deleted) : null);
      put(cells.time, sparkline(table.recent), h("span", { class: "number" }, milliseconds(table.last?.ms)));
      put(cells.sources, sources(table.sources));
    },
    flash(refresh) {
      if (!refresh.rows_inserted && !refresh.rows_deleted) return;
      element.classList.remove("flash");
      requestAnimationFrame(() => element.classList.add("flash"));
    },
  };
  return row;
}

/** What is wrong, in a few words. */
function trouble(table) {
  if (table.state === "failing") {
    const since = table.failing_since ? h("span", {}, " for ", lasting(table.failing_since)) : null;
    return [since, table.error ? h("span", { class: "soft", title: table.error }, `: ${cause(table)}`) : null];
  }
  if (table.state === "suspended" && table.error) return h("span", { class: "soft", title: table.error }, `: ${cause(table)}`);
  if (table.state === "waiting" || table.waits) return h("span", { class: "soft" }, `: ${table.waits}`);
  if (table.state === "late") return h("span", { class: "soft" }, `: ${count(table.pending_changes)} changes pending`);
  return null;
}

function freshness(table) {
  if (!table.is_populated) return h("span", { class: "faint" }, "not loaded yet");
  const age = table.staleness_seconds;
  const text = age ? `${seconds(age).split(" ").slice(0, 2).join(" ")} behind` : "up to date";
  return h("span", { class: "freshness", title: `schedule: ${table.schedule}, tier: ${table.tier}` }, text, h("span", { class: "faint" }, ` · ${table.schedule}`));
}

function sources(names) {
  const shown = names.slice(0, 2).map((source, index) => [index ? ", " : "", h("span", { class: "name", title: source }, lastPart(source))]);
  const more = names.length - 2;
  return [shown, more > 0 ? h("span", { class: "faint", title: names.slice(2).join(", ") }, ` +${more}`) : null];
}

/** The first thing to know: whether everything is fresh, and otherwise what is worst. */
function situation(ordered, fresh) {
  if (ordered.length === 0) return "";
  if (fresh === ordered.length) return fresh === 1 ? "The stream table is fresh." : `All ${count(fresh)} stream tables are fresh.`;
  const [worst] = ordered;
  return [`${count(fresh)} of ${counted(ordered.length, "stream table")} ${fresh === 1 ? "is" : "are"} fresh. `, h("code", {}, worst.name), " ", complaint(worst)];
}

function complaint(table) {
  switch (table.state) {
    case "failing":
      return ["has been failing", table.failing_since ? [" for ", lasting(table.failing_since)] : null, table.error ? `: ${cause(table)}` : "."];
    case "suspended":
      return table.consecutive_errors ? `is suspended after ${counted(table.consecutive_errors, "failure")}${table.error ? `: ${cause(table)}` : "."}` : "is paused.";
    case "late": return `is ${seconds(table.staleness_seconds)} behind its sources.`;
    case "waiting": return `is waiting: ${table.waits}.`;
    default: return "is being loaded.";
  }
}

/** The cause alone, in one line: the code and the name of the stream table stand elsewhere. */
function cause(table) {
  const line = table.error.split("\n")[0].replace(/^PGT-\w+: /, "").replace(`the refresh of ${table.name} failed: `, "");
  return /[.!?]$/.test(line) ? line : `${line}.`;
}

function moveFocus(event, search) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const row = event.target.closest("a.row");
  const next = step > 0 ? row?.nextElementSibling : row?.previousElementSibling;
  if (next) next.focus();
  else if (step < 0) search.focus();
}

function nothingYet() {
  return h("div", { class: "empty" },
    h("h1", {}, "There are no stream tables yet."),
    h("p", {}, "A stream table is a table that holds the result of a query and follows its sources."),
    h("div", { class: "actions" },
      h("a", { class: "button primary", href: "#/create" }, "Create a stream table"),
      h("a", { class: "button", href: "#/adopt" }, "Adopt a materialized view")));
}
