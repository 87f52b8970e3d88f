// The states of a stream table: a colour, a shape and a word for each, so that none depends on colour alone.

import { h, svg } from "./dom.js";

const SHAPES = {
  fresh: () => svg("circle", { cx: 6, cy: 6, r: 4.5 }),
  late: () => svg("path", { d: "M6 1.2 11.2 10.5H.8z" }),
  failing: () => svg("path", { d: "M2.6 2.6l6.8 6.8M9.4 2.6l-6.8 6.8", class: "stroke" }),
  suspended: () => svg("path", { d: "M3.8 2v8M8.2 2v8", class: "stroke" }),
  initializing: () => svg("circle", { cx: 6, cy: 6, r: 3.8, class: "stroke" }),
  waiting: () => svg("path", { d: "M2.5 1.5h7L6 6zM2.5 10.5h7L6 6z" }),
  source: () => svg("rect", { x: 1.5, y: 1.5, width: 9, height: 9, rx: 2 }),
};

/** Problems first: the order in which people want to see them. */
export const STATES = ["failing", "suspended", "late", "waiting", "initializing", "fresh"];

export function stateIcon(state) {
  const shape = SHAPES[state] ?? SHAPES.source;
  return svg("svg", { viewBox: "0 0 12 12", class: `state-icon ${state}`, "aria-hidden": "true" }, shape());
}

/** The icon and the word. */
export function stateLabel(state) {
  return h("span", { class: `state ${state}` }, stateIcon(state), state);
}

export function rank(state) {
  const position = STATES.indexOf(state);
  return position < 0 ? STATES.length : position;
}
