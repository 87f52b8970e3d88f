// The dependency graph: sources on the left, stream tables to their right, edges that light up when changes flow.

import { get } from "../api.js";
import { debounce, h, put, svg } from "../dom.js";
import { count, counted, lastPart, seconds } from "../format.js";
import { clustered, edgePath, layered, NODE, related } from "../layout.js";
import { follow, live } from "../live.js";
import { STATES } from "../states.js";
import { panZoom } from "./pan_zoom.js";

const MOST_NODES = 300;
const FLOW_MS = 1200;
const READABLE = 0.6;

export async function graphView(view, signal, focusOn) {
  document.title = "Graph · pgtrickle";
  view.className = "wide";
  const canvas = svg("svg", { class: "graph", role: "group", "aria-label": "Dependency graph" });
  const search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search the graph" });
  const hint = h("span", { class: "graph-hint" });
  const closeAll = h("button", { hidden: true, onclick: () => { open.clear(); focused = null; draw(); zoom.fit(size, READABLE); } }, "Close schemas");
  const page = h("div", { class: "graph-page" },
    h("div", { class: "graph-tools" }, search,
      h("button", { onclick: () => zoom.by(1.25), "aria-label": "Zoom in" }, "+"),
      h("button", { onclick: () => zoom.by(0.8), "aria-label": "Zoom out" }, "−"),
      h("button", { onclick: () => zoom.fit(size) }, "Fit"), closeAll, hint),
    canvas);
  const zoom = panZoom(canvas);
  const open = new Set();
  let whole = { nodes: [], edges: [] };
  let drawn = { nodes: new Map(), edges: new Map(), shown: { edges: [] }, shownAs: null };
  let size = { width: 0, height: 0 };
  let focused = focusOn ?? null;

  async function load() {
    whole = await get("/graph", { signal });
    draw();
  }

  function draw() {
    const isLarge = whole.nodes.length > MOST_NODES;
    if (isLarge && focused) open.add(whole.nodes.find((node) => node.id === focused)?.schema);
    const shown = isLarge ? clustered(whole.nodes, whole.edges, open) : { ...whole, shownAs: null };
    const placed = layered(shown.nodes, shown.edges);
    const nodes = new Map(), edges = new Map();
    const lines = shown.edges.map((edge) => {
      const line = svg("path", { class: "edge", d: edgePath(placed.places.get(edge.from), placed.places.get(edge.to)) });
      edges.set(`${edge.from}→${edge.to}`, line);
      return line;
    });
    const cards = shown.nodes.map((node) => {
      const element = card(node, placed.places.get(node.id));
      nodes.set(node.id, element);
      element.addEventListener("click", () => choose(node));
      element.addEventListener("dblclick", () => openPage(node));
      element.addEventListener("keydown", (event) => {
        if (event.key === "Enter") openPage(node);
        if (event.key === " ") { event.preventDefault(); choose(node); }
        if (event.key === "Escape") { focused = null; dim(); }
      });
      return element;
    });
    put(zoom.content, lines, cards);
    drawn = { nodes, edges, shown, shownAs: shown.shownAs };
    size = { width: placed.width, height: placed.height };
    page.querySelector(".empty")?.remove();
    if (shown.nodes.length === 0) page.append(h("div", { class: "empty" }, h("h2", {}, "There are no stream tables yet."), h("a", { class: "button primary", href: "#/create" }, "Create a stream table")));
    closeAll.hidden = open.size === 0;
    put(hint, shown.nodes.length === 0 ? "" : isLarge ? "One card for each schema. Click a card to open it." : "Click to focus, double-click to open.");
    dim();
  }

  function choose(node) {
    if (node.isCluster) {
      open.add(node.schema);
      draw();
      zoom.fit(size);
      return;
    }
    focused = focused === node.id ? null : node.id;
    dim();
  }

  function openPage(node) {
    if (node.kind === "stream_table" && !node.isCluster) location.hash = `#/tables/${encodeURIComponent(node.name)}`;
  }

  /** Dim what has nothing to do with the focused node, or does not match the search. */
  function dim() {
    const wanted = search.value.trim().toLowerCase();
    const near = focused && drawn.nodes.has(focused) ? related(focused, drawn.shown.edges) : null;
    const isShown = (id) => (near ? near.has(id) : !wanted || id.toLowerCase().includes(wanted));
    for (const [id, element] of drawn.nodes) {
      element.classList.toggle("dimmed", !isShown(id));
      element.classList.toggle("focused", id === focused);
    }
    for (const [key, line] of drawn.edges) {
      const [from, to] = key.split("→");
      line.classList.toggle("dimmed", !isShown(from) || !isShown(to));
    }
  }

  function flow(refresh) {
    if (!refresh.rows_inserted && !refresh.rows_deleted) return;
    const into = drawn.shownAs?.get(refresh.name) ?? refresh.name;
    for (const [key, line] of drawn.edges) {
      if (!key.endsWith(`→${into}`)) continue;
      line.classList.remove("flow");
      requestAnimationFrame(() => line.classList.add("flow"));
      clearTimeout(line.timer);
      line.timer = setTimeout(() => line.classList.remove("flow"), FLOW_MS);
    }
  }

  function renew(table) {
    drawn.nodes.get(drawn.shownAs?.get(table.name) ?? table.name)?.update(table);
  }

  search.addEventListener("input", () => { focused = null; dim(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { search.value = ""; dim(); search.blur(); }
    if (event.key === "Enter") {
      const match = [...drawn.nodes.keys()].find((id) => id.toLowerCase().includes(search.value.trim().toLowerCase()));
      if (match) { focused = match; dim(); drawn.nodes.get(match).focus(); }
    }
  });
  const loadSoon = debounce(300, () => load().catch((error) => { if (error.name !== "AbortError") throw error; }));
  follow(signal, { refresh: flow, table: renew, added: loadSoon, removed: loadSoon, reload: loadSoon });
  put(view, page);
  await load();
  zoom.fit(size, READABLE);
}

function card(node, place) {
  const title = svg("title", {});
  const above = svg("text", { x: 14, y: 19 });
  const under = svg("text", { x: 14, y: 35, class: "under" });
  const element = svg("g", { tabindex: 0, role: "button", transform: `translate(${place.x} ${place.y})` },
    title, svg("rect", { class: "card", width: NODE.width, height: NODE.height, rx: 6 }),
    svg("rect", { class: "edge-colour", width: 4, height: NODE.height, rx: 2 }), above, under);
  element.update = (table) => {
    const state = node.isCluster ? worstState(node) : table?.state ?? node.state ?? "";
    // what the focus and the search have set stays
    const kept = ["dimmed", "focused"].filter((name) => element.classList.contains(name));
    element.setAttribute("class", ["node", node.kind === "stream_table" ? state : node.kind, ...kept].join(" "));
    put(title, node.isCluster ? `${node.schema}: ${count(node.members.length)}` : node.name);
    put(above, shortened(node.isCluster ? node.schema : lastPart(node.name), 22));
    put(under, node.isCluster ? clusterText(node) : node.kind === "stream_table" ? stateText(table ?? node) : shortened(`${node.schema} · ${(node.relation_kind ?? "table").replaceAll("_", " ")}`, 28));
  };
  element.update(live.tables.get(node.name));
  return element;
}

function stateText(table) {
  if (table.state === "fresh") return "fresh";
  return table.staleness_seconds ? `${table.state} · ${seconds(table.staleness_seconds)}` : table.state;
}

function statesOf(cluster) {
  return cluster.members.map((member) => live.tables.get(member.name)?.state ?? member.state);
}

function worstState(cluster) {
  const states = new Set(statesOf(cluster));
  return STATES.find((state) => states.has(state)) ?? "";
}

function clusterText(node) {
  if (node.kind !== "stream_table") return counted(node.members.length, node.kind === "source" ? "source" : "view");
  const wrong = statesOf(node).filter((state) => state !== "fresh").length;
  return `${counted(node.members.length, "table")}, ${wrong ? `${count(wrong)} not fresh` : "all fresh"}`;
}

function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
