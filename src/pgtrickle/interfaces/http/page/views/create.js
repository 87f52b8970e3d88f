// Create a stream table, or edit one: a query, its options, and what would become of it, as you type.

import { get, patch, post, Problem, tablePath } from "../api.js";
import { debounce, h, put } from "../dom.js";
import { copyable, confirm, problemNotice, sentence, toast } from "../notices.js";
import { rowsTable } from "../rows.js";
import { askForToken, session } from "../session.js";
import { sqlEditor } from "../sql.js";
import { panel } from "./table.js";

const PAUSE_MS = 500;
const MODES = [["AUTO", "Automatic"], ["DIFFERENTIAL", "Differential only"], ["FULL", "Full"]];
const TIERS = [["hot", "Hot: 1 × interval"], ["warm", "Warm: 2 × interval"], ["cold", "Cold: 10 × interval"], ["frozen", "Frozen: on request"]];

export function createView(view, signal) {
  document.title = "Create · pgtrickle";
  return editor(view, signal, { name: "", query: "", schedule: "1s", refresh_mode: "AUTO", tier: "hot" }, true);
}

export async function editView(view, signal, name) {
  const details = await get(tablePath(name), { signal });
  document.title = `Edit ${name} · pgtrickle`;
  return editor(view, signal, { ...details, schedule: details.schedule }, false);
}

function editor(view, signal, start, isNew) {
  const nameField = h("input", { value: start.name, placeholder: "sales_by_region", disabled: !isNew, required: true, spellcheck: "false", class: "mono" });
  const scheduleField = h("input", { value: start.schedule, spellcheck: "false", class: "mono" });
  const modeField = choice(MODES, start.refresh_mode);
  const tierField = choice(TIERS, start.tier);
  const keepField = h("input", { value: start.options?.keep_changes ?? "off", spellcheck: "false", class: "mono" });
  const checks = h("div", { class: "checks stack", "aria-live": "polite" });
  const save = h("button", { class: "primary", disabled: true, onclick: submit }, isNew ? "Create…" : "Save…");
  const query = sqlEditor(start.query, checkLater);
  const checkSoon = debounce(PAUSE_MS, check);
  let validation = null;
  let latest = null;

  put(view,
    h("div", { class: "overview-top" },
      h("h1", {}, isNew ? "Create a stream table" : ["Edit ", h("code", {}, start.name)]),
      isNew ? h("a", { class: "button", href: "#/adopt" }, "Adopt a materialized view") : null),
    h("div", { class: "editor-page" },
      h("div", { class: "stack" },
        h("div", { class: "form-row" },
          field("Name", nameField, "with or without a schema"),
          field("Schedule", scheduleField, "500ms, 1s, 5m, a cron expression, calculated, manual")),
        query.element,
        h("div", { class: "form-row" }, field("Mode", modeField), field("Tier", tierField),
          field("Keep changes", keepField, "off, 1d, or 7d 50000 rows")),
        h("div", { class: "actions" }, save, h("a", { class: "button", href: isNew ? "#/" : `#/tables/${encodeURIComponent(start.name)}` }, "Cancel"))),
      checks));

  for (const changed of [nameField, modeField]) changed.addEventListener("input", checkLater);
  signal.addEventListener("abort", () => { latest?.abort(); checkSoon.cancel(); });
  check();

  function checkLater() {
    validation = null;
    save.disabled = true;
    checkSoon();
  }

  async function check() {
    latest?.abort();
    latest = new AbortController();
    query.mark(null);
    if (!session.isSignedIn) {
      put(checks, h("div", { class: "panel empty" }, h("p", {}, "Sign in to check queries and to create stream tables."), h("button", { onclick: askForToken }, "Sign in")));
      return;
    }
    if (!query.text.trim()) {
      put(checks, h("div", { class: "panel empty" }, h("p", {}, "Write a query. It is checked as you type: how it would be refreshed, what it needs, and its first rows.")));
      return;
    }
    checks.classList.add("checking");
    try {
      const asked = { query: query.text, refresh_mode: modeField.value };
      if (isNew && nameField.value.trim()) asked.name = nameField.value.trim();
      validation = await post("/validate", asked, { signal: latest.signal });
      put(checks, ...verdict(validation));
      save.disabled = validation.missing_grants.length > 0;
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof Problem)) throw error;
      query.mark(error.position);
      put(checks, problemNotice(error));
    } finally {
      checks.classList.remove("checking");
    }
  }

  async function submit() {
    if (!nameField.value.trim()) {
      nameField.focus();
      put(checks, problemNotice(new Problem({ title: "The stream table has no name", hint: "write one above the query" })), ...(validation ? verdict(validation) : []));
      return;
    }
    const options = { schedule: scheduleField.value.trim(), refresh_mode: modeField.value, tier: tierField.value, keep_changes: keepField.value.trim() || "off" };
    const isSure = await confirm({
      title: isNew ? `Create ${nameField.value.trim()}?` : `Change ${start.name}?`,
      items: consequences(validation, options, isNew ? null : query.text !== start.query),
      action: isNew ? "Create" : "Save",
    });
    if (!isSure) return;
    try {
      const wanted = isNew ? { name: nameField.value.trim(), query: query.text, ...options } : changedOptions(start, options, query.text);
      const table = await (isNew ? post("/tables", wanted) : patch(tablePath(start.name), wanted));
      toast(isNew ? `${table.name} was created and is being loaded.` : `${table.name} was changed.`);
      location.hash = `#/tables/${encodeURIComponent(table.name)}`;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      query.mark(error.position);
      put(checks, problemNotice(error), ...(validation ? verdict(validation) : []));
    }
  }
}

