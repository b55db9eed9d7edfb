// What a person does not see and a model reads. It says what internal/unseen says; a test compares the two.

const kinds = ["", "control", "direction", "no width", "tag"];

function kind(r) {
  if (r < 0x20) return r === 0x0a || r === 0x09 || r === 0x0d || r === 0x0c ? 0 : 1;
  if (r < 0x7f) return 0;
  if (r <= 0x9f) return 1;
  if (r < 0x180e) return 0;
  if (r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069) return 2;
  if (r >= 0x200b && r <= 0x200d || r >= 0x2060 && r <= 0x2065 || r >= 0x206a && r <= 0x206f ||
    r === 0xfeff || r === 0x180e || r === 0x3164 || r === 0xffa0) return 3;
  return r >= 0xe0000 && r <= 0xe007f ? 4 : 0;
}

const selector = (r) => r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef;

const joins = (r) => r >= 0x300 && r !== 0xfffd && !(r >= 0xd800 && r <= 0xdfff) && kind(r) === 0 || selector(r);

// flagTags is the length of the tags that spell the region of a flag, with the one that ends them, else 0.
function flagTags(s, at) {
  for (let i = at, n = 0; n <= 7; n++, i += 2) {
    const r = s.codePointAt(i);
    if (r === 0xe007f && n > 0) return i + 2 - at;
    if (r === undefined || r < 0xe0030 || r > 0xe007a) return 0;
  }
  return 0;
}

// find yields [start, end, code point, kind] of what is not seen, in order.
export function* find(s) {
  let before = -1, flag = 0;
  for (let i = 0; i < s.length;) {
    const r = s.codePointAt(i), size = r > 0xffff ? 2 : 1;
    let k = kind(r);
    if (r === 0x1f3f4) flag = i + size + flagTags(s, i + size);
    else if (k === 4 && i < flag || i === 0 && r === 0xfeff) k = 0;
    else if (k === 3 && (r === 0x200c || r === 0x200d) && joins(before)) {
      const next = s.codePointAt(i + size);
      if (next !== undefined && joins(next)) k = 0;
    } else if (selector(r) && selector(before)) k = 4;
    if (k) yield [i, i + size, r, kinds[k]];
    before = r;
    i += size;
  }
}

// any reports whether there is something in s that is not seen.
export const any = (s) => !find(s).next().done;

export const name = (r) => "U+" + r.toString(16).toUpperCase().padStart(4, "0");

// visible is s with each such character written out, for where there is text and nothing else: a title, a label.
export function visible(s) {
  let out = "", at = 0;
  for (const [start, end, r] of find(s)) {
    out += s.slice(at, start) + "⟨" + name(r) + "⟩";
    at = end;
  }
  return out + s.slice(at);
}
