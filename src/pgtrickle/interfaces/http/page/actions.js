// What people can do with a stream table. Each action says what it does before it does it, if it changes anything.

import { patch, post, remove, tablePath } from "./api.js";
import { counted, milliseconds } from "./format.js";
import { attempt, confirm, toast } from "./notices.js";
import { withToken } from "./session.js";

export function refresh(table) {
  return withToken(() => attempt(async () => {
    const outcome = await post(tablePath(table.name, "/refresh"));
    const change = outcome.rows_inserted || outcome.rows_deleted
      ? `+${outcome.rows_inserted} −${outcome.rows_deleted} rows`
      : "nothing had changed";
    toast(`${table.name} was refreshed in ${milliseconds(outcome.ms)}: ${change}.`);
  }));
}

export function pause(table) {
  return withToken(async () => {
    const isSure = await confirm({
      title: `Pause ${table.name}?`,
      text: "It keeps its rows and stays readable, but does not follow its sources until you resume it. Changes are still captured, so nothing is lost.",
      action: "Pause",
    });
    if (isSure) await attempt(() => post(tablePath(table.name, "/pause")));
  });
}

export function resume(table) {
  return withToken(() => attempt(async () => {
    await post(tablePath(table.name, "/resume"));
    toast(`${table.name} was resumed.`);
  }));
}

export function verify(table) {
  return withToken(() => attempt(async () => {
    toast(`Comparing ${table.name} with its query…`);
    const [found] = await post(tablePath(table.name, "/verify"));
    toast(`${table.name} equals its query: ${counted(found.rows, "row")} compared.`);
  }));
}

export function repair(table) {
  return withToken(async () => {
    const isSure = await confirm({
      title: `Repair ${table.name}?`,
      text: "Its triggers and buffers are checked and it is loaded again. It stays readable during the load.",
      action: "Repair",
    });
    if (isSure) await attempt(async () => {
      const done = await post(tablePath(table.name, "/repair"));
      toast((done.done ?? done).join(" "));
    });
  });
}

export function drop(table, readers) {
  return withToken(async () => {
    const isSure = await confirm({
      title: `Drop ${table.name}?`,
      text: "The table and its rows are removed. This cannot be undone.",
      items: readers.map((reader) => `${reader} reads it and is dropped too`),
      action: readers.length ? `Drop ${counted(readers.length + 1, "stream table")}` : "Drop",
      isDangerous: true,
    });
    if (isSure && await attempt(() => remove(tablePath(table.name, readers.length ? "?cascade=true" : "")))) {
      toast(`${table.name} was dropped.`);
      location.hash = "#/";
    }
  });
}

/** Change options of a stream table; returns whether it worked. */
export function alter(name, options) {
  return attempt(() => patch(tablePath(name), options));
}
