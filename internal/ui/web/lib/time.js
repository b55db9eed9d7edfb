// Times, as a person reads them.

import { locale, texts } from "./text.js";
import table from "./time.text.js";

const t = texts(table);

// span is how long something takes, in milliseconds: 4:05, or 1 h 20 min.
export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 3600) return Math.floor(s / 60) + ":" + String(s % 60).padStart(2, "0");
  return t("hours", { h: Math.floor(s / 3600), m: Math.floor(s % 3600 / 60) });
}

// clock is a time of day, with the day where it is another one.
export function clock(at) {
  const d = new Date(at), today = new Date();
  const same = d.toDateString() === today.toDateString();
  return d.toLocaleString(locale, same ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

// ago is how long ago something was.
export function ago(at) {
  const s = Math.round((Date.now() - new Date(at)) / 1000);
  if (s < 10) return t("ago.now");
  if (s < 60) return t("ago.seconds", { n: s });
  if (s < 3600) return t("ago.minutes", { n: Math.floor(s / 60) });
  if (s < 86400) return t("ago.hours", { n: Math.floor(s / 3600) });
  return clock(at);
}

// size is a number of bytes.
export function size(n) {
  if (n < 1024) return t("bytes", { n });
  for (const [unit, by] of [["KiB", 2 ** 10], ["MiB", 2 ** 20], ["GiB", 2 ** 30]]) {
    if (n < by * 1024 || unit === "GiB") return (n / by).toLocaleString(locale, { maximumFractionDigits: 1 }) + " " + unit;
  }
}

// every calls f now and then until signal is aborted.
export function every(ms, signal, f) {
  const timer = setInterval(f, ms);
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}
