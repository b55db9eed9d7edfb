// Grants and pins: what was allowed for more than one call, and what servers say of themselves and changed.

import { h, fill, said, path } from "../lib/dom.js";
import { get, post } from "../lib/api.js";
import { follow } from "../lib/events.js";
import { locale, parts, texts } from "../lib/text.js";
import { ago, clock, size } from "../lib/time.js";
import { inline, read } from "../lib/diff.js";
import table from "./grants.text.js";

const t = texts(table);

// kinds of definitions that there are words for.
const kinds = new Set(["server", "tool", "prompt", "template"]);

// dangers are what the program says of a change, and which text says it here.
const dangers = new Map([
  ["it has characters that a person does not see", "hidden"],
  ["it takes a new parameter", "parameter"],
  ["it requires another parameter", "required"],
  ["it takes values that it did not take", "wider"],
  ["another value is used when none is given", "default"],
  ["what it takes is described in another way", "schema"],
  ["it may change things now", "writes"],
  ["it claims now to do no harm", "claims"],
  ["what steers a client is another", "meta"],
  ["its icon is at an address of another kind", "icon"],
  ["something changed of which the meaning is not known", "unknown"],
  ["new text tells a model what to do, or speaks of what it has no need to", "words"],
  ["there is much new text", "much"],
  ["there is new text in a script that was not there", "script"],
]);

const danger = (text) => dangers.has(text) ? t("danger." + dangers.get(text)) : text;

