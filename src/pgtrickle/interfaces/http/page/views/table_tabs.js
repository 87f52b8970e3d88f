// The tabs of one stream table that show how it is built and what it did: plan, history, definition, events.

import { get, tablePath } from "../api.js";
import { historyChart, isFull } from "../charts.js";
import { debounce, h, put } from "../dom.js";
import { exactTime, milliseconds, rowChange, time } from "../format.js";
import { follow } from "../live.js";
import { copyable } from "../notices.js";
import { sqlBlock } from "../sql.js";

const CHARTED = 60;

/** The operators with what each reads, and the indexes that would help. */
export function planTab(body, signal, details) {
  const missing = details.missing_indexes ?? [];
  put(body, h("div", { class: "stack" },
    missing.length
      ? h("section", { class: "notice late" },
        h("strong", {}, `${missing.length === 1 ? "An index is" : `${missing.length} indexes are`} missing.`),
        h("p", { class: "soft" }, "Without it, a refresh reads more of a source than it needs."),
        missing.map((statement) => copyable(statement)))
      : null,
    details.plan
      ? planSections(details)
      : h("section", { class: "panel empty" }, h("p", {}, details.plan_error ?? "The query has not been compiled yet."))));
}

// what a delta rule needs, for each kind that `explain` names
const KINDS = {
  linear: "a change of its input is a change of its output",
  bilinear: "a change on one side is joined with the matching rows of the other side",
  keyed: "the groups or keys that changed are computed again",
};

/** The operators as a tree, then the other sections of the plan as `explain` prints them. */
function planSections(details) {
  const [facts, ...sections] = details.plan.trim().split(/\n\n+/);
  const others = sections.filter((section) => !section.startsWith("operators"));
  return [
    details.operators.length
      ? h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Operators"), h("span", { class: "help" }, "each reads what is below it")),
        h("ul", { class: "operators" }, details.operators.map((operator) =>
          h("li", { style: { "--depth": String(operator.depth) } }, h("span", { class: "mono" }, operator.text),
            operator.kind ? h("span", { class: "kind", title: KINDS[operator.kind] ?? "" }, operator.kind) : null))))
      : null,
    h("section", { class: "panel" }, h("header", {}, h("h2", {}, "How it is maintained")), h("pre", { class: "plan" }, facts)),
    others.map((section) => {
      const [heading, ...lines] = section.split("\n");
      return h("section", { class: "panel" }, h("header", {}, h("h2", {}, sentenceCase(heading.replace(/:$/, "")))),
        h("pre", { class: "plan" }, lines.map((line) => line.replace(/^ {2}/, "")).join("\n")));
    }),
  ];
}

function sentenceCase(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A chart of the latest refreshes, and the list of them. */
export async function historyTab(body, signal, details) {
  const chart = h("div", {});
  const rows = h("tbody", {});
  put(body, h("div", { class: "stack" },
    h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Refresh times")), chart),
    h("section", { class: "panel scroll" }, h("table", { class: "plain" },
      h("thead", {}, h("tr", {}, ["When", "Action", "Rows", "Read", "Compute", "Apply", "Total", "Why"].map((text, index) =>
        h("th", { class: index >= 3 && index <= 6 ? "number" : null }, text)))),
      rows))));
  const load = async () => {
    const found = await get(tablePath(details.name, `/history?limit=${CHARTED}`), { signal });
    const charted = found.filter((refresh) => refresh.action !== "NO_DATA");
    put(chart, charted.length ? historyChart(charted, jump) : h("p", { class: "empty" }, "No refresh has changed it yet."));
    put(rows, found.map(historyRow));
  };
  const renew = debounce(400, () => load().catch((error) => { if (error.name !== "AbortError") throw error; }));
  follow(signal, { refresh: (refresh) => refresh.name === details.name && renew() });
  await load();

  function jump(refresh) {
    const row = body.querySelector(`tr[data-refresh="${refresh.refresh_id}"]`);
    row?.scrollIntoView({ block: "center" });
    row?.classList.add("flash");
  }
}

function historyRow(refresh) {
  const hasFailed = refresh.status === "FAILED";
  return h("tr", { data: { refresh: refresh.refresh_id } },
    h("td", { class: "nowrap" }, time(refresh.at)),
    h("td", { class: "nowrap" }, hasFailed ? h("span", { class: "state failing" }, "failed") : h("span", { class: isFull(refresh) ? "state late" : "" }, refresh.action.toLowerCase().replace("_", " "))),
    h("td", {}, hasFailed ? "" : rowChange(refresh.rows_inserted, refresh.rows_deleted)),
    ["read_ms", "compute_ms", "apply_ms", "ms"].map((field) => h("td", { class: "number" }, milliseconds(refresh[field]))),
    h("td", { class: hasFailed ? "" : "soft" }, refresh.error ?? refresh.reason ?? ""));
}

/** The query and the options. */
export function definitionTab(body, signal, details) {
  const options = Object.entries(details.options ?? {}).filter(([, value]) => value !== null && value !== "");
  put(body, h("div", { class: "stack" },
    h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Query"), h("a", { href: `#/edit/${encodeURIComponent(details.name)}` }, "Edit")),
      copyable(details.query, sqlBlock(details.query))),
    h("div", { class: "columns" },
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Columns")),
        h("table", { class: "plain" }, h("tbody", {}, details.columns.map((column) =>
          h("tr", {}, h("td", { class: "name" }, column.name), h("td", { class: "mono soft" }, column.type)))))),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Options")),
        h("table", { class: "plain" }, h("tbody", {}, options.map(([option, value]) =>
          h("tr", {}, h("td", { class: "mono" }, option), h("td", { class: "mono soft" }, String(value))))))))));
}

/** Alerts about this stream table, and its failures. */
export async function eventsTab(body, signal, details) {
  const events = h("tbody", {});
  const load = async () => {
    const [alerts, refreshes] = await Promise.all([
      get("/alerts", { signal }), get(tablePath(details.name, "/history?limit=200"), { signal })]);
    const failed = refreshes.filter((refresh) => refresh.status === "FAILED")
      .map((refresh) => ({ at: refresh.at, event: "refresh_failed", text: refresh.error ?? "Sign in to see the error." }));
    const told = alerts.filter((alert) => alert.stream_table === details.name && alert.event !== "refresh_completed" && alert.event !== "refresh_failed")
      .map((alert) => ({ at: alert.at, event: alert.event, text: alertText(alert) }));
    const all = [...failed, ...told].sort((a, b) => b.at.localeCompare(a.at));
    put(events, all.length
      ? all.map((entry) => h("tr", {}, h("td", { class: "nowrap", title: exactTime(entry.at) }, time(entry.at)), h("td", { class: "nowrap" }, entry.event.replaceAll("_", " ")), h("td", { class: "soft" }, entry.text)))
      : h("tr", {}, h("td", { class: "empty" }, "No failures and no alerts are on record.")));
  };
  put(body, h("section", { class: "panel scroll" }, h("table", { class: "plain" }, events)));
  const renew = debounce(400, () => load().catch((error) => { if (error.name !== "AbortError") throw error; }));
  follow(signal, { alert: renew, refresh: (refresh) => refresh.name === details.name && refresh.status === "FAILED" && renew() });
  await load();
}

function alertText(alert) {
  const known = new Set(["event", "at", "pgt_id", "stream_table"]);
  return Object.entries(alert.details ?? {}).filter(([key, value]) => !known.has(key) && value !== null)
    .map(([key, value]) => `${key.replaceAll("_", " ")}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ");
}
