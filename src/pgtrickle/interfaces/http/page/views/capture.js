// Capture: the change buffers of the sources, who reads them, and who lags behind.

import { get, post } from "../api.js";
import { debounce, h, put } from "../dom.js";
import { bytes, count, counted, lastPart, seconds } from "../format.js";
import { follow } from "../live.js";
import { attempt, confirm } from "../notices.js";
import { withToken } from "../session.js";

export async function captureView(view, signal) {
  document.title = "Capture · pgtrickle";
  const rows = h("tbody", {});
  const summary = h("h1", { class: "sentence" }, "Loading…");
  const load = async () => {
    const found = await get("/capture", { signal });
    const pending = found.reduce((sum, source) => sum + (source.pending_rows ?? 0), 0);
    put(summary, pending
      ? `${counted(pending, "change row")} ${pending === 1 ? "is" : "are"} waiting to be applied, in ${bytes(found.reduce((sum, source) => sum + (source.buffer_bytes ?? 0), 0))} of buffers.`
      : found.length ? `Every captured change of ${counted(found.length, "source")} is applied.` : "No stream table reads a source yet.");
    panel.hidden = found.length === 0;
    put(rows, found.map((source) => sourceRow(source, load)));
  };
  const panel = h("section", { class: "panel scroll", hidden: true }, h("table", { class: "plain cards" },
    h("thead", {}, h("tr", {}, h("th", {}, "Source"), h("th", {}, "Captured by"), h("th", { class: "number" }, "Pending rows"), h("th", { class: "number" }, "Buffer"), h("th", {}, "Read by"), h("th", {}, ""))),
    rows));
  put(view, h("div", { class: "overview-top" }, summary), panel);
  const renew = debounce(500, () => load().catch((error) => { if (error.name !== "AbortError") throw error; }));
  follow(signal, { refresh: renew, reload: renew, table: renew });
  await load();
}

function sourceRow(source, reload) {
  const toggle = () => withToken(async () => {
    const isSure = source.gated || await confirm({
      title: `Gate ${source.source}?`,
      text: "The stream tables that depend on it wait until you ungate it, for example while you load data. Changes are still captured.",
      action: "Gate",
    });
    if (isSure && await attempt(() => post(`/sources/${encodeURIComponent(source.source)}/${source.gated ? "ungate" : "gate"}`))) await reload();
  });
  return h("tr", {},
    h("td", {}, h("span", { class: "name" }, source.source), source.gated ? h("div", { class: "state waiting" }, "gated") : null,
      source.triggers_ok === false ? h("div", { class: "state failing" }, "its triggers are missing or disabled") : null),
    h("td", { class: "soft nowrap", data: { label: "Captured by" } }, `${source.cdc_mode ?? ""} ${source.kind === "table" ? "" : `(${source.kind.replaceAll("_", " ")})`}`),
    h("td", { class: "number", data: { label: "Pending rows" } }, count(source.pending_rows)),
    h("td", { class: "number", data: { label: "Buffer" } }, bytes(source.buffer_bytes)),
    h("td", { data: { label: "Read by" } }, source.readers.map((reader, index) => [index ? ", " : null,
      h("a", { class: "name", href: `#/tables/${encodeURIComponent(reader.table)}`, title: `${count(reader.pending_rows)} rows pending` }, lastPart(reader.table)),
      reader.staleness_seconds > 5 ? [" ", h("span", { class: "state late" }, `${seconds(reader.staleness_seconds)} behind`)] : null])),
    h("td", { class: "end" }, h("button", { class: "plain", onclick: toggle }, source.gated ? "Ungate" : "Gate…")));
}
