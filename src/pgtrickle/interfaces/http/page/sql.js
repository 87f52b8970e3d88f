// SQL with colours: in definitions, and in an editor that keeps a plain textarea underneath.

import { h, put } from "./dom.js";

const WORDS = new Set(("all and any as asc between by case cast cross current date desc distinct else end except exists false fetch filter "
  + "first following from full group grouping having ilike in inner intersect interval is join lateral left like limit natural not null nulls "
  + "offset on only or order outer over partition preceding range recursive right rollup row rows select sets similar some then time timestamp "
  + "to true union unbounded using values when where window with within").split(" "));
const TOKENS = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$)|\$(\w*)\$[\s\S]*?(?:\$\3\$|$))|("(?:[^"]|"")*(?:"|$))|(\b\d+(?:\.\d+)?\b)|([A-Za-z_]\w*)/g;
const DOTTED = /^(?:\w+|"[^"]*")(?:\.(?:\w+|"[^"]*"))*/;

/** The text as elements with classes; the token at `mistake` (an offset) is underlined, a dotted name as a whole. */
export function coloured(text, mistake = null) {
  const wrong = mistake === null ? null : { start: mistake, end: mistake + (text.slice(mistake).match(DOTTED)?.[0].length ?? 1) };
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKENS)) {
    push(parts, text.slice(end, match.index), null, end, wrong);
    const [token, comment, string, , , number, word] = match;
    const kind = comment ? "comment" : string ? "string" : number ? "numeral" : word && WORDS.has(word.toLowerCase()) ? "keyword" : null;
    push(parts, token, kind, match.index, wrong);
    end = match.index + token.length;
  }
  push(parts, text.slice(end), null, end, wrong);
  return parts;
}

function push(parts, text, kind, start, wrong) {
  if (!text) return;
  const isWrong = wrong !== null && wrong.start < start + text.length && wrong.end > start;
  const names = [kind, isWrong ? "mistake" : null].filter(Boolean).join(" ");
  parts.push(names ? h("span", { class: names }, text) : text);
}

export function sqlBlock(text) {
  return h("pre", { class: "sql" }, coloured(text));
}

/** An editor. `element` goes into the page; `oninput` is called with the new text. */
export function sqlEditor(initial, oninput) {
  const shown = h("pre", { "aria-hidden": "true" });
  const field = h("textarea", { class: "code", spellcheck: "false", autocapitalize: "off", autocomplete: "off",
    "aria-label": "Query", placeholder: "select region, sum(amount) as total\nfrom orders\ngroup by region" });
  const show = (mistake = null) => put(shown, coloured(field.value, mistake), "\n");
  field.value = initial;
  field.addEventListener("input", () => { show(); oninput(field.value); });
  field.addEventListener("keydown", indent);
  show();
  return {
    element: h("div", { class: "sql-editor" }, shown, field),
    get text() { return field.value; },
    /** Underline what is at a position (1 is the first character); null removes the line. */
    mark(position) { show(position === null ? null : position - 1); },
  };

  // Tab indents; Escape lets the keyboard leave the editor
  function indent(event) {
    if (event.key === "Escape") field.blur();
    if (event.key !== "Tab" || event.shiftKey) return;
    event.preventDefault();
    field.setRangeText("    ", field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input"));
  }
}
