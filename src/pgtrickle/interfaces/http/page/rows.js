// Rows of a table or query, as a table with their types on hover.

import { h } from "./dom.js";
import { counted } from "./format.js";

/** Rows as a table. `kinds` marks each row as inserted or deleted, if given. */
export function rowsTable({ columns, rows, is_truncated: isTruncated }, kinds = null) {
  if (rows.length === 0) return h("p", { class: "empty" }, "No rows.");
  return h("div", {},
    h("div", { class: "scroll" },
      h("table", { class: "plain rows" },
        h("thead", {}, h("tr", {}, columns.map((column) => h("th", { title: column.type, class: isNumeric(column) ? "number" : null }, column.name)))),
        h("tbody", {}, rows.map((row, index) =>
          h("tr", { class: kinds?.[index] ?? null }, row.map((value, at) => cell(value, columns[at]))))))),
    isTruncated ? h("p", { class: "help table-end" }, `The first ${counted(rows.length, "row")}.`) : null);
}

function cell(value, column) {
  if (value === null) return h("td", {}, h("span", { class: "null" }, "null"));
  const text = String(value);
  return h("td", { title: text.length > 40 ? text : null, class: isNumeric(column) ? "number" : null }, text);
}

function isNumeric(column) {
  return /^(smallint|integer|bigint|numeric|decimal|real|double|money|oid)/.test(column.type);
}
