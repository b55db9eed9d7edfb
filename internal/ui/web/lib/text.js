// Texts in the language of the person. A table has each of them by its key, in English and in Chinese. {name} is filled in,
// and where there is a | the first form is for one ({n} is 1) and the second for any other number.

import { visible } from "./unseen.js";

export const languages = { en: "English", zh: "中文" };

const kept = localStorage.getItem("language");
export const language = kept in languages ? kept : navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";

export const locale = language === "zh" ? "zh-CN" : "en-GB";

export function choose(lang) {
  localStorage.setItem("language", lang);
  location.reload();
}

const at = Object.keys(languages).indexOf(language);

// texts returns what looks up a key of tables.
export function texts(...tables) {
  const table = Object.assign({}, ...tables);
  return (key, values) => {
    let text = table[key]?.[at];
    if (text === undefined) { // a word of another version, behind a dot: one guard does not take the page from the others
      const dot = key.indexOf(".");
      if (dot < 0) throw new Error("bug: no text for " + key);
      return visible(key.slice(dot + 1, dot + 41));
    }
    if (values && "n" in values && text.includes("|")) text = text.split("|")[Number(values.n) === 1 ? 0 : 1];
    return text.replace(/\{(\w+)\}/g, (all, k) => !values || !(k in values) ? all : typeof values[k] === "number" ? values[k].toLocaleString(locale) : String(values[k]));
  };
}

// parts is a text around elements: what is filled in for {name} may be a node.
export function parts(text, values) {
  return text.split(/(\{\w+\})/).map((p) => /^\{\w+\}$/.test(p) ? values[p.slice(1, -1)] : p);
}
