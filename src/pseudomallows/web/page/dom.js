// Small helpers. Text from the service is only ever text: nothing here reads HTML.

const SVG = "http://www.w3.org/2000/svg";
const LONGEST = 400; // characters of a name, even where it is given in full
const LEAST_SENTENCE = 6; // letters: fewer in capitals may be a code

export const byId = (id) => document.getElementById(id);

// An element; `attributes` are set as they are, but "text" is its text, and "on" its listeners.
export function make(kind, attributes = {}, ...children) {
  return filled(document.createElement(kind), attributes, children);
}

export function draw(kind, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, kind), attributes, children);
}

function filled(element, { text, on = {}, ...attributes }, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  if (text !== undefined) element.textContent = text;
  for (const [kind, listener] of Object.entries(on)) element.addEventListener(kind, listener);
  element.append(...children);
  return element;
}

// Text from a stranger on one line: no control characters, no marks of direction, not long.
export function plain(text, most = LONGEST) {
  const words = String(text)
    .slice(0, 2 * LONGEST)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ")
    .replace(/(?![\u200c\u200d])\p{Cf}/gu, "")
    .replace(/\p{Cs}/gu, "\ufffd")
    .replace(/\s+/g, " ")
    .trim();
  const letters = Array.from(words);
  if (letters.length > most) return letters.slice(0, most - 1).join("").trimEnd() + "…";
  return words || "(no name)";
}

// A name as people write it: capitals throughout become a sentence, as in the report; other names stay.
export function readable(text, most = LONGEST) {
  const name = String(text).slice(0, 2 * LONGEST);
  const nLetters = (name.match(/\p{L}/gu) ?? []).length;
  if (nLetters < LEAST_SENTENCE || name !== name.toUpperCase() || name === name.toLowerCase()) return plain(name, most);
  const small = name.toLowerCase().replace(/(?<![\p{L}\p{N}_])[a-z](?=-)/gu, (letter) => letter.toUpperCase());
  const first = /^(\P{L}*)(?<!\p{Nd})(\p{L})/u; // not of "3D"
  return plain(small.replace(first, (_, before, letter) => before + letter.toUpperCase()), most);
}

// A name to look at; if it is changed or cut short, the whole is in its title.
export function named(text, most = 60, attributes = {}) {
  const short = readable(text, most), full = plain(text);
  return make("bdi", { text: short, title: short === full ? null : full, ...attributes });
}

// A share in per cent: with a decimal if it is small, and never rounded to all or nothing.
export function percent(share) {
  if (share > 0 && share < 0.0005) return "under 0.1\u00a0%";
  if (share >= 0.995 && share < 1 - 1e-9) return "over 99\u00a0%";
  return `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)}\u00a0%`;
}

export const count = (number) => Number(number).toLocaleString("en");

export function many(number, one, more = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : more}`;
}

// A bar as long as `share` of its width.
export function bar(share) {
  const inner = make("span", { class: "fill" });
  setBar(inner, share);
  return make("span", { class: "track", "aria-hidden": "true" }, inner);
}

export function setBar(inner, share) {
  inner.style.setProperty("--share", String(Math.min(Math.max(share, 0), 1)));
}

// The end of a scale that holds `most`: a round number.
export function scaleTop(most) {
  return [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8].find((top) => most <= top) ?? 1;
}

// Words of trouble in `place`, with a button to try again if `again` is given; null clears.
export function showTrouble(place, error, again = null) {
  place.replaceChildren();
  if (!error) return;
  const box = make("div", { class: "trouble" }, make("p", { text: plain(error.message ?? error) }));
  if (again) {
    const retry = () => {
      showTrouble(place, null);
      again();
    };
    box.append(make("button", { type: "button", text: "Try again", on: { click: retry } }));
  }
  place.append(box);
}

// `work` when nothing new was asked for `wait` milliseconds.
export function debounced(work, wait) {
  let timer = 0;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), wait);
  };
  later.stop = () => clearTimeout(timer);
  return later;
}

// Only the last of several asked at the same time counts: `ask(signal)` of the others is aborted,
// and what they answer is dropped. Gives undefined if it was dropped.
export function lastOnly() {
  let current = null;
  const run = async (ask) => {
    current?.abort();
    const mine = (current = new AbortController());
    try {
      const answer = await ask(mine.signal);
      return mine === current ? answer : undefined;
    } catch (error) {
      if (mine !== current) return undefined;
      throw error;
    }
  };
  run.drop = () => {
    current?.abort();
    current = null;
  };
  return run;
}
