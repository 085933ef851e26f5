// Try it: pick items as if they had been clicked, or look up a user, and see what comes next.

import {
  bar, byId, debounced, lastOnly, make, many, named, percent, plain, readable, scaleTop, setBar, showTrouble,
} from "./dom.js";
import { ask, post } from "./service.js";

const K = 10; // recommendations
const FEWEST = 0.01; // share of a cluster that is still shown
const MAX_CLOSE = 4; // clusters shown
const N_POPULAR = 8;
const MAX_WHY = 3, LEAST_WHY = 0.05; // reasons told on each side, and the share of one that is told

let picks = []; // names, as the service spells them
let who = null; // the user who was looked up, in place of picks
let found = []; // what the list offers: {item, users}
let active = -1; // its row the arrow keys are on
let waits = false; // the list is not yet that of the words in the box
let picksFirst = false; // Enter came before the list did
let clusters = [];
let stale = false; // the model has changed since the last answer

const searches = lastOnly(), answers = lastOnly();
const soonSearch = debounced(search, 120), soonRecommend = debounced(recommend, 100);

export function prepare() {
  const input = byId("search");
  input.addEventListener("input", () => {
    [waits, picksFirst] = [true, false];
    activate(-1);
    soonSearch();
  });
  input.addEventListener("click", () => isOpen() || search());
  input.addEventListener("keydown", steer);
  input.addEventListener("blur", close);
  byId("options").addEventListener("pointerdown", (event) => event.preventDefault()); // keeps focus
  byId("options").addEventListener("click", pickClicked);
  byId("chips").addEventListener("keydown", steerChips);
  byId("clear").addEventListener("click", clearAll);
  byId("look-up").addEventListener("submit", (event) => {
    event.preventDefault();
    const user = byId("user").value;
    if (user === who) recommend();
    else location.hash = user ? `#try/${encodeURIComponent(user)}` : "#try";
  });
}

export function renew(_, itsClusters) {
  clusters = itsClusters;
  stale = true;
}

// "#try/ann" is the user ann.
export function show(rest) {
  const user = decoded(rest), isNew = stale || user !== who;
  if (stale) offerPopular();
  stale = false;
  if (user !== who) become(user);
  if (isNew) recommend();
}

function decoded(text) {
  try {
    return text ? decodeURIComponent(text) : null;
  } catch {
    return text; // typed by hand, with a stray per cent sign
  }
}

function become(user) {
  who = user;
  byId("user").value = who ?? "";
  byId("next-title").textContent = who === null ? "What comes next" : `What comes next for ${plain(who, 60)}`;
  byId("recommendations").classList.toggle("of-user", who !== null);
  showTrouble(byId("try-trouble"), null);
  noAnswer();
}

// Back from a user to picks of one's own.
function leaveUser() {
  if (who === null) return;
  history.replaceState(null, "", "#try");
  become(null);
}

// The list under the search box

const isOpen = () => !byId("options").hidden;

async function search() {
  const input = byId("search"), words = input.value.trim();
  try {
    const answer = await searches((signal) =>
      ask(`items?search=${encodeURIComponent(words)}&limit=20`, { signal }));
    if (!answer || document.activeElement !== input) return;
    [found, waits] = [answer.items, false];
    open(words);
    if (picksFirst && words && found.length) pickFromList(0);
    picksFirst = false;
    showTrouble(byId("try-trouble"), null);
  } catch (error) {
    close();
    showTrouble(byId("try-trouble"), error, search);
  }
}

function open(words) {
  const rows = found.map((each, row) => option(each, row));
  if (!rows.length) rows.push(make("li", { class: "soft none", text: "No item has this in its name." }));
  byId("options").replaceChildren(...rows);
  byId("options").hidden = false;
  byId("search").setAttribute("aria-expanded", "true");
  activate(words && found.length ? 0 : -1);
  say(found.length ? many(found.length, "item") + " to choose from" : "No item has this in its name.");
}

function option({ item, users }, row) {
  const is = String(picks.includes(item));
  const by = make("span", { class: "soft small", text: many(users, "user") });
  return make("li", { id: `option-${row}`, role: "option", "aria-selected": is }, named(item), by);
}

function activate(row) {
  active = row;
  const rows = byId("options").querySelectorAll("[role=option]");
  for (const [place, each] of rows.entries()) each.classList.toggle("active", place === row);
  if (row < 0) byId("search").removeAttribute("aria-activedescendant");
  else {
    byId("search").setAttribute("aria-activedescendant", `option-${row}`);
    rows[row].scrollIntoView({ block: "nearest" });
  }
}

function close() {
  soonSearch.stop();
  searches.drop();
  [waits, picksFirst] = [false, false];
  byId("options").hidden = true;
  byId("search").setAttribute("aria-expanded", "false");
  byId("search").removeAttribute("aria-activedescendant");
  active = -1;
}

