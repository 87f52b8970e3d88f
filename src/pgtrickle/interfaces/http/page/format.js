// How numbers, times and durations are shown: with units, separators, and the exact value on hover.

import { h } from "./dom.js";

const NUMBER = new Intl.NumberFormat("en");
const EXACT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

export function count(value) {
  return value === null || value === undefined ? "–" : NUMBER.format(value);
}

/** "1 row", "2,000 rows". */
export function counted(value, noun, plural = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

/** A duration in milliseconds: 12 ms, 1.4 s, 3 min 20 s. */
export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 9.95) return `${value.toFixed(value === 0 ? 0 : 1)} ms`;
  if (value < 999.5) return `${Math.round(value)} ms`;
  return seconds(value / 1000);
}

/** A duration in seconds, in its two largest units. */
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 9.95) return `${value.toFixed(Number.isInteger(value) ? 0 : 1)} s`;
  if (value < 60) return `${Math.round(value)} s`;
  const whole = Math.round(value);
  const [large, small, largeName, smallName] =
    whole < 3600 ? [Math.floor(whole / 60), whole % 60, "min", "s"]
    : whole < 86400 ? [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), "h", "min"]
    : [Math.floor(whole / 86400), Math.floor((whole % 86400) / 3600), "d", "h"];
  return small ? `${large} ${largeName} ${small} ${smallName}` : `${large} ${largeName}`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function exactTime(text) {
  return EXACT.format(new Date(text));
}

/** How long ago: "now", "12 s ago", "3 min ago". */
export function ago(text) {
  const age = (Date.now() - new Date(text).getTime()) / 1000;
  if (age < 1.5) return "now";
  if (age < 60) return `${Math.floor(age)} s ago`;
  if (age < 3600) return `${Math.floor(age / 60)} min ago`;
  if (age < 172800) return `${Math.floor(age / 3600)} h ago`;
  return `${Math.floor(age / 86400)} days ago`;
}

/** A relative time that keeps itself current, with the exact time on hover. */
export function time(text) {
  if (!text) return h("span", { class: "faint" }, "never");
  return h("time", { datetime: text, title: exactTime(text) }, ago(text));
}

/** How long something has lasted since a time, kept current in the same way. */
export function lasting(text) {
  return h("time", { datetime: text, title: `since ${exactTime(text)}`, data: { form: "lasting" } }, age(text));
}

function age(text) {
  return seconds(Math.max(1, Math.floor((Date.now() - new Date(text).getTime()) / 1000)));
}

/** Bring every relative time on the page up to date. */
export function renewTimes() {
  for (const element of document.querySelectorAll("time[datetime]")) {
    const shown = element.dataset.form === "lasting" ? age : ago;
    const text = shown(element.getAttribute("datetime"));
    if (element.textContent !== text) element.textContent = text;
  }
}

/** The rows that a refresh added and removed. */
export function rowChange(inserted, deleted) {
  if (!inserted && !deleted) return h("span", { class: "faint" }, "no change");
  return h("span", { class: "row-change" },
    inserted ? h("span", { class: "plus" }, `+${count(inserted)}`) : null,
    inserted && deleted ? " " : null,
    deleted ? h("span", { class: "minus" }, `−${count(deleted)}`) : null);
}

/** A name with its schema set back; the whole name on hover. */
export function name(row) {
  const hasSchema = row.schema && row.name !== row.table;
  const shown = hasSchema ? row.name.slice(0, row.name.length - lastPart(row.name).length) : "";
  return h("span", { class: "name", title: row.name },
    h("span", { class: "schema" }, shown), lastPart(row.name));
}

/** The last part of a qualified name, which may be quoted and hold dots. */
export function lastPart(qualified) {
  const parts = qualified.match(/"(?:[^"]|"")*"|[^."]+/g);
  return parts ? parts[parts.length - 1] : qualified;
}
