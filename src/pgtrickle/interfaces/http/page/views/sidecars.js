// Sidecars, their workers and queue, caches, and checks of the installation.

import { get, post } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, count, counted, milliseconds, time } from "../format.js";
import { follow } from "../live.js";
import { attempt, toast } from "../notices.js";
import { withToken } from "../session.js";

const RENEW_MS = 2000;

export async function sidecarsView(view, signal) {
  document.title = "Sidecars · pgtrickle";
  const sidecars = h("div", { class: "stack" });
  const health = h("tbody", {});
  const caches = h("tbody", {});
  put(view, h("div", { class: "stack" },
    sidecars,
    h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Checks")), h("table", { class: "plain cards" }, health)),
    h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Compiled queries"), h("button", { onclick: () => clear(load) }, "Clear caches")), h("table", { class: "plain cards" }, caches))));
  const load = async () => {
    const [running, checks, cached] = await Promise.all([get("/sidecars", { signal }), get("/health", { signal }), get("/caches", { signal })]);
    put(sidecars, running.length ? running.map(sidecar) : h("div", { class: "notice late" }, "No sidecar serves this database."));
    put(health, checks.map((check) => h("tr", {},
      h("td", {}, h("span", { class: `state ${{ OK: "fresh", WARN: "late", ERROR: "failing" }[check.severity]}` }, check.severity)),
      h("td", { class: "nowrap" }, check.name.replaceAll("_", " ")), h("td", { class: "soft" }, check.detail))));
    put(caches, cached.length
      ? cached.map((entry) => h("tr", {}, h("td", {}, counted(entry.entries, "query", "queries")), h("td", { class: "number" }, bytes(entry.bytes)),
        h("td", { class: "soft" }, "newest ", time(entry.newest)), h("td", { class: "mono soft" }, entry.code_version)))
      : h("tr", {}, h("td", { class: "empty" }, "Nothing is cached yet.")));
  };
  const timer = setInterval(() => load().catch(() => {}), RENEW_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  follow(signal, { connection: () => load().catch(() => {}) });
  await load();
}

function sidecar(entry) {
  const vitals = entry.vitals ?? {};
  const facts = [
    ["Workers", `${count(entry.busy)} of ${count(entry.workers)} busy, ${counted(entry.queued, "unit")} queued`],
    ["Refreshes", `${count(entry.refreshes)} done, ${count(entry.failures)} failed`],
    ["Poll", `${milliseconds(entry.tick_milliseconds)} on average, ${milliseconds(entry.slowest_tick_milliseconds)} at most`],
    vitals.spark ? ["Spark", String(vitals.spark.state ?? vitals.spark)] : null,
    vitals.jvm_bytes ? ["JVM", bytes(vitals.jvm_bytes)] : null,
    ["Process", h("span", { class: "mono" }, `${entry.host} ${entry.process}`)],
    ["Version", h("span", { class: "mono" }, entry.version)],
    ["Started", time(entry.started_at)],
    ["Last report", time(entry.seen_at)],
  ].filter(Boolean);
  return h("section", { class: "panel" },
    h("header", {}, h("h2", {}, entry.is_this ? "This sidecar" : "Another sidecar"),
      h("span", { class: `state ${entry.is_alive ? "fresh" : "failing"}` }, entry.is_alive ? "running" : "gone")),
    h("div", { class: "body" }, h("dl", { class: "facts" }, facts.flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)])),
      h("details", {}, h("summary", { class: "faint" }, "All figures"),
        h("table", { class: "plain" }, h("tbody", {}, Object.entries(vitals).map(([key, value]) =>
          h("tr", {}, h("td", { class: "mono" }, key), h("td", { class: "mono soft" }, typeof value === "object" ? JSON.stringify(value) : String(value)))))))));
}

function clear(load) {
  return withToken(() => attempt(async () => {
    const { entries } = await post("/clear-caches");
    toast(`${counted(entries, "compiled query", "compiled queries")} removed.`);
    await load();
  }));
}