function steer(event) {
  const input = byId("search");
  if (event.isComposing) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (!isOpen()) search();
    else if (found.length && !waits) activate(next(active, event.key === "ArrowDown" ? 1 : -1));
  } else if (event.key === "Enter") {
    event.preventDefault();
    if (waits) picksFirst = true;
    else if (isOpen() && active >= 0) pickFromList(active);
    else if (!isOpen()) search();
  } else if (event.key === "Escape") {
    if (isOpen() || waits) close();
    else input.value = "";
  } else if (event.key === "Backspace" && input.value === "" && picks.length) {
    focusChip(picks.length - 1);
  }
}

const next = (row, step) => (row < 0 && step < 0 ? found.length - 1 : (row + step + found.length) % found.length);

function pickClicked(event) {
  const row = [...byId("options").children].indexOf(event.target.closest("[role=option]"));
  if (row >= 0) pickFromList(row);
}

function pickFromList(row) {
  const { item } = found[row];
  byId("search").value = "";
  close();
  if (picks.includes(item)) remove(item);
  else add(item);
}

// Clicks

function add(item) {
  leaveUser();
  if (!picks.includes(item)) picks.push(item);
  say(`${readable(item, 60)} added.`);
  redraw();
  soonRecommend();
}

function remove(item) {
  leaveUser();
  picks = picks.filter((other) => other !== item);
  say(`${readable(item, 60)} removed.`);
  redraw();
  soonRecommend();
}

function clearAll() {
  leaveUser();
  picks = [];
  say("All clicks removed.");
  redraw();
  soonRecommend();
  byId("search").focus();
}

function redraw() {
  byId("chips").replaceChildren(...picks.map(chip));
  byId("no-picks").hidden = picks.length > 0;
  byId("clear").hidden = picks.length < 2;
  for (const button of byId("popular").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(picks.includes(button.item)));
  }
  if (who === null && !picks.length) noAnswer();
}

function chip(item) {
  const cross = make("span", { class: "cross", text: "×", "aria-hidden": "true" });
  const label = `Remove ${readable(item, 60)}`;
  const button = make("button", { type: "button", class: "chip", "aria-label": label }, named(item, 40), cross);
  button.addEventListener("click", () => removeChip(picks.indexOf(item)));
  return make("li", {}, button);
}

function steerChips(event) {
  const place = [...byId("chips").children].indexOf(event.target.closest("li"));
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step && place + step >= picks.length) byId("search").focus();
  else if (step) focusChip(Math.max(place + step, 0));
  else if (event.key === "Delete" || event.key === "Backspace") removeChip(place);
  else if (event.key === "Escape") byId("search").focus();
  else return;
  event.preventDefault();
}

function removeChip(place) {
  remove(picks[place]);
  focusChip(Math.min(place, picks.length - 1));
}

function focusChip(place) {
  (byId("chips").children[place]?.querySelector("button") ?? byId("search")).focus();
}

async function offerPopular() {
  try {
    const { items } = await ask(`items?search=&limit=${N_POPULAR}`);
    byId("popular").replaceChildren(...items.map((each) => make("li", {}, offer(each.item))));
    byId("popular-part").hidden = !items.length;
    redraw();
  } catch (error) {
    showTrouble(byId("try-trouble"), error, offerPopular);
  }
}

function offer(item) {
  const button = make("button", { type: "button", class: "chip offer", "aria-pressed": "false" }, named(item, 40));
  button.item = item;
  button.addEventListener("click", () => (picks.includes(item) ? remove(item) : add(item)));
  return button;
}

// What comes next

async function recommend() {
  if (who === null && !picks.length) return noAnswer();
  byId("recommendations").setAttribute("aria-busy", "true");
  try {
    const answer = await answers(question());
    if (!answer) return undefined;
    byId("recommendations").removeAttribute("aria-busy");
    showTrouble(byId("try-trouble"), null);
    tellNext(answer.recommendations);
    tellClose(answer.memberships);
  } catch (error) {
    noAnswer();
    const isUnknown = error.status === 404; // the user
    byId("next-words").textContent = isUnknown ? "Check the name, or pick items instead." : "No recommendations at the moment.";
    showTrouble(byId("try-trouble"), error, isUnknown ? null : recommend);
  }
  return undefined;
}

function question() {
  if (who === null) return (signal) => post("recommend", { clicks: picks, k: K, reasons: true }, { signal });
  return (signal) => ask(`users/${encodeURIComponent(who)}/recommendations?k=${K}&reasons=true`, { signal });
}

