// Elements, made of text. Nothing else of the page makes any.

import { locale } from "./text.js";
import { find, name, visible } from "./unseen.js";

const svgNames = new Set(["svg", "path", "circle", "line", "rect", "polyline", "polygon", "g", "text", "title"]);

// h makes an element. Of its properties, "on" has listeners, "data" has data-, and a false or missing value is left out;
// whatever a child is that is no element is text, in which what nobody sees is shown.
export function h(tag, props, ...children) {
  const [type, ...classes] = tag.split(".");
  const e = svgNames.has(type) && type !== "title" ? document.createElementNS("http://www.w3.org/2000/svg", type) : document.createElement(type || "div");
  if (classes.length) e.classList.add(...classes);
  for (const [k, v] of Object.entries(props ?? {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k === "on") for (const [type, f] of Object.entries(v)) e.addEventListener(type, f);
    else if (k === "data") for (const [n, d] of Object.entries(v)) e.dataset[n] = d;
    else if (k === "value" || k === "checked" || k === "disabled" || k === "hidden" || k === "selected" || k === "open" || k === "indeterminate") e[k] = v;
    else if (k === "class") e.classList.add(...v.split(" ").filter(Boolean));
    else if (/^on/i.test(k) || k === "style") throw new Error("bug: the attribute " + k);
    else e.setAttribute(k, v === true ? "" : visible(String(v)));
  }
  put(e, ...children);
  return e;
}

// put adds children to an element.
export function put(e, ...children) {
  for (const c of children.flat(Infinity)) {
    if (c === undefined || c === null || c === false) continue;
    if (c instanceof Node) e.append(c);
    else e.append(...shown(String(c)));
  }
  return e;
}

// fill makes these the only children.
export function fill(e, ...children) {
  e.replaceChildren();
  return put(e, ...children);
}

// shown is text as nodes, where what nobody sees is marked.
function shown(s) {
  const nodes = [];
  let at = 0;
  for (const [start, end, r, kind] of find(s)) {
    if (start > at) nodes.push(document.createTextNode(s.slice(at, start)));
    const m = document.createElement("mark");
    m.className = "unseen";
    m.title = kind;
    m.textContent = name(r);
    nodes.push(m);
    at = end;
  }
  if (at < s.length || !nodes.length) nodes.push(document.createTextNode(s.slice(at)));
  return nodes;
}

// said is what a peer said, in one line: its direction does not reach beyond it, its line ends are shown, what is too long is
// cut, and a path in it goes on in the next line between its parts, and never right behind where it begins.
export function said(s, max = 400) {
  s = String(s ?? "");
  let more = 0;
  if (s.length > max) {
    const cut = s.charCodeAt(max - 1) >> 10 === 0x36 ? max - 1 : max;
    more = s.length - cut;
    s = s.slice(0, cut);
  }
  const e = h("bdi.said", null, s.replace(/\r\n|\n/g, "⏎").replace(/\r|\f/g, "␍"));
  for (const n of [...e.childNodes]) {
    if (n.nodeType !== Node.TEXT_NODE) continue;
    const parts = n.data.split(/(?<=[\p{L}\p{N})\]_-][/\\])/u);
    if (parts.length > 1) n.replaceWith(...parts.flatMap((p, i) => i ? [document.createElement("wbr"), p] : [p]));
  }
  if (more) e.append(h("span.more", null, "… +" + more.toLocaleString(locale)));
  return e;
}

// path is where something is.
export function path(s, max = 400) {
  const e = said(s, max);
  e.classList.add("path");
  return e;
}

// icon draws a path of 24 by 24.
export function icon(d, label) {
  return h("svg.icon", { viewBox: "0 0 24 24", "aria-hidden": label ? null : "true", role: label ? "img" : null, "aria-label": label }, h("path", { d }));
}
