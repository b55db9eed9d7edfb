// Questions: what waits for a person, and the answers.

import { h, fill, put, said, path } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { all, follow, isReady } from "../lib/events.js";
import { parts, texts } from "../lib/text.js";
import { every, size, span } from "../lib/time.js";
import { keysOn } from "../lib/settings.js";
import { beside, inline, read } from "../lib/diff.js";
import { visible } from "../lib/unseen.js";
import * as codes from "../lib/codes.js";
import table from "./questions.text.js";

const t = texts(table);

// settle is how long a question is shown before a yes counts: a key or a click that was meant for the one before must not.
const settle = 500;

// most is how many are in the list at a time.
const most = 100;

const minute = 60e9;
const times = [15, 60, 240, 480, 1440];

// effect is what a call does, as far as it is known here.
const effect = (q) => ["read", "write", "delete"].includes(q.effect) ? q.effect : "unknown";

// like is the same for questions that can be answered together.
const like = (q) => [q.server, q.tool, q.client, q.effect, q.why, q.paused].join("\0");

// pieces are parts of a long text, cut where a line ends if one does: the browser lays out those that are to be seen.
function* pieces(text, size = 8192) {
  for (let at = 0; at < text.length;) {
    let end = Math.min(at + size, text.length);
    if (end < text.length) {
      const line = text.lastIndexOf("\n", end - 1) + 1;
      if (line > at) end = line;
      else if (text.charCodeAt(end - 1) >> 10 === 0x36) end--;
    }
    yield text.slice(at, end);
    at = end;
  }
}

const error = (e) => ["gone", "changed", "away"].includes(e.code) ? t("error." + e.code) : e.text ?? e.message;

