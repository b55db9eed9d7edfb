// Roots: the directories of the configuration file, which of them is the active workspace, and what clients opened besides.

import { h, fill, said, path } from "../lib/dom.js";
import { get, post } from "../lib/api.js";
import { all, follow } from "../lib/events.js";
import { parts, texts } from "../lib/text.js";
import { ago, clock } from "../lib/time.js";
import { inline, read } from "../lib/diff.js";
import { picker } from "../lib/picker.js";
import { access as allows } from "../lib/codes.js";
import table from "./roots.text.js";

const t = texts(table);

// codes are why a directory is none, of those that there are words for here.
const codes = new Set(["missing", "unopenable", "kind", "broad", "relative", "moved"]);

export const reason = (r) => codes.has(r.code) ? t("code." + r.code) : r.reason;

const words = ["rw", "no-delete", "ro"];

export function mount(main, signal) {
  const status = h("div", { role: "status" }), lists = h("div.lists"), opened = h("section.block");
  const file = h("p.soft", null);
  const add = h("button.strong", { type: "button", on: { click: () => edit({ do: "add", server: "", access: "rw" }) } }, t("add"));
  fill(main, h("div.head", null, h("div", null, h("h1", null, t("title")), file), add), status, lists, opened, told());
  const dialog = h("dialog.edit", { "aria-labelledby": "edit-title" });
  document.body.append(dialog);
  signal.addEventListener("abort", () => dialog.remove(), { once: true });

  const now = () => all("roots").get("");
  const tell = (text, kind = "note") => fill(status, text && h("p." + kind, null, text));
  const failed = (e) => e.code === "changed" ? t("changed") : e.code === "away" ? t("away") : reason({ code: e.code, reason: e.message });

  let made = "";
  function draw() {
    const v = now();
    if (!v) return;
    const guards = [...all("guard").values()].map((g) => g.now).filter(Boolean);
    const state = JSON.stringify([v, guards.map((n) => [n.server, n.pid, n.list])]);
    if (state === made) return;
    made = state;
    fill(file, v.file && parts(t("file"), { file: path(v.file, 200) }));
    add.disabled = Boolean(v.error);
    const focus = document.activeElement?.closest?.("[data-act]")?.dataset.act;
    const own = v.lists.filter((l) => l.server);
    const active = guards.filter((n) => n.list?.active && n.list.file === v.file);
    fill(lists, v.error && h("p.error", null, said(v.error, 600)),
      !v.error && listOf(v.lists[0] ?? { server: "", roots: [] }, t("list.all"), t("list.all.text"), active),
      own.filter((l) => l.given).map((l) => listOf(l, parts(t("list.one"), { server: said(l.server, 80) }), t("list.one.text"), active)),
      own.some((l) => !l.given) && h("p.note.heirs", null, parts(t("list.none"), { servers: own.filter((l) => !l.given).map((l, i) => [i > 0 && ", ", said(l.server, 60)]) })));
    if (focus) main.querySelector(`[data-act="${CSS.escape(focus)}"]`)?.focus();
    drawOpened(v);
  }

  function listOf(l, title, text, active) {
    return h("section.block", null, h("div.head2", null, h("h2", null, title), l.server && h("button.small", {
      type: "button", "aria-label": t("add.to", { server: l.server }), data: { act: "add " + l.server }, on: { click: () => edit({ do: "add", server: l.server, access: "rw" }) },
    }, t("add.short"))),
    h("p.note", null, text),
    l.roots.length ? h("ul.rootlist", null, l.roots.map((r) => rowOf(l, r, active))) : h("p.empty2", null, l.given ? t("list.empty") : t("list.nothing")));
  }

  const nameOf = (r) => r.name || r.place;

  function rowOf(l, r, active) {
    const key = l.server + "\0" + r.place;
    const act = (what) => ({ act: what + " " + key });
    return h("li.card.root" + (r.reason ? ".off" : "") + (r.active ? ".active" : ""), null,
      h("div.what", null,
        h("p.name", null, r.name ? h("strong", null, said(r.name, 80)) : h("strong.soft", null, t("unnamed")), r.active && h("span.tag.good", null, t("active")),
          r.reason && h("span.tag.bad", null, t("unavailable"))),
        h("p", null, path(r.path || r.place, 300)), r.path && r.path !== r.place && h("p.note", null, parts(t("written"), { path: path(r.place, 200) })),
        h("p.tags", null, h("span.tag", null, allows(r.access)), r.pin && h("span.tag", null, t("pinned")), r.work && h("span.tag", null, t("work"))),
        r.reason && h("p.why", null, said(reason(r), 300)),
        r.active && h("p.note", null, active.length ? parts(t("follow"), { who: active.map((n, i) => [i > 0 && ", ", said(n.server, 60)]) }) : t("follow.none"))),
      h("div.acts", null,
        !r.active && h("button.small", { type: "button", "aria-label": t("use.of", { root: nameOf(r) }), data: act("use"), on: { click: () => plan({ do: "use", server: l.server, root: r.name || r.place }) } }, t("use")),
        h("button.small", { type: "button", "aria-label": t("edit.of", { root: nameOf(r) }), data: act("edit"), on: { click: () => edit({ do: "set", server: l.server, root: r.place, name: r.name, access: r.access, pin: r.pin }) } }, t("edit")),
        h("button.small.no", { type: "button", "aria-label": t("remove.of", { root: nameOf(r) }), data: act("remove"), on: { click: () => plan({ do: "remove", server: l.server, root: r.place }) } }, t("remove"))));
  }

  // edit asks for what a root is to be.
  function edit(e) {
    tell();
    const name = h("input", { id: "edit-name", value: e.name ?? "", maxlength: 200, autocomplete: "off", spellcheck: "false" });
    const access = h("select", { id: "edit-access" }, words.map((w) => h("option", { value: w, selected: w === e.access }, allows(w))));
    const pin = h("input", { type: "checkbox", checked: Boolean(e.pin) });
    const where = e.do === "add" && picker(signal, { id: "edit-path", label: t("path"), reason });
    if (where) where.input.value = e.root ?? "";
    const servers = now()?.lists.map((l) => l.server).filter(Boolean) ?? [];
    const list = e.do === "add" && servers.length > 0 && h("select", { id: "edit-list" }, h("option", { value: "", selected: !e.server }, t("list.all")),
      servers.map((s) => h("option", { value: s, selected: s === e.server }, t("list.of", { server: s }))));
    const wrong = h("div", { role: "alert" });
    const form = h("form.fields", {
      on: {
        input: () => fill(wrong),
        submit: async (ev) => {
          ev.preventDefault();
          const want = { ...e, name: name.value.trim(), access: access.value, pin: pin.checked, server: list ? list.value : e.server };
          if (where) want.root = where.input.value.trim();
          fill(wrong);
          try {
            const p = await post("/api/roots/plan", clean(want), signal);
            confirm(want, p, () => edit(want));
          } catch (x) {
            if (!signal.aborted) fill(wrong, h("p.error", null, said(failed(x), 600)));
          }
        },
      },
    }, where ? where.element : h("p", null, path(e.root, 300)),
    h("div.field", null, h("label", { for: "edit-name" }, t("name")), name, h("p.note", null, t("name.text"))),
    h("div.field", null, h("label", { for: "edit-access" }, t("access")), access),
    list && h("div.field", null, h("label", { for: "edit-list" }, t("list")), list),
    h("label.row", null, h("span", null, t("pin"), h("span.note", null, " ", t("pin.text"))), pin),
    wrong, h("div.buttons", null, h("button", { type: "button", on: { click: () => dialog.close() } }, t("cancel")), h("button.strong", null, t("go"))));
    fill(dialog, h("h2", { id: "edit-title" }, e.do === "add" ? t("add.title") : t("edit.title")), form);
    if (!dialog.open) dialog.showModal();
    (where ? where.input : name).focus();
  }

  // clean is what is sent of an edit.
  const clean = (e) => ({ do: e.do, server: e.server, root: e.root, name: e.name ?? "", access: e.access ?? "", pin: Boolean(e.pin), print: e.print ?? "" });

  async function plan(e) {
    tell();
    try {
      confirm(e, await post("/api/roots/plan", clean(e), signal));
    } catch (x) {
      if (!signal.aborted) tell(said(failed(x), 600), "error");
    }
  }

  // confirm shows what an edit changes, for whom, before it is saved.
  function confirm(e, p, back) {
    const wrong = h("div", { role: "alert" });
    const cancel = h("button", { type: "button", on: { click: () => back ? back() : dialog.close() } }, back ? t("back") : t("cancel"));
    const save = h("button.strong", { type: "button", on: { click: async () => {
      save.disabled = true;
      try {
        await post("/api/roots/save", clean({ ...e, print: p.print }), signal);
        dialog.close();
        tell(t("saved"));
      } catch (x) {
        if (signal.aborted) return;
        save.disabled = false;
        fill(wrong, h("p.error", null, said(failed(x), 600)));
      }
    } } }, t("save"));
    fill(dialog, h("h2", { id: "edit-title" }, t("confirm")), h("div.plan", null,
      p.effects.length ? p.effects.map(effect) : h("p", null, p.diff ? t("effect.none") : t("effect.nothing")),
      p.diff && h("details", null, h("summary", null, parts(t("diff"), { file: path(p.file, 120) })), h("div.frame2", { tabindex: 0 }, inline(read(p.diff))))),
    wrong, h("div.buttons", null, cancel, p.diff && save));
    if (!dialog.open) dialog.showModal();
    cancel.focus();
  }

  function effect(e) {
    const one = (sign, kind) => (r) => h("li." + kind, null, h("span.sign", { role: "img", "aria-label": t("sign." + kind) }, sign),
      h("span", null, r.name && h("strong", null, said(r.name, 60), " "), path(r.path || r.place, 300), !e.active && h("span.tag", null, allows(r.access)), !e.active && r.pin && h("span.tag", null, t("pinned"))));
    return h("section", null, h("h3", null, e.active ? t("effect.active") : e.server ? parts(t("list.one"), { server: said(e.server, 80) }) : t("effect.all")),
      h("ul.delta", null, e.gained.map(one("+", "gained")), e.lost.map(one("−", "lost")), e.changed.map(one("~", "changed"))),
      e.begun && h("p.warn", null, t("effect.begun")), e.emptied && h("p.warn", null, t("effect.emptied")),
      h("p.note", null, e.guards.length ? parts(t("effect.now"), { who: e.guards.map((g, i) => [i > 0 && ", ", said(g.server, 60), " ", t("effect.pid", { pid: String(g.pid) }), g.client && [" ", said(g.client, 40)]]) })
        : t("effect.later")));
  }

  function drawOpened(v) {
    fill(opened, h("h2", null, t("consents")), h("p.note", null, t("consents.text")), v.fault && h("p.error", null, said(v.fault, 600)),
      v.consents.length > 0 && h("ul.consents", null, v.consents.slice(0, 500).map((c) => h("li", null,
        h("div", null, h("p", null, h("strong", null, said(c.name, 60)), " ", h("span.note", null, said(c.runs, 120))), h("p", null, path(c.dir, 300)),
          h("p.note", null, c.allowed ? t("allowed", { time: clock(c.since) }) : h("span.tag.wait", null, t("waits", { time: ago(c.since) })))),
        h("div.acts", null, !c.allowed && h("button.small", { type: "button", "aria-label": t("allow.of", { dir: c.dir, server: c.name }), on: { click: () => consent(c, true) } }, t("allow")),
          h("button.small.no", { type: "button", "aria-label": t("forget.of", { dir: c.dir, server: c.name }), on: { click: () => consent(c, false) } }, t("forget")))))),
      !v.consents.length && !v.fault && h("p.empty2", null, t("consents.none")));
  }

  async function consent(c, allow) {
    tell();
    try {
      await post("/api/roots/consent", { name: c.name, runs: c.runs, dir: c.dir, allow }, signal);
    } catch (x) {
      if (!signal.aborted) tell(said(failed(x), 600), "error");
    }
  }

  // told is read from the log when somebody wants to know.
  function told() {
    const body = h("div", null);
    let asked = false;
    return h("details.block", { on: { toggle: async (e) => {
      if (!e.target.open || asked) return;
      asked = true;
      fill(body, h("p.note", null, t("told.reading")));
      try {
        const list = await get("/api/roots/told", {}, signal);
        fill(body, list.length ? h("div.wide", { tabindex: 0 }, h("table", null, h("thead", null, h("tr", null, h("th", null, t("told.server")), h("th", null, t("told.dir")), h("th", null, t("told.last")))),
          h("tbody", null, list.slice(0, 1000).map((x) => h("tr", null, h("td", null, said(x.server, 80)), h("td", null, path(x.dir, 300)), h("td", null, clock(x.last))))))) : h("p.note", null, t("told.none")));
      } catch (x) {
        asked = false;
        if (!signal.aborted) fill(body, h("p.error", null, said(failed(x), 600)));
      }
    } } }, h("summary", null, t("told")), body);
  }

  follow("changes", signal, draw);
  get("/api/roots/now", {}, signal).catch((x) => { if (!signal.aborted) tell(said(failed(x), 600), "error"); });
  draw();
}
