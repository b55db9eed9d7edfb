// A field for a directory, which completes it, finds work trees, and says why something is no root.

import { h, fill, said, path } from "./dom.js";
import { get } from "./api.js";
import { parts, texts } from "./text.js";
import table from "./picker.text.js";

const t = texts(table);

// picker returns the field, with its input. Reason says in the person's language why something is refused.
export function picker(signal, { id, label, reason }) {
  const list = h("ul.options", { id: id + "-list", role: "listbox", "aria-label": t("list"), hidden: true });
  const hint = h("div.hint", { id: id + "-hint", "aria-live": "polite" });
  const input = h("input", {
    id, role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": id + "-list", "aria-describedby": id + "-hint", required: true,
    autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: "~/", maxlength: 4096,
  });
  const element = h("div.field.picker", null, h("label", { for: id }, label), h("div.box", null, input, list), hint);
  let found = [], at = -1, timer = 0, number = 0;

  function mark(i) {
    at = i;
    for (const [n, o] of [...list.querySelectorAll("[role=option]")].entries()) {
      o.setAttribute("aria-selected", n === i ? "true" : "false");
      if (n === i) o.scrollIntoView({ block: "nearest" });
    }
    if (i < 0) input.removeAttribute("aria-activedescendant"); else input.setAttribute("aria-activedescendant", id + "-" + i);
  }

  function show(open) {
    open &&= found.length > 0;
    list.hidden = !open;
    input.setAttribute("aria-expanded", String(open));
    if (!open) mark(-1);
  }

  // choose takes an option over, and goes on with what is in it.
  function choose(i) {
    input.value = found[i].path + "/";
    input.focus();
    ask(0);
  }

  function ask(wait = 120) {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++number;
      try {
        const got = await get("/api/roots/pick", { path: input.value }, signal);
        if (mine !== number) return;
        found = got.list;
        fill(list, found.map((p, i) => h("li", { id: id + "-" + i, role: "option", "aria-selected": "false", on: { mousedown: (e) => { e.preventDefault(); choose(i); } } },
          h("span", null, said(p.path.slice(p.path.replace(/[/\\]+$/, "").search(/[^/\\]*$/)), 120)), p.work && h("span.tag.good", null, t("work")), p.broad && h("span.tag.bad", null, t("broad")))),
        got.more && h("li.note", { role: "presentation" }, t("more")));
        show(document.activeElement === input);
        fill(hint, !input.value ? h("p.note", null, t("begin"))
          : got.path ? [h("p.note", null, got.work ? t("is.work") : t("is.one"), " ", path(got.path, 200)),
            got.inside && h("p.note", null, parts(t("inside"), { path: path(got.inside, 200) }), " ", h("button.small", { type: "button", on: { click: () => { input.value = got.inside; input.focus(); ask(0); } } }, t("inside.take")))]
            : h("p" + (got.code === "missing" ? ".note" : ".refused"), null, said(reason(got) ?? "", 300)));
      } catch (e) {
        if (!signal.aborted && mine === number) fill(hint, h("p.refused", null, said(e.message, 300)));
      }
    }, wait);
  }

  input.addEventListener("input", () => ask());
  input.addEventListener("focus", () => ask(0));
  input.addEventListener("blur", () => show(false));
  input.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      if (list.hidden) return show(true);
      mark(e.key === "ArrowDown" ? (at + 1) % found.length : (at <= 0 ? found.length : at) - 1);
    } else if (e.key === "Enter" && !list.hidden && at >= 0) {
      e.preventDefault();
      choose(at);
    } else if (e.key === "Escape" && !list.hidden) {
      e.preventDefault();
      e.stopPropagation();
      show(false);
    }
  });
  return { element, input };
}
