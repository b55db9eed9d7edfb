// Verify: whether a server keeps its boundary, tried out.

import { h, fill, said, path, icon } from "../lib/dom.js";
import { get, link, post } from "../lib/api.js";
import { all, follow } from "../lib/events.js";
import { parts, texts } from "../lib/text.js";
import { clock, every, span } from "../lib/time.js";
import table from "./verify.text.js";

const t = texts(table);

const fail = (e) => h("p.error", { role: "alert" }, e.code && "error." + e.code in table ? t("error." + e.code) : e.message);

export async function mount(main, signal) {
  const status = h("div", { role: "status" }), problem = h("div"), list = h("ul.servers");
  const quick = h("input", { type: "checkbox" });
  fill(main, h("div.head", null, h("div", null, h("h1", null, t("title")), h("p.soft.lead", null, t("lead")))), status, problem,
    h("section", null, h("div.bar2", null, h("h2", null, t("servers")), h("label.check", null, quick, h("span", null, t("quick")))), list));
  let servers = [];

  async function start(id) {
    fill(problem);
    try {
      await post("/api/verify/start", { id, quick: quick.checked }, signal);
      status.scrollIntoView({ block: "nearest" });
    } catch (e) {
      if (!signal.aborted) fill(problem, fail(e));
    }
  }

  async function stop() {
    try {
      await post("/api/verify/stop", {}, signal);
    } catch (e) {
      if (!signal.aborted) fill(problem, fail(e));
    }
  }

  async function report() {
    // The tab is opened at once, as browsers let a page do that only then.
    const tab = open("", "_blank");
    try {
      const href = await link("/api/verify/report");
      if (tab) tab.opener = null;
      if (tab) tab.location.replace(href); else location.href = href;
    } catch (e) {
      tab?.close();
      fill(problem, fail(e));
    }
  }

  const running = () => all("verify").get("")?.state === "running";

  let shown = 0, meter = null, doing = null, since = null;

  function draw() {
    const r = all("verify").get("");
    if (!r) return fill(status);
    if (r.state === "running" && shown === r.number) {
      meter.max = Math.max(r.all, 1);
      meter.value = r.done;
      fill(doing, r.what ? t("doing", { done: r.done, all: r.all }) : t("starting"), r.what && [" ", said(r.what, 120)]);
      return;
    }
    shown = r.state === "running" ? r.number : 0;
    const name = h("strong", null, said(r.server.name, 80));
    if (r.state === "running") {
      meter = h("progress", { "aria-label": t("progress") });
      meter.max = Math.max(r.all, 1);
      if (r.all) meter.value = r.done;
      doing = h("p.doing", null, t("starting"));
      since = h("span.soft", null, span(Date.now() - new Date(r.begun)));
      fill(status, h("section.card.trial", null, h("header", null, h("h2", null, parts(t("running"), { name })), since), meter, doing, h("p", null, h("button.no", { type: "button", on: { click: stop } }, t("stop")))));
    } else if (r.state === "done") {
      const x = r.tried, bad = x.leaked > 0 ? "bad" : x.failed > 0 ? "wait" : "good";
      const count = (k) => x[k] > 0 && h("span.tag" + (k === "leaked" ? ".bad" : k === "failed" ? ".wait" : k === "held" ? ".good" : ""), null, t("count." + k, { n: x[k] }));
      fill(status, h("section.card.trial." + bad, null, h("header", null, h("h2", null, x.leaked > 0 ? parts(t("done.leaked"), { name }) : x.failed > 0 ? parts(t("done.failed"), { name }) : x.held > 0 ? parts(t("done.held"), { name }) : parts(t("done.none"), { name })), h("span.soft", null, clock(r.ended))),
        h("p.counts", null, ["leaked", "failed", "held", "other"].map(count)), h("p.note", null, said(x.score, 400)),
        h("p", null, h("button.strong", { type: "button", on: { click: report } }, t("open")))));
    } else {
      fill(status, h("section.card.trial", null, h("header", null, h("h2", null, parts(t("end." + r.state), { name })), h("span.soft", null, clock(r.ended))), r.error && h("pre.error", null, h("bdi", null, r.error.slice(0, 4000)))));
    }
  }

  function buttons() {
    for (const b of list.querySelectorAll("button")) b.disabled = running();
  }

  function server(s) {
    return h("li.card", null,
      h("div", null, h("h3", null, said(s.name, 80), s.from && h("span.tag", null, said(s.from, 40)), !s.from && h("span.tag", null, t("own"))),
        s.command && h("p.command", null, h("code", null, said(s.command.join(" "), 300))), s.file && h("p.note", null, path(s.file, 300)), s.why && h("p.note.why", null, said(s.why, 400))),
      !s.why && h("button", { type: "button", "aria-label": t("try.of", { name: s.name }), disabled: running(), on: { click: () => start(s.id) } }, t("try")));
  }

  follow("verify", signal, () => { draw(); buttons(); });
  every(1000, signal, () => { const r = all("verify").get(""); if (running() && since) fill(since, span(Date.now() - new Date(r.begun))); });
  draw();
  try {
    ({ servers } = await get("/api/verify/servers", {}, signal));
  } catch (e) {
    if (!signal.aborted) fill(problem, fail(e));
    return;
  }
  fill(list, servers.length ? servers.map(server) : h("li.empty", null, icon("M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6z"), h("h2", null, t("none.title")), h("p", null, parts(t("none.text"), { command: h("code", null, "rootbound verify -- COMMAND") }))));
}
