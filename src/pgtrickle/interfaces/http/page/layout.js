// Places the nodes of a graph in layers from left to right. Pure: nothing here draws.

export const NODE = { width: 188, height: 44 };
const GAP = { x: 96, y: 14, inner: 20 };
const SWEEPS = 6;
const FEWEST_IN_COLUMN = 14;

/**
 * The place of each node. A node stands right of everything it reads; within a layer, nodes stand near what
 * they are connected to, so that few edges cross.
 */
export function layered(nodes, edges) {
  const ids = new Set(nodes.map((node) => node.id));
  const known = edges.filter((edge) => ids.has(edge.from) && ids.has(edge.to));
  const before = grouped(known, "to", "from");
  const after = grouped(known, "from", "to");
  const layerOf = depths(nodes, before);
  const layers = [];
  for (const node of nodes) (layers[layerOf.get(node.id)] ??= []).push(node.id);
  for (let index = 0; index < layers.length; index += 1) layers[index] ??= [];
  for (const layer of layers) layer.sort((a, b) => a.localeCompare(b));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isForward = sweep % 2 === 0;
    const order = isForward ? layers.slice(1) : layers.slice(0, -1).reverse();
    const positions = positionsOf(layers);
    for (const layer of order) {
      sortByNeighbours(layer, isForward ? before : after, positions);
      layer.forEach((id, index) => positions.set(id, (index + 0.5) / layer.length));
    }
  }
  return placed(layers, Math.max(FEWEST_IN_COLUMN, Math.ceil(Math.sqrt(nodes.length * 3))));
}

function depths(nodes, before) {
  const layer = new Map();
  const visiting = new Set();
  const depth = (id) => {
    if (layer.has(id)) return layer.get(id);
    if (visiting.has(id)) return 0;
    visiting.add(id);
    const found = Math.max(0, ...(before.get(id) ?? []).map((other) => depth(other) + 1));
    visiting.delete(id);
    layer.set(id, found);
    return found;
  };
  for (const node of nodes) depth(node.id);
  // a stream table without sources in view still stands right of the sources
  for (const node of nodes) if (node.kind === "stream_table" && layer.get(node.id) === 0) layer.set(node.id, 1);
  return layer;
}

function positionsOf(layers) {
  return new Map(layers.flatMap((layer) => layer.map((id, index) => [id, (index + 0.5) / layer.length])));
}

function sortByNeighbours(layer, neighbours, positions) {
  const centre = new Map(layer.map((id) => {
    const near = (neighbours.get(id) ?? []).map((other) => positions.get(other));
    return [id, near.length ? near.reduce((sum, value) => sum + value, 0) / near.length : positions.get(id)];
  }));
  layer.sort((a, b) => centre.get(a) - centre.get(b) || a.localeCompare(b));
}

/** A layer with more nodes than `most` takes several columns, so that the graph does not become a thin tower. */
function placed(layers, most) {
  const rowsOf = (layer) => Math.ceil(layer.length / Math.ceil(layer.length / most));
  const tallest = Math.max(1, ...layers.map(rowsOf));
  const places = new Map();
  let x = 0;
  for (const layer of layers) {
    const rows = rowsOf(layer);
    const top = ((tallest - rows) * (NODE.height + GAP.y)) / 2;
    const width = Math.ceil(layer.length / rows) * (NODE.width + GAP.inner) - GAP.inner;
    layer.forEach((id, index) => places.set(id, {
      x: x + Math.floor(index / rows) * (NODE.width + GAP.inner),
      y: top + (index % rows) * (NODE.height + GAP.y),
      layerLeft: x,
      layerRight: x + width,
    }));
    x += width + GAP.x;
  }
  return { places, width: x - GAP.x, height: tallest * (NODE.height + GAP.y) - GAP.y };
}

/** The path of an edge: a curve between layers, and a straight line in the gap below a row within one. */
export function edgePath(from, to) {
  const bend = GAP.inner / 2;
  const start = { x: from.x + NODE.width, y: from.y + NODE.height / 2 };
  const end = { x: to.x, y: to.y + NODE.height / 2 };
  let path = `M${start.x} ${start.y}`;
  if (from.layerRight > start.x) {
    start.y = from.y + NODE.height + GAP.y / 2;
    path += `C${start.x + bend} ${from.y + NODE.height / 2} ${start.x} ${start.y} ${start.x + bend} ${start.y}H${from.layerRight}`;
    start.x = from.layerRight;
  }
  const isInner = end.x > to.layerLeft;
  const entry = isInner ? { x: to.layerLeft, y: to.y - GAP.y / 2 } : end;
  const pull = Math.max(32, Math.abs(entry.x - start.x) / 2);
  path += `C${start.x + pull} ${start.y} ${entry.x - pull} ${entry.y} ${entry.x} ${entry.y}`;
  if (isInner) path += `H${end.x - bend}C${end.x} ${entry.y} ${end.x - bend} ${end.y} ${end.x} ${end.y}`;
  return path;
}

function grouped(edges, key, value) {
  const found = new Map();
  for (const edge of edges) {
    if (!found.has(edge[key])) found.set(edge[key], []);
    found.get(edge[key]).push(edge[value]);
  }
  return found;
}

/** A node with everything that it is computed from and everything that is computed from it. */
export function related(id, edges) {
  const found = new Set([id]);
  for (const [key, value] of [["to", "from"], ["from", "to"]]) {
    const next = grouped(edges, key, value);
    const waiting = [id];
    while (waiting.length) {
      for (const other of next.get(waiting.pop()) ?? []) {
        if (!found.has(other)) {
          found.add(other);
          waiting.push(other);
        }
      }
    }
  }
  return found;
}

/** Many nodes as one card for each schema, except those of the schemas that are open. */
export function clustered(nodes, edges, open) {
  const clusters = new Map();
  const shownAs = new Map();
  for (const node of nodes) {
    if (open.has(node.schema)) {
      shownAs.set(node.id, node.id);
      continue;
    }
    const id = `schema:${node.schema}:${node.kind}`;
    if (!clusters.has(id)) clusters.set(id, { id, kind: node.kind, schema: node.schema, isCluster: true, members: [] });
    clusters.get(id).members.push(node);
    shownAs.set(node.id, id);
  }
  const seen = new Set();
  const joined = [];
  for (const edge of edges) {
    const from = shownAs.get(edge.from), to = shownAs.get(edge.to);
    if (!from || !to || from === to || seen.has(`${from}→${to}`)) continue;
    seen.add(`${from}→${to}`);
    joined.push({ from, to });
  }
  return { nodes: [...nodes.filter((node) => open.has(node.schema)), ...clusters.values()], edges: joined, shownAs };
}
