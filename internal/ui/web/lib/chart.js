// Calls over time, by what was decided, and how long they took. Drawn as SVG; the same is there as a table.

import { h, fill } from "./dom.js";
import { locale, texts } from "./text.js";
import table from "./chart.text.js";

const t = texts(table);
const kinds = ["denied", "allowed", "other"]; // from the bottom
const W = 600, H = 96, L = 60;

const number = (n) => n.toLocaleString(locale);
const ms = (v) => v < 1000 ? t("ms", { n: v.toLocaleString(locale, { maximumSignificantDigits: 2 }) }) : t("s", { n: (v / 1000).toLocaleString(locale, { maximumSignificantDigits: 2 }) });

// chart fills a place; choose is called with the times of a part that was chosen.
export function chart(place, { step, slots }, choose) {
  const long = step >= 86400, sameDay = new Date(slots[0].begin).toDateString() === new Date(slots[slots.length - 1].begin).toDateString();
  const when = (at) => new Date(at).toLocaleString(locale, long ? { day: "numeric", month: "short" } : { ...sameDay ? {} : { day: "numeric", month: "short" }, hour: "2-digit", minute: "2-digit", ...step < 60 ? { second: "2-digit" } : {} });
  const until = (s) => new Date(new Date(s.begin).getTime() + step * 1000).toISOString();
  const sum = (s) => s.denied + s.allowed + s.other;
  const most = Math.max(1, ...slots.map(sum)), slowest = Math.max(...slots.map((s) => s.took[2]));
  const total = (k) => slots.reduce((n, s) => n + s[k], 0);
  const width = W / slots.length, gap = Math.min(1, width * .15);

  const bars = h("svg.bars", { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", role: "img", "aria-label": t("label", { denied: total("denied"), allowed: total("allowed"), other: total("other"), from: when(slots[0].begin), to: when(until(slots[slots.length - 1])) }) });
  slots.forEach((s, i) => {
    let y = H;
    for (const k of kinds) {
      // What is there at all is seen, however little it is.
      const high = s[k] && Math.max(2, s[k] / most * (H - 6));
      if (high) bars.append(h("rect." + k, { x: i * width + gap / 2, y: y -= high, width: width - gap, height: high }));
    }
    if (s.asked) bars.append(h("rect.asked", { x: i * width + gap / 2, y: 0, width: width - gap, height: 3 }));
  });
  const mark = h("rect.chosen", { x: 0, y: 0, width, height: H, hidden: true });
  mark.setAttribute("visibility", "hidden");
  bars.append(mark);

  const low = Math.max(.1, Math.min(...slots.filter((s) => s.ended).map((s) => s.took[0])) / 1.5), scale = (v) => L - 2 - (L - 4) * Math.log(Math.max(v, low) / low) / Math.log(Math.max(slowest, low * 2) / low);
  const lines = h("svg.lines", { viewBox: `0 0 ${W} ${L}`, preserveAspectRatio: "none", role: "img", "aria-label": t("label.took", { most: ms(slowest) }) });
  [2, 1, 0].forEach((p) => {
    let d = "", on = false;
    slots.forEach((s, i) => {
      if (!s.ended) { on = false; return; }
      const y = scale(s.took[p]).toFixed(1), x = i * width;
      d += (on ? "L" : "M") + (x + gap).toFixed(1) + " " + y + "L" + (x + width - gap).toFixed(1) + " " + y;
      on = true;
    });
    if (d) lines.append(h("path.p" + p, { d }));
  });

  const say = (s) => [h("strong", null, when(s.begin)), " ", t("slot", { allowed: s.allowed, denied: s.denied, other: s.other }), s.asked > 0 && ", " + t("asked.n", { n: s.asked }), s.ended > 0 && " · " + t("slot.took", { p50: ms(s.took[0]), p99: ms(s.took[2]) })];
  const read = h("p.readout.note", null, t("hint"));
  const at = (e) => { const b = bars.getBoundingClientRect(); return Math.min(slots.length - 1, Math.max(0, Math.floor((e.clientX - b.left) / b.width * slots.length))); };
  const plot = h("div.plot", { on: {
    pointermove: (e) => { const i = at(e); fill(read, say(slots[i])); mark.setAttribute("x", i * width); mark.setAttribute("visibility", "visible"); },
    pointerleave: () => { fill(read, t("hint")); mark.setAttribute("visibility", "hidden"); },
    click: (e) => { const s = slots[at(e)]; if (slots.length > 1) choose(new Date(s.begin).toISOString(), until(s)); },
  } }, bars, slowest > 0 && lines);

  const key = (cls, label) => h("span.key." + cls, null, label);
  const open = place.querySelector("details")?.open;
  fill(place,
    h("div.colours", null, h("h2", null, t("title")), ["allowed", "denied", "other"].filter((k) => total(k)).map((k) => key(k, t("col." + k) + " " + number(total(k)))), total("asked") > 0 && key("asked", t("col.asked") + " " + number(total("asked")))),
    h("div.axes", null, h("span.top", null, number(most)), plot, slowest > 0 && h("span.slow", null, ms(slowest)),
      h("div.ends", null, h("span", null, when(slots[0].begin)), h("span", null, when(until(slots[slots.length - 1]))))),
    slowest > 0 && h("div.colours.took", null, h("h2", null, t("took")), [0, 1, 2].map((p) => key("p" + p, t("col.p" + p)))),
    read,
    h("details", { open }, h("summary", null, t("table")), h("div.rows", { tabindex: "0", role: "group", "aria-label": t("title") }, h("table", null,
      h("thead", null, h("tr", null, ["begin", "allowed", "denied", "other", "asked", "p0", "p1", "p2"].map((k) => h("th", { scope: "col" }, t("col." + k))))),
      h("tbody", null, slots.filter((s) => sum(s) || s.asked || s.ended).map((s) => h("tr", null, h("th", { scope: "row" }, when(s.begin)), [s.allowed, s.denied, s.other, s.asked].map((n) => h("td", null, number(n))), s.took.map((v) => h("td", null, s.ended ? ms(v) : "–")))))))));
}
