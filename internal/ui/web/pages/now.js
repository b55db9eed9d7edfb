// Now: which servers run, what each may touch and what holds them, as it changes.

import { h, fill, said, path } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { all, follow, isReady } from "../lib/events.js";
import { parts, texts } from "../lib/text.js";
import { ago, clock, every } from "../lib/time.js";
import * as codes from "../lib/codes.js";
import table from "./now.text.js";

const t = texts(table);

export function mount(main, signal) {
  const summary = h("p.soft", null), status = h("div", { role: "status" }), cards = h("div.guards");
  const pauseAll = h("button", { type: "button", on: { click: () => pause("", !all("paused").get("")?.all) } });
  fill(main, h("div.head", null, h("div", null, h("h1", null, t("title")), summary), pauseAll), status, cards);
  let failed = "";

  async function pause(server, paused) {
    try {
      await post("/api/pause", { server, paused }, signal);
      failed = "";
    } catch (e) {
      if (signal.aborted) return;
      failed = t("failed", { text: e.message });
    }
    draw();
  }

  const shown = new Map(); // key → what the card was made of

  function draw() {
    const guards = [...all("guard")].sort(([a, x], [b, y]) => x.server.localeCompare(y.server) || (x.since < y.since ? -1 : 1) || (a < b ? -1 : 1));
    const paused = all("paused").get("") ?? {};
    fill(summary, isReady() && guards.length > 0 && t("summary", { n: guards.length }));
    fill(pauseAll, t(paused.all ? "resumeAll" : "pauseAll"));
    pauseAll.hidden = !guards.length && !paused.all;
    status.classList.toggle("told", Boolean(failed || paused.all));
    fill(status, failed ? h("p.error", null, failed) : paused.all && h("p.warn", null, t("paused.all")));
    if (!guards.length) {
      shown.clear();
      fill(cards, isReady() && h("div.empty", null, h("h2", null, t("none.title")),
        h("p", null, parts(t("none.text"), { command: h("code", null, "rootbound wrap"), demo: h("code", null, "rootbound demo") }))));
      return;
    }
    const have = new Map([...cards.children].filter((c) => c.dataset.key).map((c) => [c.dataset.key, c]));
    const list = guards.map(([key, g]) => {
      const made = JSON.stringify([g, paused.all]);
      if (have.has(key) && shown.get(key) === made) return have.get(key);
      shown.set(key, made);
      const focus = have.get(key)?.contains(document.activeElement);
      const c = card(key, g, paused);
      if (focus) queueMicrotask(() => c.querySelector("button")?.focus());
      return c;
    });
    if (list.length !== cards.children.length || list.some((c, i) => cards.children[i] !== c)) cards.replaceChildren(...list);
  }

  const kind = (revision) => parts(revision >= "2026-07-28" ? t("kind.new") : t("kind.old"), { revision: h("span.whole", null, said(revision, 40)) });

  function card(key, g, paused) {
    const now = g.now, name = said(g.server, 80);
    const fact = (label, ...what) => h("div.fact", null, h("dt", null, label), h("dd", null, ...what));
    return h("article.card.guard", { data: { key } },
      h("div.top", null, h("div", null, h("h2", null, name, g.paused && h("span.tag.wait", null, t("paused"))),
        h("p.note", null, t("since", { time: clock(g.since), pid: String(g.pid) }))),
      now?.questions > 0 && h("a.button.strong2", { href: "#/questions" }, t("waits", { n: now.questions })),
      !paused.all && h("button.small", { type: "button", "aria-label": t(g.paused ? "resume.of" : "pause.of", { server: g.server }), on: { click: () => pause(g.server, !g.paused) } }, t(g.paused ? "resume" : "pause"))),
      now && h("dl", null,
        fact(t("client"), clients(now)),
        fact(t("command"), now.url || now.command?.length ? h("p.command", null, now.url ? path(now.url, 300) : said(now.command.join(" "), 300)) : h("p", null, t("command.ours")), now.listening && h("p.note", null, t("listening", { address: now.listening }))),
        fact(t("roots"), now.roots?.length ? h("ul.roots", null, now.roots.map(root)) : h("p", null, t("roots.none")),
          now.source && h("p.note", null, parts(t("roots.source"), { source: codes.source(now.source_code) ?? said(now.source, 200) })), now.why && long(now.why, codes.holds(now.why_code))),
        fact(t("layers"), h("ul.layers", null, (now.layers ?? []).map(layer))),
        fact(t("calls"), calls(now)),
        fact(t("refused"), refused(now.refused))),
      now?.closed && h("p.warn", null, t("closed", { text: now.closed })));
  }

  function clients(now) {
    const list = now.clients ?? [];
    if (!list.length) return h("p", null, t("client.none"));
    return h("ul", null, list.map((c) => h("li", null, h("strong", null, said(c.name || "–", 80)), c.version && h("span.soft", null, " ", said(c.version, 40)),
      c.revision && h("p.note", null, !c.server_revision || c.server_revision === c.revision ? parts(t("spoken"), { revision: kind(c.revision) })
        : parts(t("translated"), { client: kind(c.revision), server: kind(c.server_revision) })))), now.more_clients > 0 && h("li.note", null, t("client.more", { n: now.more_clients })));
  }

  function root(r) {
    const off = r.state && r.state !== "open";
    return h("li" + (off ? ".off" : ""), null, h("p", null, r.name && h("strong", null, said(r.name, 60), " "), path(r.path, 300)),
      h("p.tags", null, h("span.tag", null, codes.access(r.access)), r.pinned && h("span.tag", null, t("pinned")),
        off && h("span.tag" + (r.state === "unavailable" ? ".bad" : ".wait"), null, t("state." + r.state)), r.reason && h("span.note", null, codes.root(r.code) ?? said(r.reason, 200))));
  }

  function layer(l) {
    return h("li" + (l.holds ? ".holds" : ".missing"), null, l.holds ? h("span.mark", { role: "img", "aria-label": t("layer.holds") }, "✓") : h("span.mark", { "aria-hidden": "true" }, "–"),
      h("span", null, h("strong", null, t("layer." + l.name)), !l.holds && h("span.note", null, " ", t("layer.missing")), ![l.name, "not " + l.name].includes(l.text) && h("span.note", null, " ", said(l.text, 300))));
  }

  function calls(now) {
    const m = now.minute ?? {}, sum = (c) => (c?.allowed ?? 0) + (c?.approved ?? 0) + (c?.denied ?? 0);
    const kinds = ["allowed", "approved", "denied"].filter((k) => m[k] > 0);
    const bar = h("svg.rate", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
    let x = 0;
    for (const k of kinds) {
      const width = 100 * m[k] / sum(m);
      bar.append(h("rect." + k, { x, y: 0, width, height: 6 }));
      x += width;
    }
    return [sum(m) ? [bar, h("p", null, kinds.map((k, i) => [i > 0 && ", ", h("span." + k, null, t("calls." + k, { n: m[k] }))]))] : h("p", null, t("calls.none")),
      h("p.note", null, t("calls.total", { n: sum(now.total) }))];
  }

  // long is a text of which the beginning is enough for most, or what is known of it.
  const long = (text, short) => short ? h("details.long", null, h("summary.note", null, short), h("p.note", null, said(text, 2000))) : text.length < 140 ? h("p.note", null, said(text)) : h("details.long", null, h("summary.note", null, said(text.slice(0, 110).replace(/\s\S*$/, "") + " …")), h("p.note", null, said(text, 2000)));

  function refused(r) {
    if (!r) return h("p", null, t("refused.none"));
    return [h("p", null, h("strong", null, said(r.tool || r.method, 80)), r.path && [" ", path(r.path, 200)], h("span.note", { data: { ago: r.time } }, " " + ago(r.time))),
      long(r.reason, codes.refused(r.code)), r.fix && h("p.note", null, t("refused.fix")), r.fix && h("ul.fixes", null, r.fix.split("\n").slice(0, 4).map((f) => h("li", null, said(f, 300)))),
      h("p.note", null, h("a", { href: "#/log/" + r.call }, t("refused.story")))];
  }

  let waits = false;
  follow("changes", signal, () => {
    if (waits) return;
    waits = true;
    setTimeout(() => { waits = false; if (!signal.aborted) draw(); }, 50);
  });
  every(10000, signal, () => { for (const e of main.querySelectorAll("[data-ago]")) e.textContent = " " + ago(e.dataset.ago); });
  draw();
}