function noAnswer() {
  answers.drop();
  soonRecommend.stop();
  byId("recommendations").replaceChildren();
  byId("recommendations").removeAttribute("aria-busy");
  byId("recommendations").hidden = byId("close-part").hidden = true;
  byId("next-words").textContent = "Pick an item or look up a user, and recommendations appear here.";
}

function tellNext(rows) {
  const list = byId("recommendations");
  list.hidden = !rows.length;
  if (!rows.length) {
    byId("next-words").textContent = `${who === null ? "You have" : "This user has"} clicked everything there is.`;
    list.replaceChildren();
    return;
  }
  const top = scaleTop(Math.max(...rows.map((each) => each.probability)));
  byId("next-words").textContent =
    `The probability that it is among the next ${rows.length} ${who === null ? "you" : "this user"} would click. ` +
    `All bars start at 0; a full bar is ${percent(top)}. ` +
    (rows.some((each) => because(each.reasons ?? []).length) ? "Below each: its reasons, for and against, as shares of the total." : "");
  redrawRows(list, rows, top);
  const first = rows[0];
  say(`${many(rows.length, "recommendation")}; first ${readable(first.item, 60)}, ${percent(first.probability)}.`);
}

// The rows of items that stay are kept, so that their bars grow and shrink, and the focus stays.
function redrawRows(list, rows, top) {
  const old = new Map([...list.children].map((row) => [row.item, row]));
  const focused = list.contains(document.activeElement);
  const fresh = rows.map(({ item, probability, reasons }) => {
    const row = old.get(item) ?? recommendation(item);
    row.querySelector(".value").textContent = percent(probability);
    setBar(row.querySelector(".fill"), probability / top);
    row.querySelector(".why").replaceChildren(...because(reasons ?? []));
    return row;
  });
  for (const row of old.values()) if (!fresh.includes(row)) row.remove();
  fresh.forEach((row, place) => {
    if (list.children[place] !== row) list.insertBefore(row, list.children[place] ?? null);
  });
  if (focused && !list.contains(document.activeElement)) list.querySelector("button")?.focus();
}

function recommendation(item) {
  const button = make("button", {
    type: "button", class: "quiet plus", "aria-label": `Add ${readable(item, 60)} to your clicks`,
    title: "Add to your clicks", text: "+", on: { click: () => add(item) },
  });
  const words = make("span", { class: "row" }, named(item), make("span", { class: "value" }));
  const why = make("span", { class: "soft small why" });
  const row = make("li", {}, make("div", { class: "bar-row" }, words, bar(0), why), button);
  row.item = item;
  return row;
}

// What speaks for an item, and what against it, as parts of all that counts.
function because(reasons) {
  const told = reasons.filter((each) => Math.abs(each.share) >= LEAST_WHY && each.kind !== "given");
  if (reasons.length < 2 && told[0]?.kind === "cluster") return []; // there is one cluster
  const parts = [];
  for (const [words, side] of [["for it: ", 1], ["against it: ", -1]]) {
    const mine = told.filter((each) => side * each.share > 0).slice(0, MAX_WHY);
    if (!mine.length) continue;
    if (parts.length) parts.push("; ");
    const start = parts.length ? words : words[0].toUpperCase() + words.slice(1);
    parts.push(start, ...mine.flatMap((each, place) => (place ? [", ", ...reason(each)] : reason(each))));
  }
  return parts;
}

function reason({ kind, name, share }) {
  const words = { popularity: "popular with everybody", rest: "everything else", cluster: `cluster ${Number(name) + 1}` }[kind];
  return [words ?? named(name, 40), ` (${percent(Math.abs(share))})`];
}

function tellClose(memberships) {
  byId("close-part").hidden = !memberships || memberships.length < 2;
  if (byId("close-part").hidden) return;
  const sorted = memberships
    .map((share, cluster) => ({ share, cluster }))
    .sort((one, other) => other.share - one.share)
    .filter(({ share }, place) => place === 0 || (share >= FEWEST && place < MAX_CLOSE));
  byId("close-words").textContent =
    `The probability, by these clicks, of belonging to each of the ${memberships.length} groups.`;
  byId("close").replaceChildren(...sorted.map(closeRow));
}

function closeRow({ share, cluster }) {
  const best = clusters.find((each) => each.cluster === cluster)?.best ?? [];
  const link = make("a", { href: `#consensus/${cluster + 1}`, text: `Cluster ${cluster + 1}` });
  const words = make("span", { class: "row" }, link, make("span", { class: "value", text: percent(share) }));
  const row = make("div", { class: "bar-row" }, words, bar(share));
  if (best.length) row.append(make("span", { class: "soft small likes" }, "likes best ", ...joined(best)));
  return make("li", {}, row);
}

const joined = (names) => names.flatMap((each, place) => (place ? [", ", named(each, 40)] : [named(each, 40)]));

function say(words) {
  byId("try-news").textContent = words;
}
