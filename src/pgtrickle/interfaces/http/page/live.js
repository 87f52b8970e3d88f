// What the page knows of all stream tables, kept current by the sidecar's event stream.

import { get } from "./api.js";
import { rank } from "./states.js";

const RETRY_MS = 1000;
const SLOWEST_RETRY_MS = 10000;
const SILENCE_MS = 40000;

class Live extends EventTarget {
  tables = new Map();
  overview = null;
  isConnected = false;
  lostAt = null;
  #source = null;
  #retryMs = RETRY_MS;
  #timer = null;
  #silence = null;

  /** Load everything and follow it. Raises if the first load fails; following recovers by itself. */
  async start() {
    await this.reload();
    this.#listen();
  }

  async reload() {
    const overview = await get("/overview");
    this.overview = overview;
    this.tables = new Map(overview.tables.map((table) => [table.name, table]));
    this.#emit("reload");
  }

  /** All stream tables, problems first, then by name. */
  ordered() {
    return [...this.tables.values()].sort((a, b) => rank(a.state) - rank(b.state) || a.name.localeCompare(b.name));
  }

  /** How many stream tables are in each state. */
  counts() {
    const counts = { fresh: 0 };
    for (const table of this.tables.values()) counts[table.state] = (counts[table.state] ?? 0) + 1;
    return counts;
  }

  #listen() {
    this.#source?.close();
    const source = new EventSource("api/v1/events");
    this.#source = source;
    this.#watchSilence();
    source.addEventListener("hello", () => this.#connected());
    source.addEventListener("table", (event) => this.#table(this.#read(event)));
    source.addEventListener("removed", (event) => {
      const { name } = this.#read(event);
      if (this.tables.delete(name)) this.#emit("removed", name);
    });
    source.addEventListener("refresh", (event) => this.#emit("refresh", this.#read(event)));
    source.addEventListener("alert", (event) => this.#emit("alert", this.#read(event)));
    source.addEventListener("resync", () => this.#reloadLater());
    source.addEventListener("alive", () => this.#watchSilence());
    source.onerror = () => this.#lost();
  }

  #read(event) {
    this.#watchSilence();
    return JSON.parse(event.data);
  }

  #table(row) {
    const isNew = !this.tables.has(row.name);
    this.tables.set(row.name, row);
    this.#emit(isNew ? "added" : "table", row);
  }

  #connected() {
    const wasLost = this.lostAt !== null;
    this.isConnected = true;
    this.lostAt = null;
    this.#retryMs = RETRY_MS;
    this.#emit("connection");
    if (wasLost) this.#reloadLater();
  }

  #reloadLater() {
    this.reload().catch(() => this.#lost());
  }

  /** The stream broke: keep the last data, say so, and try again by ourselves, ever more slowly. */
  #lost() {
    this.#source?.close();
    clearTimeout(this.#silence);
    this.isConnected = false;
    this.lostAt ??= new Date();
    this.#emit("connection");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#listen(), this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 1.5, SLOWEST_RETRY_MS);
  }

  // a connection can die without an error; the server sends something at least every 15 s
  #watchSilence() {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#lost(), SILENCE_MS);
  }

  #emit(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

export const live = new Live();

/** Listen to events of `live` until the page that asked for them is left. */
export function follow(signal, handlers) {
  for (const [kind, handler] of Object.entries(handlers)) {
    live.addEventListener(kind, (event) => handler(event.detail), { signal });
  }
}
