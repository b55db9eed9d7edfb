// A unified diff, inline or side by side.

import { h } from "./dom.js";

// read cuts a diff into lines: {kind: "same" | "added" | "removed" | "hunk" | "note", text, old, new}.
export function read(text) {
  const lines = [];
  let from = 0, to = 0, begun = false;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const at = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (at) {
      [from, to, begun] = [Number(at[1]), Number(at[2]), true];
      lines.push({ kind: "hunk", text: line });
    } else if (!begun) {
      if (!line.startsWith("--- ") && !line.startsWith("+++ ")) lines.push({ kind: "note", text: line });
    } else if (line.startsWith("+")) lines.push({ kind: "added", text: line.slice(1), new: to++ });
    else if (line.startsWith("-")) lines.push({ kind: "removed", text: line.slice(1), old: from++ });
    else if (line.startsWith(" ")) lines.push({ kind: "same", text: line.slice(1), old: from++, new: to++ });
    else lines.push({ kind: "note", text: line });
  }
  return lines;
}

const longest = 2000, most = 2000;

// shown is a line's text: it does not turn what is beside it, and its end is where it looks to be.
function shown(text) {
  const cut = text.length > longest ? text.length - longest : 0;
  return h("bdi", null, (cut ? text.slice(0, longest) : text).replace(/\r/g, "␍").replace(/\f/g, "␌"), cut > 0 && h("span.more", null, " … +" + cut));
}

const sign = { added: "+", removed: "−", same: " " };

// inline is one column.
export function inline(lines) {
  return h("div.diff", null, lines.slice(0, most).map((l) => h("div.line." + l.kind, null,
    h("span.no", null, l.old ?? ""), h("span.no", null, l.new ?? ""), h("span.sign", null, sign[l.kind] ?? ""), h("span.text", null, shown(l.text)))),
  lines.length > most && h("div.line.note", null, "… +" + (lines.length - most)));
}

// beside is two columns: what is taken out beside what comes in its place.
export function beside(lines) {
  const rows = [];
  let out = [], into = [];
  const flush = () => {
    for (let i = 0; i < Math.max(out.length, into.length); i++) rows.push([out[i], into[i]]);
    out = []; into = [];
  };
  for (const l of lines.slice(0, most)) {
    if (l.kind === "removed") out.push(l);
    else if (l.kind === "added") into.push(l);
    else { flush(); rows.push(l.kind === "same" ? [l, l] : [l]); }
  }
  flush();
  const cell = (l, no) => h("div.line." + (l?.kind ?? "none"), null, h("span.no", null, l ? no : ""), h("span.sign", null, sign[l?.kind] ?? ""),
    h("span.text", null, l ? shown(l.text) : ""));
  return h("div.diff.beside", null, rows.map((r) => r.length === 1 ? h("div.line.whole." + r[0].kind, null, h("span.text", null, shown(r[0].text)))
    : [cell(r[0], r[0]?.old), cell(r[1], r[1]?.new)]),
  lines.length > most && h("div.line.whole.note", null, "… +" + (lines.length - most)));
}
