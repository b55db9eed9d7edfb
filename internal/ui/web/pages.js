// The sections of the page, in the order of the navigation. The title of each is the text nav.NAME of shell.text.js.
export const pages = [
  { name: "now", icon: "M3 12h4l3-8 4 16 3-8h4", load: () => import("./pages/now.js") },
  { name: "questions", icon: "M4 5h16v11H9l-5 4zM12 8v3M12 13v.01", load: () => import("./pages/questions.js") },
  { name: "roots", icon: "M3 7a2 2 0 0 1 2-2h4l2 2h8a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z", load: () => import("./pages/roots.js") },
  { name: "grants", icon: "M12 3l7 3v5c0 4.5-3 8-7 10-4-2-7-5.5-7-10V6zM9 12l2 2 4-4", load: () => import("./pages/grants.js") },
  { name: "log", icon: "M5 4h14v16H5zM8 8h8M8 12h8M8 16h5", load: () => import("./pages/log.js") },
  { name: "verify", icon: "M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6zM8.5 12l2.5 2.5 4.5-5", load: () => import("./pages/verify.js") },
];