export function mount(main, signal) {
  const status = h("div", { role: "status" });
  const held = h("section.block"), pinned = h("details.block");
  const count = h("span.soft", null), rows = h("div", null), more = h("div.more2");
  const search = h("input", { type: "search", placeholder: t("filter"), "aria-label": t("filter"), maxlength: 200, on: { input: () => later() } });
  const server = h("select", { "aria-label": t("server"), on: { change: () => list(0) } });
  const revokeAll = h("button.small.no", { type: "button", hidden: true });
  fill(main, h("div.head", null, h("h1", null, t("title")), status), held,
    h("section.block", null, h("div.head2", null, h("h2", null, t("grants"), " ", count)), h("p.note", null, t("grants.text")),
      h("div.filter", null, search, server, revokeAll), rows, more), pinned);
  const dialog = h("dialog", { "aria-labelledby": "ask-title" });
  document.body.append(dialog);
  signal.addEventListener("abort", () => dialog.remove(), { once: true });

  const tell = (text, kind = "note") => fill(status, text && h("p." + kind, null, text));
  const failed = (e) => e.code === "changed" ? t("changed") : e.code === "away" ? t("away") : said(e.message, 600);

  // sure asks before something is done that cannot be taken back by a key.
  function sure(text, label, f) {
    const no = h("button", { type: "button", on: { click: () => dialog.close() } }, t("cancel"));
    fill(dialog, h("h2", { id: "ask-title" }, text), h("div.buttons", null, no, h("button.no", { type: "button", on: { click: () => { dialog.close(); f(); } } }, label)));
    dialog.showModal();
    no.focus();
  }

  // Grants.

  let timer = 0, number = 0, shown = [], offset = 0;

  function later() {
    clearTimeout(timer);
    timer = setTimeout(() => list(0), 150);
  }

  async function list(from) {
    const mine = ++number;
    try {
      const got = await get("/api/grants/list", { q: search.value, server: server.value, offset: from || undefined }, signal);
      if (mine !== number) return;
      shown = from ? [...shown, ...got.list] : got.list;
      offset = from + got.list.length;
      fill(count, got.all ? got.all.toLocaleString(locale) : null);
      const chosen = server.value;
      fill(server, h("option", { value: "", selected: !chosen }, t("server.all")), got.servers.map((s) => h("option", { value: s, selected: s === chosen }, s.length > 60 ? s.slice(0, 59) + "…" : s)));
      search.parentElement.hidden = !got.all;
      revokeAll.hidden = !chosen || search.value.trim() !== ""; // it takes back all, whatever is looked for
      if (chosen) fill(revokeAll, t("revoke.server", { n: got.found }));
      revokeAll.onclick = () => sure(t("revoke.sure", { server: chosen, n: got.found }), t("revoke"), () => revoke({ server: chosen }));
      const focus = document.activeElement?.dataset?.grant;
      fill(rows, !got.all ? h("p.empty2", null, t("grants.none")) : !got.found ? h("p.empty2", null, t("grants.found", { n: 0 }))
        : h("ul.granted", null, shown.map(row)));
      if (focus) (rows.querySelector(`[data-grant="${CSS.escape(focus)}"]`) ?? rows.querySelector("[data-grant]"))?.focus();
      fill(more, offset < got.found && h("button", { type: "button", on: { click: () => list(offset) } }, t("more", { n: got.found - offset })));
    } catch (e) {
      if (!signal.aborted && mine === number) fill(rows, h("p.error", null, failed(e)));
    }
  }

  function row(g) {
    return h("li", null, h("div", null,
      h("p", null, h("strong", null, said(g.what, 200))),
      h("p.tags", null, h("span.tag", null, said(g.server, 60)), h("span.note", null, parts(g.session ? t("for.session") : t("for.any"), { client: said(g.client || "–", 60) }))),
      h("p.note", null, t("since", { from: ago(g.since), until: clock(g.until) }), g.call && [" · ", h("code", null, "rootbound why " + g.call)], g.by && [" · ", "by." + g.by in table ? t("by." + g.by) : said(g.by, 120)])),
    h("button.small.no", { type: "button", data: { grant: g.id }, "aria-label": t("revoke.of", { what: g.what, server: g.server }), on: { click: () => revoke({ ids: [g.id] }) } }, t("revoke")));
  }

  async function revoke(which) {
    tell();
    try {
      const { revoked } = await post("/api/grants/revoke", { ids: which.ids ?? [], server: which.server ?? "" }, signal);
      tell(revoked ? t("revoked", { n: revoked }) : t("revoked.none"));
      await list(0);
    } catch (e) {
      if (!signal.aborted) tell(failed(e), "error");
    }
  }

  // Pins.

  async function pins() {
    try {
      const got = await get("/api/pins/list", {}, signal);
      const open = new Set([...held.querySelectorAll("details[open]")].map((d) => d.dataset.key));
      fill(held, got.all > 0 && [h("h2", null, t("held")), h("p.note", null, t("held.text")), h("div.pins", null, got.waits.map((w) => change(w, open))),
        got.all > got.waits.length && h("p.note", null, t("held.more", { n: got.all - got.waits.length }))]);
      fill(pinned, h("summary", null, t("pinned", { n: got.pinned.reduce((n, o) => n + o.n, 0) })), got.pinned.length
        ? h("ul.owners", null, got.pinned.slice(0, 500).map((o) => h("li", null, h("strong", null, said(o.server, 80)), h("span.note", null, said(o.runs, 160)), h("span.note", null, t("pinned.of", { n: o.n, time: clock(o.since) })))))
        : h("p.note", null, t("pinned.none")));
    } catch (e) {
      if (!signal.aborted) fill(held, h("p.error", null, failed(e)));
    }
  }

  function change(w, open) {
    const key = [w.server, w.runs, w.kind, w.name, w.for].join("\0");
    const what = w.kind === "server" ? t("kind.server") : parts(t("kind." + (kinds.has(w.kind) ? w.kind : "tool")), { name: said(w.name, 80) });
    const wrong = h("div", { role: "alert" });
    const decide = async (accept) => {
      try {
        await post("/api/pins/decide", { server: w.server, runs: w.runs, kind: w.kind, name: w.name, for: w.for, hash: w.hash, accept }, signal);
        tell(accept ? t("accepted") : t("refused"));
        await pins();
      } catch (e) {
        if (!signal.aborted) fill(wrong, h("p.error", null, failed(e)));
      }
    };
    const label = w.kind === "server" ? w.server : w.name;
    return h("article.card.pin", { data: { pin: w.name || w.kind } },
      h("div.top", null, h("div", null, h("h3", null, what), h("p.note", null, said(w.server, 60), " · ", said(w.runs, 120), " · ", h("span.whole", null, ago(w.since)), w.for && [" · ", path(w.for, 200)])),
        h("span.tag" + (w.refused ? ".bad" : ".wait"), null, w.refused ? t("tag.refused") : w.first ? t("tag.first") : t("tag.changed"))),
      w.first && w.reasons?.length > 0 && h("ul.reasons", null, w.reasons.map((r) => h("li", null, said(danger(r), 200)))),
      h("details", { data: { key }, open: open.has(key) || !w.refused }, h("summary", null, w.first ? t("show.first") : t("show", { n: w.changes.length + (w.more ?? 0) })),
        w.changes.map((c) => h("div.one", null, c.path && h("p", null, h("code", null, said(c.path, 200)), c.danger && h("span.tag.bad", null, said(danger(c.danger), 120))),
          h("div.frame2", { tabindex: 0, role: "group", "aria-label": t("diff", { path: c.path || label }) }, inline(read(c.diff))), c.cut > 0 && h("p.note", null, t("cut", { size: size(c.cut) })))),
        w.more > 0 && h("p.note", null, t("changes.more", { n: w.more }))),
      wrong,
      h("div.buttons", null, !w.refused && h("button.no", { type: "button", "aria-label": t("refuse.of", { name: label }), on: { click: () => decide(false) } }, t("refuse")),
        h("button", { type: "button", "aria-label": t("accept.of", { name: label }), on: { click: () => decide(true) } }, t("accept"))));
  }

  follow("kept", signal, (key) => { if (key === "grants") list(0); else pins(); });
  list(0);
  pins();
}
