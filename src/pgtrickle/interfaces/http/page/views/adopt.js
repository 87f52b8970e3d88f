// Turn materialized views into stream tables.

import { get, post } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, count } from "../format.js";
import { attempt, confirm, toast } from "../notices.js";
import { withToken } from "../session.js";

export async function adoptView(view, signal) {
  document.title = "Adopt · pgtrickle";
  put(view, h("p", { class: "loading" }, "Looking for materialized views…"));
  const found = await get("/materialized-views", { signal });
  put(view,
    h("div", { class: "overview-top" }, h("div", {},
      h("h1", {}, "Adopt a materialized view"),
      h("p", { class: "soft" }, "It becomes a stream table under its name, with its rows, indexes, grants and the views that read it. From then on it follows its sources by itself."))),
    found.length
      ? h("section", { class: "panel scroll" }, h("table", { class: "plain cards" },
        h("thead", {}, h("tr", {}, h("th", {}, "Materialized view"), h("th", { class: "number" }, "Rows (estimate)"), h("th", { class: "number" }, "Size"), h("th", {}, "Owner"), h("th", {}, ""))),
        h("tbody", {}, found.map((entry) => h("tr", { class: "middle" },
          h("td", { class: "name" }, entry.name), h("td", { class: "number", data: { label: "Rows (estimate)" } }, count(entry.rows)), h("td", { class: "number", data: { label: "Size" } }, bytes(entry.bytes)),
          h("td", { class: "mono soft", data: { label: "Owner" } }, entry.owner), h("td", { class: "end" }, entry.is_own
            ? h("button", { onclick: () => adopt(entry.name) }, "Adopt…")
            : h("span", { class: "help", title: `Run pgtrickle adopt as ${entry.owner}.` }, "only its owner can adopt it")))))))
      : h("div", { class: "panel empty" }, h("p", {}, "This database has no materialized views."), h("a", { class: "button", href: "#/create" }, "Create a stream table")));
}

function adopt(name) {
  return withToken(() => attempt(async () => {
    const { plan } = await post("/adopt", { name, dry_run: true });
    const isSure = await confirm({
      title: `Adopt ${plan.name}?`,
      text: `Its refresh mode would be ${plan.effective_mode}${plan.reason ? `: ${plan.reason}` : "."}`,
      items: [
        ...plan.obstacles.map((obstacle) => `In the way: ${obstacle}`),
        ...plan.missing_grants.map((statement) => `Missing privilege: ${statement}`),
        ...plan.missing_indexes.map((statement) => `Missing index: ${statement}`),
        ...plan.kept.map((kept) => `Kept: ${kept}`),
      ],
      action: "Adopt",
    });
    if (!isSure) return;
    const { table, notices } = await post("/adopt", { name });
    toast([`${table.name} is a stream table now.`, ...notices].join(" "));
    location.hash = `#/tables/${encodeURIComponent(table.name)}`;
  }));
}
