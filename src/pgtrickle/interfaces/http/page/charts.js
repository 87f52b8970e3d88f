// Small charts, drawn as SVG: the sparkline of refresh times, and the history of one stream table.

import { h, svg } from "./dom.js";
import { count, exactTime, milliseconds } from "./format.js";

// what a bar measures against where the schedule names no interval; the server calls it late then, too
const UNSCHEDULED_SECONDS = 5;
const SPARK = { width: 104, height: 24 };

/** The durations of the latest refreshes, oldest first; a dot marks each full one. */
export function sparkline(recent) {
  const { width, height } = SPARK;
  const box = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "sparkline", role: "img",
    "aria-label": recent.length ? `the last ${recent.length} refreshes took up to ${milliseconds(Math.max(...recent.map(([ms]) => ms)))}` : "no refreshes yet" });
  if (recent.length === 0) return box;
  const largest = Math.max(...recent.map(([ms]) => ms), 1);
  const step = recent.length > 1 ? (width - 6) / (recent.length - 1) : 0;
  // the newest is always at the right
  const left = recent.length > 1 ? 3 : width - 3;
  const points = recent.map(([ms], index) => [left + index * step, height - 3 - (ms / largest) * (height - 6)]);
  box.append(svg("path", { d: points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") }));
  recent.forEach(([, action], index) => {
    if (action === "F") box.append(svg("circle", { cx: points[index][0], cy: points[index][1], r: 2, class: "full" }));
  });
  const [x, y] = points[points.length - 1];
  box.append(svg("circle", { cx: x, cy: y, r: 2 }));
  return box;
}

/** How old the data is against its schedule: a bar that is full when the stream table is due. */
export function freshnessBar(table) {
  const allowed = table.schedule_seconds || UNSCHEDULED_SECONDS;
  const share = Math.min(1, (table.staleness_seconds ?? 0) / allowed);
  return h("span", { class: `freshness-bar ${table.state}`, "aria-hidden": "true" },
    h("span", { style: { width: `${Math.round(share * 100)}%` } }));
}

const PHASES = [["read_ms", "read"], ["compute_ms", "compute"], ["apply_ms", "apply"]];
const CHART = { width: 960, height: 200, left: 56, right: 56, top: 12, bottom: 24 };

/** Stacked bars for the time of each refresh, a line for its rows; full refreshes and failures are marked. */
export function historyChart(refreshes, choose) {
  const shown = [...refreshes].reverse();
  const { width, height, left, right, top, bottom } = CHART;
  const inner = height - top - bottom;
  const slot = (width - left - right) / Math.max(shown.length, 12);
  const bar = Math.max(3, Math.min(28, slot - 3));
  const mostMs = nice(Math.max(...shown.map((refresh) => refresh.ms ?? 0), 1));
  const mostRows = nice(Math.max(...shown.map(changed), 1));
  const y = (value, most) => height - bottom - (value / most) * inner;
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "history-chart", role: "group", "aria-label": "Refresh times and rows" });
  for (const share of [0, 0.5, 1]) {
    const line = y(share, 1);
    chart.append(svg("line", { x1: left, x2: width - right, y1: line, y2: line, class: "grid" }),
      svg("text", { x: left - 8, y: line + 4, class: "axis end" }, milliseconds(mostMs * share)),
      svg("text", { x: width - right + 8, y: line + 4, class: "axis" }, count(Math.round(mostRows * share))));
  }
  const middles = [];
  shown.forEach((refresh, index) => {
    const x = left + index * slot + (slot - bar) / 2;
    middles.push([x + bar / 2, y(changed(refresh), mostRows)]);
    chart.append(column(refresh, x, bar, (value) => y(value, mostMs), choose));
  });
  const path = middles.map(([x, high], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${high.toFixed(1)}`).join("");
  chart.append(svg("path", { d: path, class: "rows-line" }), middles.map(([x, high]) => svg("circle", { cx: x, cy: high, r: 2, class: "rows-point" })));
  return h("figure", { class: "chart" }, h("div", { class: "scroll" }, chart), legend());
}

function column(refresh, x, width, y, choose) {
  const floor = y(0);
  const group = svg("g", { class: `column ${refresh.status === "FAILED" ? "failed" : ""}`, tabindex: 0, role: "button",
    onclick: () => choose(refresh), onkeydown: (event) => event.key === "Enter" && choose(refresh) },
  svg("title", {}, describe(refresh)));
  let known = 0;
  for (const [field, phase] of PHASES) {
    const value = refresh[field] ?? 0;
    if (value > 0) group.append(svg("rect", { x, width, y: y(known + value), height: Math.max(0.5, y(known) - y(known + value)), class: phase }));
    known += value;
  }
  const rest = Math.max(0, (refresh.ms ?? 0) - known);
  if (rest > 0) group.append(svg("rect", { x, width, y: y(known + rest), height: Math.max(1, y(known) - y(known + rest)), class: "other" }));
  if (isFull(refresh)) group.append(svg("text", { x: x + width / 2, y: floor + 14, class: "mark" }, "full"));
  if (refresh.status === "FAILED") group.append(svg("text", { x: x + width / 2, y: floor + 14, class: "mark failed" }, "✕"));
  group.append(svg("rect", { x: x - 1, width: width + 2, y: CHART.top, height: floor - CHART.top, class: "hit" }));
  return group;
}

function legend() {
  const parts = [...PHASES.map(([, phase]) => [phase, phase]), ["other", "waiting and commit"]];
  return h("figcaption", { class: "legend" },
    parts.map(([kind, text]) => h("span", {}, h("i", { class: kind }), text)),
    h("span", {}, h("i", { class: "line" }), "rows changed (right scale)"));
}

function describe(refresh) {
  const rows = `+${count(refresh.rows_inserted)} −${count(refresh.rows_deleted)} rows`;
  return `${exactTime(refresh.at)}\n${refresh.action}, ${milliseconds(refresh.ms)}, ${rows}\n${refresh.reason ?? ""}`;
}

export function isFull(refresh) {
  return refresh.action === "FULL" || refresh.action === "REINITIALIZE";
}

function changed(refresh) {
  return (refresh.rows_inserted ?? 0) + (refresh.rows_deleted ?? 0);
}

/** The next round number: 1, 2 or 5 times a power of ten. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((round) => round >= value * 0.999);
}
