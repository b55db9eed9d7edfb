import { h, fill } from "../lib/dom.js";
import { texts } from "../lib/text.js";
import table from "./questions.text.js";

const t = texts(table);

export function mount(main) {
  fill(main, h("h1", null, t("title")));
}
