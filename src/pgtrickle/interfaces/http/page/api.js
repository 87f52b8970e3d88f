// Requests to the sidecar. A failed one raises Problem, which carries the server's own words.

const ROOT = "api/v1";

/** What the server said was wrong: title, detail, hint, code, and for a query the position of the mistake. */
export class Problem extends Error {
  constructor(content) {
    super(content.title || "The request failed.");
    this.status = content.status ?? 0;
    this.code = content.code ?? null;
    this.detail = content.detail ?? null;
    this.hint = content.hint ?? null;
    this.position = content.position ?? null;
  }

  get needsToken() {
    return this.status === 401;
  }
}

export const get = (path, options) => request("GET", path, undefined, options);
export const post = (path, body, options) => request("POST", path, body ?? {}, options);
export const patch = (path, body) => request("PATCH", path, body);
export const remove = (path) => request("DELETE", path);

/** The path of one stream table, however odd its name. */
export function tablePath(name, rest = "") {
  return `/tables/${encodeURIComponent(name)}${rest}`;
}

async function request(method, path, body, { signal } = {}) {
  let response;
  try {
    response = await fetch(ROOT + path, {
      method,
      signal,
      credentials: "same-origin",
      // other sites cannot send this header, so it proves where the request comes from where browsers do not say it
      headers: { "X-Pgtrickle": "1", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ title: "The sidecar does not answer.", hint: "Check that `pgtrickle run` is running." });
  }
  const isJson = (response.headers.get("Content-Type") ?? "").includes("json");
  const content = isJson ? await response.json() : null;
  if (!response.ok) throw new Problem(content ?? { title: `The server answered ${response.status}.`, status: response.status });
  return content;
}
