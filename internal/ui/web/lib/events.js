// What the server tells without being asked. It keeps values by kind and key: follow hears of what is there, of every change
// (the value is null for what is gone), and once all of it was told.

import { stream } from "./api.js";

const kept = new Map(); // kind → key → value
const followers = new Map(); // kind → set of functions
let ready = false;

// all are the values of a kind, by key.
export const all = (kind) => kept.get(kind) ?? new Map();

export const isReady = () => ready;

// follow calls f(key, value) for each change of a kind until signal is aborted. Kinds of the page's own are "ready", "lost"
// (some of what was said once was left out), "away" (the connection broke; the text says why) and "changes", which comes once
// after each batch of changes.
export function follow(kind, signal, f) {
  if (signal.aborted) return;
  if (!followers.has(kind)) followers.set(kind, new Set());
  followers.get(kind).add(f);
  signal.addEventListener("abort", () => followers.get(kind).delete(f), { once: true });
}

export function tell(kind, key, value) {
  for (const f of [...followers.get(kind) ?? []]) f(key, value);
}

const once = new Set(["ready", "lost", "log", "said"]);

function take(kind, key, value, fresh) {
  if (kind === "ready") {
    for (const [k, values] of fresh) { // a new connection tells everything: what it did not tell is gone
      for (const old of [...kept.get(k)?.keys() ?? []]) if (!values.has(old)) { kept.get(k).delete(old); tell(k, old, null); }
    }
    for (const [k, values] of kept) if (!fresh.has(k)) for (const old of [...values.keys()]) { values.delete(old); tell(k, old, null); }
    ready = true;
  } else if (!once.has(kind)) {
    if (!kept.has(kind)) kept.set(kind, new Map());
    if (value === null) kept.get(kind).delete(key);
    else kept.get(kind).set(key, value);
    if (fresh) {
      if (!fresh.has(kind)) fresh.set(kind, new Set());
      if (value === null) fresh.get(kind).delete(key); else fresh.get(kind).add(key);
    }
  }
  tell(kind, key, value);
}

// run follows the stream for as long as the page is there.
export async function run() {
  for (let wait = 250; ; wait = Math.min(wait * 2, 4000)) {
    let fresh = new Map();
    try {
      const body = (await stream()).body.pipeThrough(new TextDecoderStream());
      let rest = [], kind = "";
      for await (const piece of body) {
        rest.push(piece);
        if (!piece.includes("\n")) continue;
        const lines = rest.join("").split("\n");
        rest = [lines.pop()];
        let any = false;
        for (const line of lines) {
          if (line.startsWith("event: ")) kind = line.slice(7);
          else if (line.startsWith("data: ")) {
            const { key, value } = JSON.parse(line.slice(6));
            take(kind, key, value, fresh);
            any = true;
            if (kind === "ready") { fresh = null; wait = 250; }
          }
        }
        if (any) tell("changes");
      }
      tell("away", "", "");
    } catch (e) {
      tell("away", e.code ?? "", e.message);
      if (e.status === 401 || e.status === 403) return;
    }
    ready = false;
    await new Promise((r) => setTimeout(r, wait));
  }
}
