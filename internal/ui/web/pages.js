// The sections of the page, in the order of the navigation. The title of each is the text nav.NAME of shell.text.js.
export const pages = [
  { name: "now", icon: "M3 12h4l3-8 4 16 3-8h4", load: () => import("./pages/now.js") },
  { name: "questions", icon: "M4 5h16v11H9l-5 4zM12 8v3M12 13v.01", load: () => import("./pages/questions.js") },
];
