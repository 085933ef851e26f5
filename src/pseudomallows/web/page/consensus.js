// Consensus: how probable each rank is for each item, as a heat plot and as a table. People see
// clusters numbered from 1, in the address too; the service numbers them from 0.

import { byId, count, draw, lastOnly, make, named, percent, plain, showTrouble } from "./dom.js";
import { ask } from "./service.js";

const FAINTEST = 0.002; // of the strongest: below, a cell is left empty

let model = null, clusters = [];
let shown = null; // the answer of /consensus
let wanted = 0; // the cluster asked for
let stale = true; // the picture is of another model or cluster
let cursor = [0, 0]; // row, bin

const answers = lastOnly();

export function prepare() {
  byId("cluster").addEventListener("change", (event) => {
    history.replaceState(null, "", `#consensus/${Number(event.target.value) + 1}`);
    choose(Number(event.target.value));
  });
  const heat = byId("heat"), cells = byId("cells");
  heat.addEventListener("keydown", steer);
  heat.addEventListener("focus", () => point(...cursor));
  heat.addEventListener("blur", unpoint);
  for (const kind of ["pointermove", "pointerdown"]) cells.addEventListener(kind, pointAt);
  cells.addEventListener("pointerleave", () => document.activeElement === heat || unpoint());
}

export function renew(itsModel, itsClusters) {
  [model, clusters, stale] = [itsModel, itsClusters, true];
  const options = clusters.map(({ cluster, share }) =>
    make("option", { value: cluster, text: `${cluster + 1} (${percent(share)} of the users)` }));
  byId("cluster").replaceChildren(...options);
  byId("cluster-part").hidden = clusters.length < 2;
  byId("consensus-words").textContent = wordsOf(model);
  if (!clusters.some(({ cluster }) => cluster === wanted)) wanted = 0;
}

function wordsOf({ method, n_clusters }) {
  if (!n_clusters) return "Each user has their own order, so there is no consensus to show. “Try it” shows what comes next for a user.";
  if (method === "personal") return "Each user has their own order; this is the consensus of all users.";
  const whose = n_clusters < 2 ? "the users" : "the users of a cluster";
  return `The order that ${whose} share, and how sure each rank is.`;
}

export function show(rest) {
  const known = clusters.some(({ cluster }) => String(cluster + 1) === rest);
  choose(known ? Number(rest) - 1 : wanted);
}

function choose(cluster) {
  byId("cluster").value = String(cluster);
  if (cluster === wanted && !stale) return;
  [wanted, stale] = [cluster, true];
  load();
}

async function load() {
  showTrouble(byId("consensus-trouble"), null);
  if (!model?.n_clusters) {
    byId("heat-part").hidden = true;
    return;
  }
  byId("heat").setAttribute("aria-busy", "true");
  try {
    const answer = await answers((signal) => ask(`consensus?cluster=${wanted}`, { signal }));
    if (!answer) return;
    [shown, stale, cursor] = [answer, false, [0, 0]];
    redraw();
  } catch (error) {
    byId("heat-part").hidden = true;
    showTrouble(byId("consensus-trouble"), error, load);
  }
}

function redraw() {
  const { items, probabilities, edges } = shown;
  const strongest = probabilities.flat().reduce((most, each) => Math.max(most, each), 0) || 1;
  byId("heat").removeAttribute("aria-busy");
  byId("heat-part").hidden = false;
  byId("heat").style.setProperty("--rows", items.length);
  byId("heat").setAttribute("aria-label", `Heat plot of ${which()}: items by ranks. Arrow keys move; a table follows.`);
  byId("heat-names").replaceChildren(...items.map(({ item, rank }) =>
    make("li", {}, make("span", { class: "soft place", text: rank }), named(item, 60, { title: plain(item) }))));
  byId("cells").replaceChildren(picture(probabilities, edges.length, strongest));
  byId("strongest").textContent = percent(strongest);
  drawAxis(edges);
  fillTable();
  unpoint();
}

const which = () => (clusters.length < 2 ? "the consensus" : `the consensus of cluster ${shown.cluster + 1}`);

