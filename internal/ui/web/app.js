// The frame of the page: who is let in, the navigation, the settings, and the one stream of events.

import { h, fill, icon } from "./lib/dom.js";
import { open } from "./lib/api.js";
import { all, follow, isReady, run } from "./lib/events.js";
import { visible } from "./lib/unseen.js";
import { choose, language, languages, parts, texts } from "./lib/text.js";
import { keysOn, setKeys, theme, setTheme, notifies, setNotifies, canNotify } from "./lib/settings.js";
import { pages } from "./pages.js";
import table from "./shell.text.js";

const t = texts(table);
const main = document.getElementById("main");
const nav = document.getElementById("nav");
const always = new AbortController().signal;
let left = new AbortController(); // of the section that is shown
document.documentElement.lang = language === "zh" ? "zh-CN" : "en";

function navigation() {
  nav.setAttribute("aria-label", t("nav"));
  const skip = document.getElementById("skip");
  skip.textContent = t("skip");
  skip.addEventListener("click", (e) => { e.preventDefault(); main.focus(); });
  fill(nav, pages.map((p) => h("a", { href: "#/" + p.name, data: { page: p.name } }, icon(p.icon), h("span", null, t("nav." + p.name)),
    h("span.badge", { hidden: true }))));
}

const command = () => h("code", null, "rootbound ui");

// closed says that nobody is let in without a link.
function closed(code) {
  left.abort(); // a section that is still loading would take the place of what is said here
  document.body.classList.add("closed");
  document.title = "Rootbound";
  nav.hidden = true;
  fill(main, h("section.empty", null, icon("M6 11V8a6 6 0 0 1 12 0v3M5 11h14v10H5zM12 15v2"), h("h1", null, t("closed.title")),
    code === "link" && h("p.warn", null, parts(t("closed.used"), { command: command() })),
    h("p", null, parts(t("closed.text"), { command: command() }))));
}

async function show() {
  if (document.body.classList.contains("closed")) return;
  const name = location.hash.slice(2).split(/[/?]/)[0];
  const page = pages.find((p) => p.name === name);
  if (!page) {
    location.replace("#/now");
    return;
  }
  left.abort();
  left = new AbortController();
  const { signal } = left;
  for (const a of nav.children) {
    if (a.dataset.page === name) a.setAttribute("aria-current", "page"); else a.removeAttribute("aria-current");
  }
  heading();
  try {
    const module = await page.load();
    if (signal.aborted) return;
    fill(main);
    main.className = "page-" + name;
    await module.mount(main, signal);
  } catch (e) {
    if (signal.aborted) return;
    console.error(e);
    fill(main, h("p.warn", null, t("failed", { text: e.message })));
  }
}

// heading keeps the title and the number of questions in the navigation.
function heading() {
  const n = all("question").size;
  const name = nav.querySelector("[aria-current]")?.dataset.page;
  document.title = (n ? "(" + n + ") " : "") + (name ? t("nav." + name) + " – " : "") + "Rootbound";
  const badge = nav.querySelector("[data-page=questions] .badge");
  if (!badge) return;
  badge.hidden = !n;
  fill(badge, n > 999 ? "999+" : n);
  badge.title = t("nav.waiting", { n });
}

let told = null; // the notification that is shown; a newer one takes its place

// notify tells of a question while nobody looks at the tab.
function notify(q) {
  const n = all("question").size;
  const body = [q.server, q.place, n > 1 && t("nav.waiting", { n })].filter(Boolean).map((s) => visible(s).slice(0, 120)).join("\n");
  told = new Notification(visible(q.tool).slice(0, 80), { body, tag: "rootbound", lang: document.documentElement.lang });
  told.onclick = () => { focus(); location.hash = "#/questions/" + q.id; };
}

function settings() {
  const option = (value, label, chosen) => h("option", { value, selected: value === chosen }, label);
  const notice = h("p.note", { hidden: true }, t("notify.denied"));
  const dialog = h("dialog", { "aria-labelledby": "settings-title" },
    h("h2", { id: "settings-title" }, t("settings")),
    h("label.row", null, h("span", null, t("language")), h("select", { on: { change: (e) => choose(e.target.value) } },
      Object.entries(languages).map(([k, v]) => option(k, v, language)))),
    h("label.row", null, h("span", null, t("theme")), h("select", { on: { change: (e) => setTheme(e.target.value) } },
      ["system", "light", "dark"].map((k) => option(k, t("theme." + k), theme())))),
    h("label.row", null, h("span", null, t("keys")), h("input", { type: "checkbox", checked: keysOn(), on: { change: (e) => setKeys(e.target.checked) } })),
    canNotify && h("label.row", null, h("span", null, t("notify")), h("input", {
      type: "checkbox", checked: notifies(), on: {
        change: async (e) => { e.target.checked = await setNotifies(e.target.checked); notice.hidden = Notification.permission !== "denied"; },
      },
    })), notice,
    h("form", { method: "dialog" }, h("button", null, t("close"))));
  document.body.append(dialog);
  fill(document.getElementById("tools"), h("button.quiet", { type: "button", "aria-label": t("settings"), title: t("settings"), on: { click: () => dialog.showModal() } },
    icon("M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4")));
}

const broken = h("div.broken", { role: "alert", hidden: true }, t("away"));

// alone reports whether nothing stands between the page and us. A service worker is none of ours, but of who was at this port
// before: it goes, and the page is loaded anew without it.
async function alone() {
  const workers = navigator.serviceWorker;
  if (!workers) return true;
  for (const r of await workers.getRegistrations().catch(() => [])) await r.unregister().catch(() => false);
  if (!workers.controller) return true;
  if (performance.getEntriesByType("navigation")[0]?.type === "reload") closed(); // it is there again
  else location.reload();
  return false;
}

async function begin() {
  setTheme(theme());
  navigation();
  if (!await alone()) return;
  settings();
  document.body.prepend(broken);
  const token = /^#open=([\w-]+)$/.exec(location.hash)?.[1];
  if (token) {
    history.replaceState(null, "", "/");
    try {
      await open(token);
    } catch (e) {
      if (!localStorage.getItem("key") || e.code !== "link") return closed(e.code);
    }
  }
  const known = new Set();
  follow("question", always, (key, q) => {
    if (q && !known.has(key) && isReady() && document.hidden && notifies()) notify(q);
    if (q) known.add(key); else known.delete(key);
    if (!all("question").size) told?.close?.();
  });
  follow("changes", always, heading);
  follow("ready", always, () => { broken.hidden = true; heading(); });
  follow("away", always, (code) => { if (code === "session") closed(); else broken.hidden = false; });
  run();
  addEventListener("hashchange", show);
  if (!location.hash.startsWith("#/")) history.replaceState(null, "", "#/now");
  await show();
}

begin();
