// What guards say by a code, in the person's language. Each is null for a code that is not known here, as of another version: then
// the guard's own sentence is shown.

import { texts } from "./text.js";
import table from "./codes.text.js";

const t = texts(table);
const known = (key, text) => key in table ? text() : null;

// why is why a person is asked, because of the arguments names.
export const why = (code, names) => known("why." + code, () => t("why." + code, { names }));

// from is who says what a tool does, source where directories come from, holds why some hold and others do not, root why one is
// not there, and refused why a call was refused.
export const from = (code) => known("from." + code, () => t("from." + code));
export const source = (code) => known("source." + code, () => t("source." + code));
export const holds = (code) => known("holds." + code, () => t("holds." + code));
export const root = (code) => known("root." + code, () => t("root." + code));
export const refused = (code) => known("refused." + code, () => t("refused." + code));

// found is why a string counts as a path, or does not.
export const found = (code) => known("found." + code, () => t("found." + code));

// access is what may be done in a directory.
export const access = (code) => t("access." + code);
