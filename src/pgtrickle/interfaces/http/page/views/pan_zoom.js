// Pan and zoom for an SVG: drag, wheel, two fingers, and the keys + − 0 and arrows.

import { svg } from "../dom.js";

const SMALLEST = 0.08;
const LARGEST = 2.5;
const MARGIN = 72;
const STEP = 60;

export function panZoom(canvas) {
  const content = svg("g", {});
  const view = { x: 0, y: 0, scale: 1 };
  const pointers = new Map();
  let pinch = null;
  canvas.append(content);

  const show = () => content.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);

  function zoomAt(factor, x, y) {
    const scale = Math.min(LARGEST, Math.max(SMALLEST, view.scale * factor));
    const real = scale / view.scale;
    view.x = x - (x - view.x) * real;
    view.y = y - (y - view.y) * real;
    view.scale = scale;
    show();
  }

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoomAt(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });

  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, event);
    canvas.classList.add("dragging");
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    pointers.set(event.pointerId, event);
    if (pointers.size === 1) {
      view.x += event.clientX - last.clientX;
      view.y += event.clientY - last.clientY;
      show();
    } else if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      const distance = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
      const box = canvas.getBoundingClientRect();
      if (pinch) zoomAt(distance / pinch, (a.clientX + b.clientX) / 2 - box.left, (a.clientY + b.clientY) / 2 - box.top);
      pinch = distance;
    }
  });
  for (const kind of ["pointerup", "pointercancel", "pointerleave"]) {
    canvas.addEventListener(kind, (event) => {
      pointers.delete(event.pointerId);
      pinch = null;
      if (pointers.size === 0) canvas.classList.remove("dragging");
    });
  }
  canvas.addEventListener("keydown", (event) => {
    const middle = [canvas.clientWidth / 2, canvas.clientHeight / 2];
    const moves = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    if (event.key === "+") zoomAt(1.25, ...middle);
    else if (event.key === "-") zoomAt(0.8, ...middle);
    else if (moves[event.key]) {
      event.preventDefault();
      view.x += moves[event.key][0];
      view.y += moves[event.key][1];
      show();
    }
  });

  return {
    content,
    by: (factor) => zoomAt(factor, canvas.clientWidth / 2, canvas.clientHeight / 2),
    /** Show everything, in the middle, never larger than life and never smaller than `smallest`. */
    fit(size, smallest = SMALLEST) {
      const width = canvas.clientWidth - 2 * MARGIN / 3, height = canvas.clientHeight - 2 * MARGIN;
      view.scale = Math.max(smallest, Math.min(1, width / Math.max(1, size.width), height / Math.max(1, size.height)));
      view.x = Math.max(MARGIN / 3, (canvas.clientWidth - size.width * view.scale) / 2);
      view.y = Math.max(MARGIN, (canvas.clientHeight - size.height * view.scale) / 2 + 16);
      show();
    },
  };
}