function field(text, input, help = null) {
  return h("label", { class: "field" }, h("span", {}, text), input, help ? h("small", {}, help) : null);
}

function choice(options, chosen) {
  return h("select", {}, options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}

/** What a query would become, what it lacks, and its first rows. */
function verdict(found) {
  const isFull = found.effective_mode === "FULL";
  return [
    h("section", { class: `notice ${isFull ? "late" : ""}` },
      h("p", {}, "Refresh mode: ", h("span", { class: "mode" }, found.effective_mode)),
      found.reason ? h("p", { class: "soft" }, sentence(found.reason)) : null,
      found.reads.length ? h("details", {}, h("summary", { class: "soft" }, "What a refresh reads"), h("ul", { class: "reads" }, found.reads.map((read) => h("li", { class: "mono" }, read)))) : null),
    found.missing_grants.length
      ? h("section", { class: "notice failing" }, h("strong", {}, "Privileges are missing."), h("p", { class: "soft" }, "Ask an administrator to run:"), found.missing_grants.map((statement) => copyable(statement)))
      : null,
    found.missing_indexes.length
      ? h("section", { class: "notice late" }, h("strong", {}, "An index would make refreshes cheaper."), found.missing_indexes.map((statement) => copyable(statement)))
      : null,
    panel(`Columns (${found.columns.length})`, h("table", { class: "plain" }, h("tbody", {}, found.columns.map((column) =>
      h("tr", {}, h("td", { class: "name" }, column.name), h("td", { class: "mono soft" }, column.type)))))),
    found.rows ? panel("First rows", rowsTable({ columns: found.columns, rows: found.rows })) : null,
  ].filter(Boolean);
}

function consequences(validation, options, hasNewQuery) {
  const items = [];
  if (hasNewQuery === null) {
    items.push(`It is created, loaded, and refreshed ${options.schedule === "manual" ? "only on request" : `on the schedule ${options.schedule}`}, ${validation.effective_mode === "FULL" ? "by computing everything again" : "incrementally"}.`);
    items.push(`Changes of ${validation.sources.join(", ")} are captured by triggers from now on.`);
  } else {
    if (hasNewQuery) items.push("It gets the new query and is loaded again. It stays readable during the load.");
    items.push(`Its schedule is ${options.schedule}, its mode ${options.refresh_mode}, its tier ${options.tier}.`);
  }
  return items;
}

function changedOptions(start, options, query) {
  const known = { ...start, keep_changes: start.options.keep_changes ?? "off" };
  const changed = Object.fromEntries(Object.entries(options).filter(([key, value]) => value !== known[key]));
  return query === start.query ? changed : { ...changed, query };
}
