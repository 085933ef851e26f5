// Start: what the model knows, in a sentence and a picture, and whether to trust it.

import { bar, byId, count, draw, make, many, named, percent, plain, scaleTop } from "./dom.js";
import { ask } from "./service.js";

const METHODS = {
  pseudo: "Pseudo-Mallows, a fast approximation",
  balanced: "balanced Pseudo-Mallows, with weights that correct its error",
  mcmc: "the exact model, by a Markov chain",
  matched: "the matched law of clicks, which is very nearly exact",
  personal: "personal: every user has their own order",
};
const FEWEST = 30; // recommendations of which a share is told
const N_POPULAR = 5; // items shown where there are no clusters
const ANSWERS = { yes: "yes", "with care": "care", no: "no" };
const SEEN = { // by the answer of /check
  yes: ["yes", "On the clicks since the fit, its probabilities were right."],
  no: ["with care", "Use the order of its recommendations, but not its probabilities: on the clicks since the fit they were wrong. Learn again (Upload)."],
};

let told = null; // the model that is shown

export function renew(model, clusters) {
  told = model;
  byId("start-title").textContent = `What ${many(model.n_users, "user prefers", "users prefer")}`;
  byId("knows").textContent = sentence(model);
  tellTrust(model);
  if (model.n_clusters && model.method !== "personal") drawClusters(clusters, model);
  else drawPopular(model);
  byId("to-consensus").hidden = !model.n_clusters;
  tellFacts(model);
  for (const id of ["verdict", "start-actions", "about"]) byId(id).hidden = false;
}

// Each time the view is looked at: new clicks may have come.
export function show() {
  tellCheck(told);
}

export function waiting() {
  byId("knows").textContent = "The model cannot be shown yet.";
}

function sentence(model) {
  const from = `From ${many(model.n_clicks, "click")} on ${many(model.n_items, "item")}, the model `;
  if (model.method === "personal") return from + "has learnt an order of preference for each user.";
  if (model.n_clusters === 1) return from + "has learnt one order of preference that the users share.";
  return from + `has found ${count(model.n_clusters)} groups of users who like the same things.`;
}

// A personal model has no draws to judge; once enough has been clicked since the fit, that says it.
function tellTrust(model, check = null) {
  const seen = model.method === "personal" ? SEEN[check?.answer] : null;
  const [trusted, why] = seen ?? [model.trusted, model.why ?? ""];
  const answer = byId("trusted");
  answer.textContent = trusted;
  answer.className = `answer ${ANSWERS[trusted] ?? "care"}`;
  byId("why").textContent = why;
}

// How much of what was recommended was clicked, against how much was stated; in words first.
async function tellCheck(model) {
  const found = model.n_users ? await ask("check").catch(() => null) : null;
  if (model !== told) return;
  byId("came-true").hidden = !found;
  tellTrust(model, found);
  if (!found) return;
  byId("came-true-words").textContent = plain(found.words);
  byId("came-true-picture").hidden = !found.n_users;
  if (!found.n_users) return;
  const top = scaleTop(Math.max(found.stated, found.observed));
  const rows = [["Stated", found.stated], ["Observed", found.observed]];
  byId("came-true-bars").replaceChildren(...rows.map(([name, share]) => shareRow(name, share, top)));
  byId("came-true-scale").textContent = `Both bars start at 0; a full bar is ${percent(top)}.${surest(found.bins)}`;
}

// The mean may hide that the surest are stated too high and the others too low, or the reverse.
function surest(bins) {
  const { stated, observed, count: n } = bins.at(-1);
  if (bins.length < 2 || n < FEWEST) return "";
  return ` Of the ${count(n)} surest ones, ${exact(observed)} were hits, where ${exact(stated)} was stated.`;
}

const exact = (share) => `${(100 * share).toFixed(1)}\u00a0%`;

function shareRow(name, share, top) {
  const value = make("span", { class: "value", text: exact(share) });
  const head = make("div", { class: "row" }, make("span", { text: name }), value);
  return make("li", {}, make("div", { class: "bar-row" }, head, bar(share / top)));
}

