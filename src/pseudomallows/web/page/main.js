// The views, one at a time by the hash of the address, and the model they all speak of.

import { byId, showTrouble } from "./dom.js";
import { ask } from "./service.js";
import * as consensus from "./consensus.js";
import * as start from "./start.js";
import * as tryIt from "./try.js";
import * as upload from "./upload.js";

const VIEWS = { start, try: tryIt, consensus, upload };
const TITLES = { start: "Start", try: "Try it", consensus: "Consensus", upload: "Upload" };

let model = null; // the answer of /model
let clusters = []; // of /clusters
let shown = null;

// "#consensus/3" is the view consensus with 3.
function asked() {
  const [name, rest] = location.hash.slice(1).split("/");
  return [Object.hasOwn(VIEWS, name) ? name : "start", rest];
}

function show() {
  const [name, rest] = asked();
  for (const other of Object.keys(VIEWS)) byId(`view-${other}`).hidden = other !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${TITLES[name]} – pseudomallows`;
  if (shown && shown !== name) {
    byId(`${name}-title`).focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  shown = name;
  if (model) VIEWS[name].show?.(rest);
}

// Ask what the service knows now, and tell all views if it is another model than before.
export async function refresh() {
  try {
    const found = await ask("model");
    if (model?.model === found.model && model?.n_clicks === found.n_clicks) return;
    const asks = found.n_clusters > 0 && found.method !== "personal"; // which learns its consensus when asked
    const answer = asks ? await ask("clusters").catch(() => null) : null;
    clusters = answer?.clusters ?? [];
    model = found;
    showTrouble(byId("model-trouble"), null);
    for (const view of Object.values(VIEWS)) view.renew(model, clusters);
    show();
  } catch (error) {
    showTrouble(byId("model-trouble"), error, refresh);
    if (!model) start.waiting();
  }
}

byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId(`${shown}-title`).focus();
});
addEventListener("hashchange", show);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
upload.prepare(refresh);
tryIt.prepare();
consensus.prepare();
show();
refresh();