// One unit a cell; the picture is stretched to the room there is.
function picture(probabilities, nBins, strongest) {
  const size = { viewBox: `0 0 ${nBins} ${probabilities.length}`, preserveAspectRatio: "none" };
  const cells = probabilities.flatMap((row, y) => row.flatMap((probability, x) => {
    if (probability < FAINTEST * strongest) return [];
    const opacity = Math.sqrt(probability / strongest).toFixed(2); // so that small probabilities are seen
    return [draw("rect", { x, y, width: 1, height: 1, "fill-opacity": opacity })];
  }));
  const mark = draw("rect", { id: "cursor", width: 1, height: 1, visibility: "hidden" });
  return draw("svg", { ...size, "aria-hidden": "true" }, ...cells, mark);
}

function drawAxis(edges) {
  const last = edges.length - 1;
  const bins = last < 10 ? edges.map((_, bin) => bin) : [0, Math.round(last / 4), Math.round(last / 2), Math.round((3 * last) / 4), last];
  byId("axis").replaceChildren(...bins.map((bin) => {
    const isEnd = bin === last && last >= 10;
    const label = make("span", { text: bin === last ? endOf(bin) : edges[bin], class: isEnd ? "end" : null });
    label.style.setProperty("--at", (bin + 0.5) / edges.length);
    return label;
  }));
}

// Reading a cell

const endOf = (bin) => (shown.edges[bin + 1] ?? Math.max(model.n_items + 1, shown.edges[bin] + 1)) - 1;

function ranksOf(bin) {
  const first = shown.edges[bin], end = endOf(bin);
  return first === end ? `rank ${first}` : `ranks ${first} to ${end}`;
}

function point(row, bin) {
  if (!shown) return;
  cursor = [row, bin];
  const mark = byId("cursor"), probability = shown.probabilities[row][bin];
  for (const [key, value] of Object.entries({ x: bin, y: row, visibility: "visible" })) mark.setAttribute(key, value);
  byId("readout").replaceChildren(
    named(shown.items[row].item, 60), `, ${ranksOf(bin)}: `, make("strong", { text: percent(probability) }));
  [...byId("heat-names").children].forEach((each, place) => each.classList.toggle("on", place === row));
}

function unpoint() {
  byId("cursor")?.setAttribute("visibility", "hidden");
  byId("heat-names").querySelector(".on")?.classList.remove("on");
  byId("readout").textContent = "Point at a cell, or use the arrow keys in the picture, to read it.";
}

function pointAt(event) {
  const box = byId("cells").getBoundingClientRect();
  const at = (place, size, number) => Math.min(Math.max(Math.floor((place / size) * number), 0), number - 1);
  point(
    at(event.clientY - box.top, box.height, shown.items.length),
    at(event.clientX - box.left, box.width, shown.edges.length),
  );
}

function steer(event) {
  if (!shown || event.ctrlKey || event.altKey || event.metaKey) return;
  const [row, bin] = cursor, last = [shown.items.length - 1, shown.edges.length - 1];
  const moves = {
    ArrowUp: [row - 1, bin], ArrowDown: [row + 1, bin], ArrowLeft: [row, bin - 1], ArrowRight: [row, bin + 1],
    Home: [row, 0], End: [row, last[1]], PageUp: [row - 10, bin], PageDown: [row + 10, bin],
  };
  const to = moves[event.key];
  if (!to) return;
  event.preventDefault();
  point(...to.map((each, axis) => Math.min(Math.max(each, 0), last[axis])));
  byId("heat-names").children[cursor[0]].scrollIntoView({ block: "nearest" });
}

// The same as a table

function fillTable() {
  const { items, probabilities } = shown;
  const all = items.length < model.n_items ? `, the first ${items.length} of ${count(model.n_items)} items` : "";
  byId("table-caption").textContent = `${which()[0].toUpperCase()}${which().slice(1)}${all}`;
  byId("rows").replaceChildren(...items.map((each, row) => tableRow(each, probabilities[row])));
}

function tableRow({ item, rank, mean, lowest, highest }, probabilities) {
  const likely = probabilities.indexOf(Math.max(...probabilities));
  return make("tr", {},
    make("td", { class: "number", text: rank }),
    make("th", { scope: "row" }, named(item, 48)),
    make("td", { class: "number", text: Number(mean).toFixed(1) }),
    make("td", { class: "number", text: lowest === highest ? lowest : `${lowest} to ${highest}` }),
    make("td", { text: `${ranksOf(likely)}, ${percent(probabilities[likely])}` }));
}
