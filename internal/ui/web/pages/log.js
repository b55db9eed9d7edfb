// Log: what happened. Search, as it comes; one call's whole story; whether the log was changed.

import { h, fill, said, path, icon } from "../lib/dom.js";
import { get, link } from "../lib/api.js";
import { follow } from "../lib/events.js";
import { locale, parts, texts } from "../lib/text.js";
import { every, size, span as long } from "../lib/time.js";
import { chart } from "../lib/chart.js";
import * as codes from "../lib/codes.js";
import table from "./log.text.js";

const t = texts(table);

const filters = ["text", "server", "tool", "verdict", "path", "since", "until"];
const spans = { "15m": 15 * 60e3, "1h": 3600e3, "24h": 24 * 3600e3, "7d": 7 * 24 * 3600e3 };
const most = 2000; // rows that are shown at once

const fail = (e) => h("p.error", null, e.code && "error." + e.code in table ? t("error." + e.code) : e.message);

export async function mount(main, signal) {
  const call = decodeURIComponent(location.hash.slice(2).split("?")[0].split("/")[1] ?? "");
  return call ? story(main, signal, call) : list(main, signal);
}

const time = (at) => new Date(at).toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = (at) => new Date(at).toLocaleDateString(locale, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const took = (ms) => ms >= 60e3 ? long(Math.min(ms, 1e15)) : ms < 1000 ? t("ms", { n: ms.toLocaleString(locale, { maximumSignificantDigits: 3 }) }) : t("s", { n: (ms / 1000).toLocaleString(locale, { maximumSignificantDigits: 3 }) });

const looks = { allow: "good", ok: "good", ask: "wait", cancelled: "wait", withheld: "wait", deny: "bad", error: "bad" };

// word is what was decided or came out.
function word(w) {
  if (!w) return null;
  const known = "word." + w in table;
  return h("span.tag" + (looks[w] ? "." + looks[w] : ""), null, known ? t("word." + w) : said(w, 30));
}

// what is what a record is about: a tool or a method, or the kind of record.
const what = (r) => r.kind === "call" || r.kind === "end" || r.kind === "asked" || r.kind === "answered" ? said(r.subject || "–", 80)
  : "kind." + r.kind in table ? t("kind." + r.kind) : said(r.kind, 40);

// The search.

let last = ""; // the hash of the search that was left for a story

function list(main, signal) {
  const params = new URLSearchParams(location.hash.split("?")[1] ?? "");
  const value = Object.fromEntries(filters.map((k) => [k, params.get(k) ?? ""]));
  let live = true, older = false, run = 0, next = "";

  const records = h("ol.records", { "aria-label": t("list") });
  const status = h("p.soft", { role: "status" });
  const proof = h("div.proof");
  const problem = h("div", { role: "alert" });
  const charts = h("section.charts.card", { "aria-label": t("chart"), hidden: true });
  const more = h("button", { type: "button", hidden: true, on: { click: () => search(true) } }, t("more"));
  const follows = h("button.small", { type: "button", "aria-pressed": "true", on: { click: () => { live = !live; press(); if (live) search(); } } }, t("live"));
  const press = () => follows.setAttribute("aria-pressed", String(live));

  const option = (v, label) => h("option", { value: v, selected: v === value.span }, label);
  value.span = value.since in spans && !value.until ? value.since : value.since || value.until ? "own" : "";
  const field = (name, label, control) => h("label.field.by-" + name, null, h("span", null, label), control);
  const input = (name, props) => h("input", { ...props, value: value[name], autocomplete: "off", spellcheck: "false", on: { input: () => soon(name) } });
  const text = input("text", { type: "search", placeholder: t("text.hint") });
  const tool = input("tool", { type: "text", list: "tools" }), tools = h("datalist", { id: "tools" });
  const dir = input("path", { type: "text", placeholder: "/home/…" });
  const server = h("select", { on: { change: (e) => set("server", e.target.value) } }, h("option", { value: "" }, t("any")));
  const verdict = h("select", { on: { change: (e) => set("verdict", e.target.value) } },
    [["", t("any")], ["deny", t("word.deny")], ["allow", t("word.allow")], ["ask", t("word.ask")]].map(([v, label]) => h("option", { value: v, selected: v === value.verdict }, label)));
  const when = h("select", { on: { change: (e) => span(e.target.value) } }, option("", t("any")), Object.keys(spans).map((k) => option(k, t("span." + k))), option("own", t("span.own")));
  const local = (iso) => { const d = new Date(iso); return isNaN(d) ? "" : new Date(d - d.getTimezoneOffset() * 60e3).toISOString().slice(0, 16); };
  const moment = (name) => h("input", { type: "datetime-local", value: value[name] in spans ? "" : local(value[name]), on: { click: (e) => e.target.showPicker?.(), change: (e) => set(name, e.target.value ? new Date(e.target.value).toISOString() : "") } });
  const from = moment("since"), to = moment("until");
  const own = h("div.own", { hidden: value.span !== "own" }, field("since", t("since"), from), field("until", t("until"), to));
  const clear = h("button.quiet.small", { type: "button", on: { click: () => { for (const k of filters) value[k] = ""; location.hash = "#/log"; if (!params.size) reset(); } } }, t("clear"));

  fill(main,
    h("div.head", null, h("div", null, h("h1", null, t("title")), status), follows,
      h("button.small", { type: "button", on: { click: save } }, icon("M12 4v10M8 11l4 4 4-4M5 19h14"), t("export"))),
    h("form.filters", { role: "search", on: { submit: (e) => { e.preventDefault(); apply(); } } },
      field("text", t("text"), text), field("server", t("server"), server), field("tool", t("tool"), tool), field("verdict", t("verdict"), verdict),
      field("path", t("path"), dir), field("when", t("when"), when), own, clear), tools,
    problem, charts, proof, records, h("p.foot", null, more));

  function reset() {
    for (const e of [text, tool, dir, server, verdict, when, from, to]) e.value = "";
    own.hidden = true;
    apply();
  }

  // asked is the search as it is sent: times that are told from now are times of this moment.
  function asked(extra) {
    const q = { ...extra };
    for (const k of filters) if (value[k]) q[k] = value[k];
    if (q.since in spans) q.since = new Date(Date.now() - spans[q.since]).toISOString();
    return q;
  }

  function set(name, v) {
    if (value[name] === v) return;
    value[name] = v;
    apply();
  }

  function span(v) {
    own.hidden = v !== "own";
    value.since = v in spans ? v : "";
    value.until = "";
    from.value = to.value = "";
    if (v !== "own") apply();
  }

  let timer = 0;
  const fields = { text, tool, path: dir };
  function soon(name) {
    clearTimeout(timer);
    timer = setTimeout(() => set(name, fields[name].value.trim()), 250);
  }

  // apply searches for what is chosen now, and makes it the address.
  function apply() {
    clearTimeout(timer);
    for (const [k, e] of Object.entries(fields)) value[k] = e.value.trim();
    const q = new URLSearchParams(filters.filter((k) => value[k]).map((k) => [k, value[k]]));
    history.replaceState(null, "", "#/log" + (q.size ? "?" + q : ""));
    search();
    draw();
  }

  let searching = new AbortController(), shown = "";
  signal.addEventListener("abort", () => { searching.abort(); clearTimeout(timer); last = location.hash.startsWith("#/log/") ? shown : ""; });

  // search searches; quiet is set when nobody asked for it, so that what was proved is not proved again and again.
  async function search(on, quiet) {
    const mine = ++run;
    searching.abort();
    searching = new AbortController();
    shown = location.hash;
    clear.hidden = !filters.some((k) => value[k]);
    if (!on) older = false;
    try {
      const got = await get("/api/log/search", asked(on ? { before: next } : {}), searching.signal);
      if (mine !== run) return;
      fill(problem);
      if (on) { older = true; live = false; press(); } else records.replaceChildren();
      next = got.next ?? "";
      put(got.hits);
      more.hidden = !next || records.children.length >= most;
      if (!records.children.length) fill(records, h("li.none", null, got.state.done < got.state.bytes ? t("reading") : filters.some((k) => value[k]) ? t("none.found") : t("none")));
      state(got.state);
      prove(false, quiet);
    } catch (e) {
      if (mine !== run || e.name === "AbortError") return;
      fill(problem, fail(e));
    }
  }

  function state(s) {
    fill(status, s.done < s.bytes ? t("indexing", { n: Math.floor(100 * s.done / s.bytes) }) : t("size", { n: s.files, size: size(s.bytes) }));
  }

  function put(hits) {
    let now = [...records.querySelectorAll("li.day")].pop()?.textContent;
    for (const r of hits) {
      const d = day(r.time);
      if (d !== now) records.append(h("li.day", null, h("h2", null, d)));
      now = d;
      records.append(record(r));
    }
  }

  function record(r) {
    const linked = r.call && (r.kind === "call" || r.kind === "asked" || r.kind === "answered" || r.kind === "end" || r.word === "deny");
    const inner = [h("span.time", null, time(r.time)), h("span.word", null, word(r.word)),
      h("span.about", null, h("strong", null, what(r)), h("span.server", null, said(r.server, 60)),
        r.places && h("span.places", null, r.places.map((p) => path(p, 200)), r.more > 0 && h("span.more", null, t("places.more", { n: r.more }))),
        r.detail && h("span.detail", null, said(r.detail, 300))),
      h("span.end", null, r.kind === "call" && r.outcome && r.outcome !== "ok" && word(r.outcome), r.ms > 0 && h("span", null, took(r.ms)), r.bytes > 0 && h("span", null, size(r.bytes)))];
    return h("li.record." + (looks[r.word] ?? "plain"), { data: { file: r.file } }, linked ? h("a", { href: "#/log/" + encodeURIComponent(r.call) }, inner) : h("div", null, inner));
  }

  // prove verifies the chains of the files that are in view; when it is quiet, only if they are other files than at last.
  let proving = new AbortController(), proved = "";
  async function prove(whole, quiet) {
    const files = [...new Set([...records.querySelectorAll("li.record")].map((e) => e.dataset.file))], these = files.join("\n");
    if (quiet && these === proved) return;
    proved = these;
    proving.abort();
    proving = new AbortController();
    const mine = proving.signal;
    signal.addEventListener("abort", () => proving.abort(), { once: true });
    if (!whole && !files.length) return fill(proof);
    if (whole) fill(proof, h("p.note", null, t("proof.doing")));
    try {
      const q = new URLSearchParams(whole ? [] : files.slice(0, 50).map((f) => ["file", f]));
      const { chains } = await get("/api/log/chain?" + q, {}, mine);
      if (mine.aborted) return;
      const bad = chains.filter((c) => c.line || c.error), sum = chains.reduce((n, c) => n + c.records, 0);
      fill(proof, bad.length ? h("div.error", { role: "alert" }, h("strong", null, t("proof.broken", { n: bad.length })), h("ul", null, bad.map((c) => h("li", null, path(c.file), " ",
        c.error ? said(c.error) : t("proof.where", { line: String(c.line), records: c.records }), " ", c.kind && "damage." + c.kind in table ? t("damage." + c.kind) : c.detail && said(c.detail)))))
        : h("p.note.holds", null, icon("M5 12.5l4.5 4.5L19 7.5"), h("span", null, whole ? t("proof.all", { n: chains.length, records: sum }) : t("proof.view", { n: chains.length, records: sum }))),
      !whole && h("button.quiet.small", { type: "button", on: { click: () => prove(true) } }, t("proof.every")));
    } catch (e) {
      if (!mine.aborted) fill(proof, fail(e));
    }
  }

  // draw draws the chart, after the records: it is of all that was found, and takes longer.
  let drawing = new AbortController();
  async function draw() {
    drawing.abort();
    drawing = new AbortController();
    const mine = drawing.signal;
    signal.addEventListener("abort", () => drawing.abort(), { once: true });
    try {
      const got = await get("/api/log/chart", asked(), mine);
      if (mine.aborted) return;
      charts.hidden = !got.slots.length;
      if (got.slots.length) chart(charts, got, (since, until) => {
        value.since = since;
        value.until = until;
        when.value = "own";
        own.hidden = false;
        from.value = local(since);
        to.value = local(until);
        apply();
      });
    } catch (e) {
      if (!mine.aborted) charts.hidden = true;
    }
  }

  async function names() {
    try {
      const got = await get("/api/log/names", {}, signal);
      if (value.server && !got.servers.includes(value.server)) got.servers.unshift(value.server);
      fill(server, h("option", { value: "" }, t("any")), got.servers.map((s) => h("option", { value: s, selected: s === value.server }, s)));
      fill(tools, got.tools.map((s) => h("option", { value: s })));
    } catch { /* what can be chosen is typed */ }
  }

  async function save() {
    try {
      const a = h("a", { href: await link("/api/log/export?" + new URLSearchParams(asked())), download: "rootbound-log.jsonl" });
      a.click();
    } catch (e) {
      fill(problem, fail(e));
    }
  }

  // What comes is shown where the newest are looked at.
  let waits = 0, stale = false;
  follow("log", signal, (_, s) => {
    state(s);
    stale = true;
    if (!live || older || waits || document.hidden) return;
    waits = setTimeout(() => { waits = 0; if (!signal.aborted && live && !older) search(false, true); }, 300);
  });
  follow("lost", signal, () => { if (live && !older) search(); });
  every(10_000, signal, () => { if (stale && live && !document.hidden) { stale = false; draw(); names(); if (!older) prove(); } });
  addEventListener("visibilitychange", () => { if (!document.hidden && stale && live && !older) search(); }, { signal });
  search();
  draw();
  names();
}

// One call.

async function story(main, signal, call) {
  const back = h("a.back", { href: last || "#/log" }, t("back"));
  const body = h("div");
  fill(main, h("p", null, back), body);
  let got;
  try {
    got = await get("/api/log/story", { call }, signal);
  } catch (e) {
    if (!signal.aborted) fill(body, fail(e));
    return;
  }
  if (!got.stories.length) return fill(body, h("div.empty", null, h("h1", null, t("story.none")), h("p", null, said(call, 40))));
  fill(body, got.stories.map(one));

  function one(s) {
    const c = s.call;
    const end = (s.after ?? []).find((e) => e.kind === "end");
    const fact = (label, ...what) => h("div.fact", null, h("dt", null, label), h("dd", null, ...what));
    return h("article.card.story", null,
      h("header", null, h("p.meta", null, word(c.word), end && end.outcome !== "ok" && word(end.outcome), h("code", null, said(c.call || call, 40)), h("span.soft", null, day(c.time) + ", " + time(c.time))),
        h("h1", null, parts(t("story.title"), { tool: said(c.subject, 120), server: said(c.server, 80) }))),
      h("dl", null,
        (s.reason || s.code) && fact(t("story.why"), c.word === "deny" && codes.refused(s.code) && h("p", null, codes.refused(s.code)), s.reason && h("p", null, said(s.reason, 2000)), s.code && h("p.note", null, parts(t("story.code"), { code: h("code", null, said(s.code, 100)) })), s.rule && h("p.note", null, parts(t("story.rule"), { rule: h("code", null, said(s.rule, 200)) }))),
        s.paths?.length > 0 && fact(t("story.paths"), h("ul.paths", null, s.paths.map((p) => h("li", null,
          h("p", null, word(p.verdict), " ", path(p.place || p.given, 500), p.code && h("span.note", null, " ", codes.refused(p.code) ?? codes.found(p.code) ?? said(p.code, 60))),
          h("p.note", null, h("code", null, said(p.arg || "–", 200)), p.given && [" ", path(p.given, 500)], p.resolved && p.resolved !== p.given && [" → ", path(p.resolved, 500)])))),
        s.more > 0 && h("p.note", null, t("places.more", { n: s.more }))),
        s.roots?.length > 0 && fact(t("story.roots"), h("ul", null, s.roots.map((d) => h("li", null, d.name && [h("strong", null, said(d.name, 80)), " "], path(d.path, 400), d.access && h("span.note", null, " ", codes.access(d.access)))))),
        s.args && fact(t("story.args"), h("pre.args", { tabindex: "0" }, pretty(s.args)))),
      h("h2", null, t("story.course")),
      h("ol.course", null, [...(s.before ?? []).map(step), h("li", null, h("span.time", null, time(c.time)), h("span", null, h("strong", null, t("story.decided")), " ", word(c.word))), ...(s.after ?? []).map(step)]),
      s.allow?.length > 0 && [h("h2", null, t("story.allow")), h("ul.allow", null, s.allow.map((a) => h("li", null, h("code", null, said(a, 1000)))))],
      h("p.note.source", null, parts(t("story.record"), { file: path(c.file), n: String(s.record) })));
  }

  function step(e) {
    return h("li", null, h("span.time", null, time(e.time)), h("span", null, h("strong", null, "step." + e.kind in table ? t("step." + e.kind) : "kind." + e.kind in table ? t("kind." + e.kind) : said(e.kind, 40)), " ", word(e.word),
      e.kind === "answered" && e.from && h("span.note", null, " ", "by." + e.from in table ? t("by." + e.from) : said(e.from, 20), e.road && [", ", "road." + e.road in table ? t("road." + e.road) : said(e.road, 40)]),
      e.detail && h("p", null, said(e.detail, 2000)),
      (e.ms > 0 || e.bytes > 0) && h("p.note", null, [e.ms > 0 && took(e.ms), e.bytes > 0 && size(e.bytes)].filter(Boolean).join(" · "))));
  }
}

// pretty lays JSON out; what is too long for that stays as it is.
function pretty(text) {
  const longest = 200_000;
  let s = text;
  try {
    if (text.length <= longest && !/\d{16}|\d\.\d{15}|[\d]e/i.test(text)) s = JSON.stringify(JSON.parse(text), null, 2);
  } catch { /* it is shown as it is */ }
  return h("bdi", null, s.slice(0, longest), s.length > longest && h("span.more", null, "… +" + (s.length - longest)));
}