function drawClusters(clusters, model) {
  const several = clusters.length > 1;
  const sorted = [...clusters].sort((one, other) => other.share - one.share);
  const cards = sorted.map((each) => clusterCard(each, several));
  if (model.calibration.length) cards.push(calibrationCard(model.calibration));
  fillCards(several ? "The groups, and what they like best" : "What they like best", cards);
}

// An order for each user: what is clicked most is all that can be said of everybody.
async function drawPopular(model) {
  const { items } = await ask(`items?limit=${N_POPULAR}`).catch(() => ({ items: [] }));
  if (model !== told) return;
  const most = items[0]?.users;
  const rows = items.map(({ item, users }) => {
    const head = make("div", { class: "row" }, named(item, 48), make("span", { class: "value", text: many(users, "user") }));
    return make("li", {}, make("div", { class: "bar-row" }, head, bar(users / most)));
  });
  const cards = [make("li", { class: "card" }, make("h3", { text: "Clicked most" }), make("ul", { class: "bars" }, ...rows))];
  if (model.calibration.length) cards.push(calibrationCard(model.calibration));
  fillCards("At a glance", items.length ? cards : []);
}

// Stated against observed, where the model was evaluated: on the dashed line both are equal.
function calibrationCard(bins) {
  const size = 200, most = Math.max(...bins.map((bin) => bin.count));
  const top = scaleTop(Math.max(...bins.flatMap((bin) => [bin.stated, bin.observed])));
  const line = draw("line", { x1: 0, y1: size, x2: size, y2: 0, class: "ideal" });
  const dots = bins.map((bin) => draw("circle", {
    class: "dot", cx: (size * bin.stated) / top, cy: size - (size * bin.observed) / top, r: Math.max(3, 10 * Math.sqrt(bin.count / most)),
  }));
  const words = bins.map((bin) => `${percent(bin.stated)} stated, ${percent(bin.observed)} observed`).join("; ");
  const picture = draw("svg", { viewBox: `-12 -12 ${size + 24} ${size + 24}`, class: "calibration", role: "img", "aria-label": words }, line, ...dots);
  const legend = `Right: stated probability. Up: share observed. Both to ${percent(top)}.`;
  return make("li", { class: "card" }, make("h3", { text: "Stated and observed" }), picture, make("p", { class: "soft small", text: legend }));
}

function fillCards(title, cards) {
  const list = make("ul", { class: cards.length > 1 ? "groups" : "groups one" }, ...cards);
  byId("clusters").removeAttribute("aria-busy");
  byId("clusters").replaceChildren(...(cards.length ? [make("h2", { text: title }), list] : []));
}

const bestList = (items) => make("ol", { class: "best" }, ...items.map((item) => make("li", {}, named(item, 48))));

function clusterCard(cluster, several) {
  const list = bestList(cluster.best);
  if (!several) return make("li", { class: "card" }, list);
  const link = make("a", { href: `#consensus/${cluster.cluster + 1}`, text: `Cluster ${cluster.cluster + 1}` });
  const size = make("span", { class: "soft", text: `${percent(cluster.share)}, ${many(cluster.users, "user")}` });
  const head = make("div", { class: "row" }, make("h3", {}, link), size);
  return make("li", { class: "card" }, head, bar(cluster.share), list);
}

function tellFacts(model) {
  const ownOrder = model.method === "personal";
  const alpha = (model.alpha ?? []).map((each) => Number(each).toFixed(1)).join(", ");
  const facts = [
    ["Method", METHODS[model.method] ?? model.method],
    [`How closely users keep to their ${ownOrder ? "own order" : "consensus"} (alpha; 0 is pure chance)`, alpha],
    ["Number of the model", model.model],
    ["Seed", model.seed ?? "none"],
    ["Version of pseudomallows", model.version],
  ];
  const lines = facts
    .filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .flatMap(([key, value]) => [make("dt", { text: key }), make("dd", { text: value })]);
  byId("facts").replaceChildren(...lines);
}
