// What the page asks of its server. The key is kept for this origin: other ports of this host do not see it.

let key = localStorage.getItem("key") ?? "";

// Problem is what was refused: code is a word of ours, or "" for a text of the program or of a guard.
export class Problem extends Error {
  constructor(status, code, text) {
    super(text);
    Object.assign(this, { status, code });
  }
}

async function call(method, path, body, signal) {
  let answer;
  try {
    answer = await fetch(path, {
      method, signal, credentials: "same-origin", redirect: "error", referrerPolicy: "no-referrer",
      headers: { "Rootbound-Key": key, ...body === undefined ? {} : { "Content-Type": "application/json" } },
      body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
    });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Problem(0, "away", String(e));
  }
  if (answer.ok) return answer;
  const { code = "", text = answer.statusText } = await answer.json().catch(() => ({}));
  throw new Problem(answer.status, code, text);
}

// get asks for a value; query has its parameters.
export async function get(path, query, signal) {
  const q = new URLSearchParams(Object.entries(query ?? {}).filter(([, v]) => v !== undefined && v !== ""));
  return (await call("GET", q.size ? path + "?" + q : path, undefined, signal)).json();
}

// post has something done. A body that is text is sent as it is: it is JSON already.
export async function post(path, body = {}, signal) {
  return (await call("POST", path, body, signal)).json();
}

// link returns an address of path, with its query, that the browser itself may fetch, once.
export async function link(path) {
  return (await post("/api/ticket", { path })).href;
}

// open exchanges the token of a link.
export async function open(token) {
  ({ key } = await post("/api/open", { token }));
  localStorage.setItem("key", key);
}

export const stream = (signal) => call("GET", "/api/events", undefined, signal);
