// What a person chose for this browser.

const get = (k) => localStorage.getItem(k);

export const theme = () => get("theme") ?? "system";

export function setTheme(name) {
  localStorage.setItem("theme", name);
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}

export const keysOn = () => get("keys") !== "off";
export const setKeys = (on) => localStorage.setItem("keys", on ? "on" : "off");

export const canNotify = "Notification" in globalThis;
export const notifies = () => canNotify && get("notify") === "on" && Notification.permission === "granted";

// setNotifies asks the browser where that is needed, and returns whether it lets us.
export async function setNotifies(on) {
  localStorage.setItem("notify", on ? "on" : "off");
  return on && await Notification.requestPermission() === "granted";
}
