// Start: what the model knows, in a sentence and a picture, and whether to trust it.

import { bar, byId, count, make, many, named, percent } from "./dom.js";

const METHODS = {
  pseudo: "Pseudo-Mallows, a fast approximation",
  balanced: "balanced Pseudo-Mallows, an approximation whose draws make up for its error",
  mcmc: "the exact model, by a Markov chain",
  personal: "personal: an order of each user's own",
};
const ANSWERS = { yes: "yes", "with care": "care", no: "no" };

export function renew(model, clusters) {
  byId("start-title").textContent = `What ${many(model.n_users, "user prefers", "users prefer")}`;
  byId("knows").textContent = sentence(model);
  tellTrust(model);
  drawClusters(clusters);
  tellFacts(model);
  for (const id of ["verdict", "start-actions", "about"]) byId(id).hidden = false;
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

function tellTrust(model) {
  const answer = byId("trusted");
  answer.textContent = model.trusted;
  answer.className = `answer ${ANSWERS[model.trusted] ?? "care"}`;
  byId("why").textContent = model.why ?? "";
}

function drawClusters(clusters) {
  const place = byId("clusters");
  place.removeAttribute("aria-busy");
  place.replaceChildren();
  if (!clusters.length) return;
  const several = clusters.length > 1;
  place.append(make("h2", { text: several ? "The groups, and what they like best" : "What they like best" }));
  const largest = Math.max(...clusters.map((each) => each.share));
  const sorted = [...clusters].sort((one, other) => other.share - one.share);
  const cards = sorted.map((each) => clusterCard(each, several, largest));
  place.append(make("ul", { class: several ? "groups" : "groups one" }, ...cards));
}

function clusterCard(cluster, several, largest) {
  const best = cluster.best.map((item) => make("li", {}, named(item, 48)));
  const list = make("ol", { class: "best" }, ...best);
  if (!several) return make("li", { class: "card" }, list);
  const link = make("a", { href: `#consensus/${cluster.cluster}`, text: `Cluster ${cluster.cluster}` });
  const size = make("span", { class: "soft", text: `${percent(cluster.share)}, ${many(cluster.users, "user")}` });
  const head = make("div", { class: "row" }, make("h3", {}, link), size);
  return make("li", { class: "card" }, head, bar(cluster.share / largest), list);
}

function tellFacts(model) {
  const alpha = (model.alpha ?? []).map((each) => Number(each).toFixed(1)).join(", ");
  const facts = [
    ["Method", METHODS[model.method] ?? model.method],
    ["How closely users keep to their consensus (alpha; 0 is pure chance)", alpha],
    ["Number of the model", model.model],
    ["Seed", model.seed ?? "none"],
    ["Version of pseudomallows", model.version],
  ];
  const lines = facts
    .filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .flatMap(([key, value]) => [make("dt", { text: key }), make("dd", { text: value })]);
  byId("facts").replaceChildren(...lines);
}