export function mount(main, signal) {
  let order = []; // keys, the oldest first
  let key = ""; // of the question that is shown
  let detail = null; // all of it
  let since = 0; // when it was shown
  const chosen = new Set();
  let editing = null, noting = false, batchNoting = false, giving = false;
  let layout = localStorage.getItem("diff") ?? (innerWidth < 900 ? "inline" : "beside");

  const list = h("ol.waiting", { "aria-label": t("list") });
  const panel = h("section.asked", { "aria-live": "off" });
  const status = h("p.status", { role: "status" });
  const split = h("div.split", null, h("div.side", null, list), panel);
  const empty = h("div");
  fill(main, h("div.head", null, h("h1", null, t("title")), status), empty, split);

  const value = (k) => all("question").get(k);
  const tell = (text) => fill(status, text);

  // sort finds the order anew. It is done once for all that changed together.
  function sort() {
    const values = all("question");
    order = [...values.keys()].sort((a, b) => values.get(a).asked < values.get(b).asked ? -1 : values.get(a).asked > values.get(b).asked ? 1 : a < b ? -1 : 1);
    const many = chosen.size > 1, gone = [...chosen].filter((k) => !values.has(k));
    for (const k of gone) chosen.delete(k);
    if (chosen.size < 2) batchNoting = false;
    const wanted = location.hash.split("/")[2];
    if (key && !values.has(key)) {
      if (detail && !detail.mine) tell(t("gone", { id: detail.id }));
      key = "";
    }
    if (!key && order.length) show(order.find((k) => wanted && values.get(k).id === wanted) ?? order[0]);
    else if (many && gone.length && chosen.size < 2 && !giving && key) show(key);
    if (gone.length && chosen.size > 1 && !giving && !batchNoting) batch();
    draw();
  }

  function draw() {
    split.hidden = !order.length;
    empty.hidden = order.length > 0 || !isReady();
    if (!order.length) {
      key = "";
      detail = null;
      fill(panel);
      fill(empty, h("div.empty", null, h("h2", null, t("none.title")), h("p", null, t("none.text", { n: all("guard").size }))));
      return;
    }
    const at = Math.max(0, order.indexOf(key)), from = Math.max(0, Math.min(at - most / 2, order.length - most));
    const focus = list.contains(document.activeElement) ? document.activeElement.closest("li")?.dataset.key : null;
    fill(list, order.slice(from, from + most).map(row), order.length > most && h("li.rest.note", null, t("more", { n: order.length - most })));
    if (focus) list.querySelector(`[data-key="${CSS.escape(focus)}"] button`)?.focus();
  }

  function row(k) {
    const q = value(k);
    return h("li", { data: { key: k }, "aria-current": k === key ? "true" : null },
      h("input", { type: "checkbox", checked: chosen.has(k), "aria-label": t("select", { id: q.id }), on: { change: (e) => choose(k, e.target.checked) } }),
      h("button.quiet", { type: "button", on: { click: () => { show(k); draw(); } } },
        h("span.top", null, h("strong", null, said(q.tool, 60)), h("span.time", { data: { time: k } }, left(q))),
        h("span.server", null, said(q.server, 40), q.behind > 0 && h("span.tag", null, "+" + q.behind)),
        q.place && h("span.place", null, said(tail(q.place), 60))));
  }

  const tail = (p) => p.length > 44 ? "…" + p.slice(-43) : p;

  const left = (q) => q.until ? t("left", { time: span(new Date(q.until) - Date.now()) }) : t("held");

  function choose(k, on) {
    if (on) chosen.add(k); else chosen.delete(k);
    draw();
    if (chosen.size > 1) batch();
    else if (detail) question();
  }

  // show shows a question.
  async function show(k) {
    key = k;
    since = performance.now();
    detail = null;
    editing = null;
    noting = false;
    const q = value(k);
    if (chosen.size < 2) fill(panel, heading(q, null));
    try {
      const got = await post("/api/question", { guard: q.guard, id: q.id }, signal);
      if (key !== k || signal.aborted) return;
      detail = { ...got, guard: q.guard, shown: got };
      since = performance.now();
      if (chosen.size < 2) question();
    } catch (e) {
      if (signal.aborted || key !== k) return;
      if (chosen.size < 2) fill(panel, h("p.error", null, error(e)));
    }
  }

  const strong = (text, max) => h("strong", null, said(text, max));

  function heading(q, full) {
    const places = full ? [...full.places ?? [], ...(full.hosts ?? []).map((path) => ({ path }))] : q.place ? [{ path: q.place }] : [];
    const n = full ? (full.targets?.length ?? 0) + (full.hosts?.length ?? 0) : q.place ? q.more + 1 : 0;
    const first = places[0] && h("strong", null, path(places[0].path, 300));
    const what = !first ? t("what.none") : n > 1 ? parts(t("what.more", { n: n - 1 }), { first }) : first;
    const sentence = q.paused ? t("will.paused") : t("will." + effect(q));
    return h("header", null,
      h("p.meta", null, h("span.tag" + (q.effect === "read" ? "" : q.effect === "delete" ? ".bad" : ".wait"), null, t("effect." + effect(q))),
        h("span.time", { data: { time: key } }, left(q)), q.behind > 0 && h("span", null, t("behind", { n: q.behind })),
        h("span.soft", null, q.client ? parts(t("asker"), { client: said(q.client, 60), id: h("code", null, q.id) }) : parts(t("call"), { id: h("code", null, q.id) }))),
      h("h2", null, parts(sentence, { tool: strong(q.tool, 80), server: strong(q.server, 60), what })));
  }

  let facts = h("div"); // of the question that is shown, with the arguments that are shown

  function question() {
    const q = value(key);
    if (!q || !detail) return;
    const d = detail.shown;
    const alike = order.filter((k) => like(value(k)) === like(q)).length;
    facts = h("div.facts2");
    fill(panel, h("div.scroll", null, facts, args(q, d),
      alike > 1 && h("p", null, h("button.small", { type: "button", on: { click: () => { for (const k of order) if (like(value(k)) === like(q)) chosen.add(k); draw(); batch(); } } }, t("selectLike", { n: alike })))),
    bar(q, d), legend());
    tellFacts();
  }

  function tellFacts() {
    const q = value(key), d = detail.shown;
    const lines = d.diff ? read(d.diff) : null;
    const why = d.rule && d.why.endsWith(" (" + d.rule + ")") ? d.why.slice(0, -d.rule.length - 3) : d.why;
    fill(facts, heading(q, d),
      d.why && h("div.part", null, h("h3", null, t("why")), h("p", null, codes.why(d.code, (d.why_args ?? []).map((name) => visible(name).slice(0, 60)).join(", ")) ?? said(why, 600)), why !== d.why && h("p.note", null, parts(t("rule"), { rule: path(d.rule, 300) })), d.from && h("p.note", null, parts(t("from"), { from: codes.from(d.from_code) ?? said(d.from, 200) }))),
      (d.places?.length || d.hosts?.length) && h("div.part", null, h("h3", null, t("places")), h("ul.places", null, (d.places ?? []).map(place),
        (d.hosts ?? []).map((x) => h("li", null, h("p", null, h("span.arg", null, t("host")), path(x))))),
      (d.targets?.length ?? 0) > (d.places?.length ?? 0) && h("p.note", null, t("morePlaces", { n: d.targets.length - d.places.length }))),
      lines && h("div.part", null, h("div.bar2", null, h("h3", null, t("diff")), h("div.choice", { role: "group" }, ["beside", "inline"].map((k) =>
        h("button.quiet.small", { type: "button", "aria-pressed": String(layout === k), on: { click: () => { layout = k; localStorage.setItem("diff", k); tellFacts(); } } }, t("diff." + k))))),
      h("div.frame2", { tabindex: "0", role: "group", "aria-label": t("diff") }, layout === "beside" ? beside(lines) : inline(lines))));
  }

  // legend says which keys there are, for who has a keyboard.
  const legend = () => keysOn() && h("p.legend", null, [["1–9", "answer"], ["n", "note"], ["e", "edit"], ["j", "next"], ["k", "back"], ["x", "select"]]
    .map(([k, what]) => h("span", null, h("kbd", null, k), " " + t("keys." + what))));

  function place(p) {
    return h("li", null, h("p", null, h("span.arg", null, said(p.arg, 60)), path(p.path, 600)),
      h("p.facts", null, h("span.tag" + (p.is === "nothing" ? ".good" : ""), null, t("is." + p.is, { size: size(p.size ?? 0) })),
        p.link && h("span.tag.wait", null, t("link")),
        h("span.note", null, parts(t("inRoot"), { root: path(p.root, 200), access: codes.access(p.access) })),
        p.given !== p.path && h("span.note", null, parts(t("given"), { path: path(p.given, 300) }))));
  }

  function args(q, d) {
    if (q.paused) return h("p.note", null, t("args.none"));
    if (editing) return editor(q);
    const known = detail;
    const text = h("pre", { tabindex: "0", role: "group", "aria-label": t("args") });
    for (const part of pieces(known.text || "{}")) put(text, h("span.piece", null, part));
    const body = h("details.args", { open: !d.diff }, h("summary", null, h("h3", null, t("args")), h("span.note", null, size(known.size))), text,
      known.cut && h("p", null, h("button.small", { type: "button", on: { click: async (e) => {
        e.target.disabled = true;
        try {
          const got = await post("/api/question", { guard: q.guard, id: q.id, all: true }, signal);
          if (detail === known) { Object.assign(known, { text: got.text, cut: false }); question(); panel.querySelector("details.args").open = true; }
        } catch (err) { if (!signal.aborted) tell(error(err)); }
      } } }, t("args.all", { size: size(known.size) }))));
    return h("div.part", null, body, known.edit && !known.cut && h("p", null, h("button.small", { type: "button", on: { click: edit } }, t("edit"), key1("e"))));
  }

  const key1 = (k) => keysOn() && h("kbd", { "aria-hidden": "true" }, k);

  // edit lets the arguments be changed. What is written is judged by the guard as it is written.
  function edit() {
    if (!detail?.edit || detail.cut) return;
    editing = { text: detail.text, state: "same", message: "" };
    question();
    panel.querySelector("textarea")?.focus();
  }

  function editor(q) {
    const message = h("p.judged", { role: "status" });
    const say = () => {
      message.className = "judged " + editing.state;
      fill(message, editing.message || t("edit.same"));
    };
    let timer = 0;
    const area = h("textarea.code", { id: "edited", rows: Math.min(24, editing.text.split("\n").length + 1), spellcheck: "false", value: editing.text, on: {
      input: () => {
        editing.text = area.value;
        Object.assign(editing, { state: "wait", message: "…" });
        say();
        answers();
        clearTimeout(timer);
        timer = setTimeout(() => judge(q, editing, say, answers), 250);
      },
    } });
    const answers = () => panel.querySelector(".bar")?.replaceWith(bar(value(key), detail.shown));
    say();
    return h("div.part", null, h("label", { for: "edited" }, h("h3", null, t("edit.label"))), area, message, h("p.note", null, t("edit.note")),
      h("p", null, h("button.small", { type: "button", on: { click: () => { editing = null; detail.shown = detail; question(); } } }, t("edit.drop"))));
  }

  async function judge(q, ed, say, answers) {
    const k = key, text = ed.text;
    const current = () => !signal.aborted && key === k && editing === ed && ed.text === text;
    let body;
    try {
      JSON.parse(text);
      body = `{"guard":${JSON.stringify(q.guard)},"id":${JSON.stringify(q.id)},"args":${text}}`; // numbers as they are written
    } catch (e) {
      Object.assign(ed, { state: "bad", message: t("edit.json", { text: e.message }) });
      say();
      return answers();
    }
    try {
      const got = await post("/api/question", body, signal);
      if (!current()) return;
      const same = got.digest === detail.digest;
      Object.assign(ed, { state: same ? "same" : "good", message: same ? "" : t("edit.good") });
      detail.shown = same ? detail : got;
      since = performance.now();
      tellFacts(); // and not the text, in which somebody writes
      say();
      answers();
    } catch (e) {
      if (!current()) return;
      Object.assign(ed, { state: "bad", message: t("edit.bad", { text: error(e) }) });
      say();
      answers();
    }
  }

  // bar has the answers. None of them is chosen, and no key but its own gives one.
  function bar(q, d) {
    if (noting) return notes((note) => answer({ allow: false, note }), () => { noting = false; question(); });
    const edited = editing && editing.state !== "same";
    const yes = (n, label, more, reply) => h("button.yes", { type: "button", data: { key: n }, disabled: edited && editing.state !== "good", on: { click: () => answer(reply()) } }, h("span", null, label, more && h("small", null, more)), key1(n));
    const row = h("div.answers", { role: "group", "aria-label": t("answers") },
      h("button.no", { type: "button", data: { key: "1" }, on: { click: () => answer({ allow: false }) } }, t("deny"), key1("1")),
      h("button.no", { type: "button", on: { click: note } }, t("note"), key1("n")),
      yes("2", edited ? t("allow.edited") : t("allow"), null, () => ({ allow: true, edited })));
    if (edited || q.paused) return h("div.bar", null, row);
    if (!d.remember) return h("div.bar", null, row, h("p.note", null, t("never")));
    const more = [], choices = d.choices ?? [];
    const how = h("select.small", { "aria-label": t("for") }, times.map((m) => h("option", { value: m, selected: m === 480 }, m < 60 ? t("minutes", { n: m }) : t("hours", { n: m / 60 }))));
    const wait = () => Number(how.value) * minute;
    let n = 3;
    const session = choices.find((c) => c.session);
    const scope = d.kept === "root" ? parts(t("scope.root"), { root: path(d.places?.[0]?.root ?? "", 80) }) : d.kept === "call" ? t("scope.call") : parts(t("scope.tool"), { tool: said(q.tool, 60) });
    if (session) more.push(yes(String(n++), t("session"), scope, () => ({ allow: true, session: true })));
    const under = choices.find((c) => c.under);
    if (under) {
      const root = d.places?.[0]?.root ?? under.under;
      const dirs = h("select.small", { "aria-label": t("under.label") }, above(under.under, root).map((dir) => h("option", { value: dir }, visible(dir))));
      more.push(h("span.joined", null, yes(String(n++), t("under"), null, () => ({ allow: true, under: dirs.value, for: wait() })), dirs));
    }
    const host = choices.find((c) => c.host);
    if (host) more.push(yes(String(n++), parts(t("toHost"), { host: said(host.host, 60) }), null, () => ({ allow: true, host: host.host, for: wait() })));
    more.push(yes(String(n++), t("time"), d.kept === "call" ? t("scope.call") : null, () => ({ allow: true, for: wait() })));
    return h("div.bar", null, row, h("details.longer", { open: localStorage.getItem("longer") === "open", on: { toggle: (e) => localStorage.setItem("longer", e.target.open ? "open" : "") } },
      h("summary", null, t("remember")), h("div.answers", null, more, h("label.how", null, h("span.note", null, t("for")), how))));
  }

  // above are a directory and those around it, up to its root.
  function above(dir, root) {
    const dirs = [dir], sep = dir.includes("\\") ? "\\" : "/";
    while (dir !== root && dir.startsWith(root) && dirs.length < 32) {
      dir = dir.slice(0, dir.lastIndexOf(sep)) || sep;
      dirs.push(dir);
    }
    return dirs;
  }

  function notes(send, back) {
    const input = h("input", { type: "text", id: "note", maxlength: "1000", autocomplete: "off", on: { keydown: (e) => { if (e.key === "Escape") back(); } } });
    const form = h("form.bar.noting", { on: { submit: (e) => { e.preventDefault(); send(input.value); } } }, h("label", { for: "note" }, t("note.label")), input,
      h("div.answers", null, h("button.no", null, t("note.send")), h("button", { type: "button", on: { click: back } }, t("note.cancel"))));
    queueMicrotask(() => input.focus());
    return form;
  }

  function note() {
    noting = true;
    question();
  }

  const settled = () => {
    if (performance.now() - since >= settle) return true;
    tell(t("settle"));
    return false;
  };

  async function answer({ edited, ...reply }) {
    const q = value(key), d = detail;
    if (!q || reply.allow && (!d || !settled())) return;
    if (reply.allow) reply.digest = d.shown.digest;
    let text = JSON.stringify(reply);
    if (edited) text = text.slice(0, -1) + `,"args":${editing.text}}`; // numbers as they are written
    if (d) d.mine = true;
    for (const b of panel.querySelectorAll("button")) b.disabled = true;
    try {
      const [done] = await post("/api/answers", `{"answers":[{"guard":${JSON.stringify(q.guard)},"id":${JSON.stringify(q.id)},"reply":${text}}]}`);
      if (done.code || done.text) throw done;
      tell(t(reply.allow ? "done.allow" : "done.deny", { id: q.id }));
    } catch (e) {
      if (d) d.mine = false;
      tell(t("failed", { id: q.id, text: error(e) }));
      if (key && detail === d && !signal.aborted) {
        if (e.code === "changed") show(key); else question();
      }
    }
  }

  // batch answers several questions that are alike, or were chosen one by one.
  function batch() {
    const keys = order.filter((k) => chosen.has(k)), shown = new Map(keys.map((k) => [k, value(k).digest])); // a yes is for what was shown
    since = performance.now();
    const give = (reply) => async () => {
      if (reply.allow && !settled()) return;
      for (const b of panel.querySelectorAll("button")) b.disabled = true;
      giving = true;
      let n = 0;
      const failed = [];
      try {
        for (let i = 0; i < keys.length; i += 200) {
          const got = await post("/api/answers", { answers: keys.slice(i, i + 200).flatMap((k) => value(k) ? [{ guard: value(k).guard, id: value(k).id, reply: reply.allow ? { ...reply, digest: shown.get(k) } : reply }] : []) });
          for (const one of got) if (one.code || one.text) failed.push(one); else n++;
        }
      } catch (e) {
        failed.push({ id: "", ...e, text: error(e) });
      }
      giving = false;
      if (detail) detail.mine = true;
      chosen.clear();
      batchNoting = false;
      tell(failed.length ? t("failed", { id: failed[0].id, text: error(failed[0]) }) : t("done.many", { n }));
      if (signal.aborted) return;
      sort();
      if (key) show(key);
    };
    const none = () => { chosen.clear(); batchNoting = false; draw(); if (detail) question(); else if (key) show(key); };
    fill(panel, h("div.scroll", null, h("header", null, h("h2", null, t("batch", { n: keys.length })), h("p.soft", null, keys.length > most ? t("batch.many", { n: most }) : t("batch.text"))), // a yes is for what was to be seen
      h("ul.many", { tabindex: "0", "aria-label": t("list") }, keys.slice(0, most).map((k) => {
        const q = value(k);
        return h("li", null, h("strong", null, said(q.tool, 60)), h("span.tag" + (q.effect === "delete" ? ".bad" : ""), null, t("effect." + effect(q))), h("span", null, said(q.server, 60)), q.place ? path(q.place, 300) : null, q.more > 0 && h("span.tag", null, "+" + q.more));
      }), keys.length > most && h("li.note", null, t("more", { n: keys.length - most })))),
    batchNoting ? notes((note) => give({ allow: false, note })(), () => { batchNoting = false; batch(); }) : h("div.bar", null, h("div.answers", { role: "group", "aria-label": t("answers") },
      h("button.no", { type: "button", data: { key: "1" }, on: { click: give({ allow: false }) } }, t("batch.deny"), key1("1")),
      h("button.no", { type: "button", on: { click: () => { batchNoting = true; batch(); } } }, t("note"), key1("n")),
      h("button.yes", { type: "button", data: { key: "2" }, disabled: keys.length > most, on: { click: give({ allow: true }) } }, t("batch.allow"), key1("2")),
      h("button", { type: "button", on: { click: none } }, t("selectNone")))));
  }

  function move(by) {
    const next = order[order.indexOf(key) + by];
    if (!next) return;
    show(next);
    draw();
    list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  addEventListener("keydown", (e) => {
    if (!keysOn() || e.ctrlKey || e.metaKey || e.altKey || e.repeat || e.isComposing || document.querySelector("dialog[open]")) return;
    if (!(e.target instanceof Element) || e.target.matches("input:not([type=checkbox]), textarea, select")) return;
    const many = chosen.size > 1;
    if (/^[1-9]$/.test(e.key)) {
      const b = panel.querySelector(`.bar [data-key="${e.key}"]`);
      if (!b) return;
      const longer = b.closest("details");
      if (longer && !longer.open) { // it says what is answered before it answers
        longer.open = true;
        since = performance.now();
      } else b.click();
    } else if (e.key === "n" && key) { if (many) { batchNoting = true; batch(); } else note(); }
    else if (e.key === "e" && key && !many && !editing) edit();
    else if (e.key === "x" && key) choose(key, !chosen.has(key));
    else if (e.key === "j" || e.key === "ArrowDown" && !panel.contains(e.target)) move(1);
    else if (e.key === "k" || e.key === "ArrowUp" && !panel.contains(e.target)) move(-1);
    else return;
    e.preventDefault();
  }, { signal });

  follow("question", signal, (k, q) => {
    if (q && !order.includes(k) && isReady() && order.length < most) {
      const live = document.getElementById("live");
      live.textContent = t("new", { text: visible(q.tool + " – " + q.server) });
    }
  });
  let drawn = false;
  follow("changes", signal, () => {
    if (drawn) return;
    drawn = true;
    requestAnimationFrame(() => { drawn = false; if (!signal.aborted) sort(); });
    setTimeout(() => { if (drawn && !signal.aborted) { drawn = false; sort(); } }, 60); // a hidden tab draws no frames
  });
  every(1000, signal, () => {
    for (const e of main.querySelectorAll("[data-time]")) {
      const q = value(e.dataset.time);
      if (q) e.textContent = left(q);
    }
  });
  sort();
}
