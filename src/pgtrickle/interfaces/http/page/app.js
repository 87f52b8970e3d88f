// Starts the page: routes, the bar on top, the state of the connection, and keys that work everywhere.

import { Problem } from "./api.js";
import { h, put } from "./dom.js";
import { renewTimes, seconds } from "./format.js";
import { live } from "./live.js";
import { problemNotice } from "./notices.js";
import { session, signInButton } from "./session.js";
import { captureView } from "./views/capture.js";
import { createView, editView } from "./views/create.js";
import { graphView } from "./views/graph.js";
import { adoptView } from "./views/adopt.js";
import { overviewView } from "./views/overview.js";
import { sidecarsView } from "./views/sidecars.js";
import { tableView } from "./views/table.js";

// the path of each page, and what shows it; the parts in brackets are passed on
const ROUTES = [
  [/^#?\/?$/, overviewView, "#/"],
  [/^#\/graph(?:\/(.+))?$/, graphView, "#/graph"],
  [/^#\/capture$/, captureView, "#/capture"],
  [/^#\/sidecars$/, sidecarsView, "#/sidecars"],
  [/^#\/create$/, createView, "#/create"],
  [/^#\/adopt$/, adoptView, "#/create"],
  [/^#\/edit\/(.+)$/, editView, "#/"],
  [/^#\/tables\/([^/]+)(?:\/(\w+))?$/, tableView, "#/"],
];
const PAGES = [["#/", "Overview"], ["#/graph", "Graph"], ["#/capture", "Capture"], ["#/sidecars", "Sidecars"]];

// below databases/NAME/, the list of all databases is two levels up
const DATABASE = location.pathname.match(/\/databases\/([^/]+)\/$/)?.[1];
const view = document.getElementById("view");
let leaving = null;

function show() {
  leaving?.abort();
  leaving = new AbortController();
  const route = ROUTES.find(([pattern]) => pattern.test(location.hash)) ?? ROUTES[0];
  const [pattern, render, page] = route;
  const parts = (location.hash.match(pattern) ?? []).slice(1).map((part) => part && decodeURIComponent(part));
  for (const link of document.querySelectorAll("#pages a")) {
    if (link.getAttribute("href") === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view.className = "";
  document.title = "pgtrickle";
  window.scrollTo(0, 0);
  Promise.resolve(render(view, leaving.signal, ...parts)).catch((error) => {
    if (error.name === "AbortError") return;
    if (!(error instanceof Problem)) throw error;
    put(view, problemNotice(error));
  });
}

function showConnection() {
  const isLost = live.lostAt !== null;
  document.body.classList.toggle("lost", isLost);
  const banner = document.getElementById("connection");
  banner.hidden = !isLost;
  if (isLost) {
    const since = seconds(Math.max(1, (Date.now() - live.lostAt) / 1000));
    put(banner, `The sidecar has not answered for ${since}. This is the last known state; the page reconnects by itself.`);
  }
  const sign = document.getElementById("live");
  sign.classList.toggle("lost", isLost);
  put(sign, h("span", {}, isLost ? "disconnected" : "live"));
}

function onKey(event) {
  const isTyping = event.target.closest("input, textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (event.key === "g") location.hash = "#/graph";
  else if (event.key === "o") location.hash = "#/";
  else if (event.key === "c") location.hash = "#/create";
}

async function start() {
  put(document.getElementById("pages"), DATABASE ? h("a", { href: "../../", title: "All databases" }, "‹ ", h("span", { class: "name" }, decodeURIComponent(DATABASE))) : null, PAGES.map(([href, text]) => h("a", { href }, text)));
  put(document.getElementById("bar-end"), h("span", { class: "live", id: "live" }, h("span", {}, "live")), signInButton());
  live.addEventListener("connection", showConnection);
  document.addEventListener("keydown", onKey);
  setInterval(() => {
    renewTimes();
    if (live.lostAt) showConnection();
  }, 1000);
  try {
    // a key in the address is needed before anything else; otherwise both can be asked at once
    if (session.hasKeyInAddress) await session.start();
    await Promise.all([live.start(), session.hasStarted ? null : session.start()]);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    put(view, problemNotice(error), error.needsToken ? signInButton() : null);
    setTimeout(start, 3000);
    return;
  }
  window.addEventListener("hashchange", show);
  // what the server sends depends on who listens
  session.addEventListener("change", () => live.start().catch(() => {}).finally(show));
  show();
}

start();
