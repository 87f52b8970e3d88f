// Errors where they belong, short messages at the edge, and questions before something happens.

import { Problem } from "./api.js";
import { h, put } from "./dom.js";

const TOAST_MS = 6000;

/** An error in full: what, where, what to do, and its code. */
export function problemNotice(problem) {
  return h("div", { class: "notice failing", role: "alert" },
    h("strong", {}, sentence(problem.message)),
    problem.detail ? h("p", {}, problem.detail) : null,
    problem.hint ? h("p", { class: "soft" }, sentence(problem.hint)) : null,
    problem.code ? h("p", { class: "code" }, problem.code) : null);
}

/** A message that goes away by itself; an error stays until it is closed. */
export function toast(content, isError = false) {
  const box = isError ? problemNotice(content) : h("div", { class: "notice" }, content);
  const close = () => box.remove();
  if (isError) box.append(h("div", {}, h("button", { class: "plain", onclick: close }, "Close")));
  else setTimeout(close, TOAST_MS);
  document.getElementById("toasts").append(box);
}

/** Run something that may fail with a Problem, and show the problem. Returns whether it worked. */
export async function attempt(action) {
  try {
    await action();
    return true;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    toast(error, true);
    return false;
  }
}

/** Ask before something happens. Resolves to true only if the person confirms. */
export function confirm({ title, text, items, action, isDangerous }) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "question" },
      h("form", { method: "dialog" },
        h("h2", { id: "question" }, title),
        text ? h("p", { class: "soft" }, text) : null,
        items?.length ? h("ul", {}, items.map((item) => h("li", {}, item))) : null,
        h("div", { class: "actions" },
          h("button", { value: "no", formnovalidate: true }, "Cancel"),
          h("button", { value: "yes", class: isDangerous ? "danger" : "primary" }, action))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
    if (isDangerous) dialog.querySelector("button").focus();
    else dialog.querySelector("button[value=yes]").focus();
  });
}

/** Text that begins with a capital and ends with a full stop. */
export function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?)]$/.test(whole) ? whole : `${whole}.`;
}

/** A piece of SQL with a button that copies it. */
export function copyable(text, shown) {
  const button = h("button", { onclick: copy }, "Copy");
  async function copy() {
    await navigator.clipboard.writeText(text);
    put(button, "Copied");
    setTimeout(() => put(button, "Copy"), 1500);
  }
  return h("div", { class: "copyable" }, shown ?? h("pre", { class: "statement" }, text), button);
}
