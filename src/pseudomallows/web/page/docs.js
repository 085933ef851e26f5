// The description of the service: send a request from its page, and read the answer.

import { byId, make, plain } from "./dom.js";

const LONGEST = 20_000; // letters of an answer that are shown
const PATIENCE = 60_000; // milliseconds
const STAND_IN = '"an item"'; // in the examples, until the model says what its items are

for (const form of document.forms) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.dataset.path) send(form); // not that of the token
  });
}
fillExamples();

async function fillExamples() {
  const answer = await fetch(new URL("items?limit=2", document.baseURI)).then((found) => found.json()).catch(() => null);
  const names = (answer?.items ?? []).map(({ item }) => JSON.stringify(item)).join(", ");
  if (!names) return;
  for (const body of document.querySelectorAll("textarea")) body.value = body.value.replaceAll(STAND_IN, names);
}

async function send(form) {
  const shown = form.querySelector("output"), { method, media } = form.dataset;
  const body = form.elements.namedItem("body")?.value ?? null;
  const address = addressOf(form), headers = headersOf(form, media);
  const command = make("pre", { text: asCommand(method, address, headers, body) });
  shown.replaceChildren(command, make("p", { class: "soft", text: "Asking…" }));
  const began = performance.now();
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    const answer = await fetch(address, { method, headers, body, signal });
    const text = await answer.text(), took = Math.round(performance.now() - began);
    const words = make("p", {}, make("strong", { text: `${answer.status} ${answer.statusText}` }), ` in ${took} ms`);
    shown.replaceChildren(command, words, make("pre", { text: readable(text) }));
  } catch {
    shown.replaceChildren(command, make("p", { class: "trouble", text: "The service does not answer." }));
  }
}

// The path with its names filled in, and what was given of the query.
function addressOf(form) {
  let path = form.dataset.path.slice(1);
  const query = new URLSearchParams();
  for (const { dataset, name, value } of form.querySelectorAll("input")) {
    if (dataset.in === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (value) query.append(name, value);
  }
  const address = new URL(path, document.baseURI);
  address.search = query;
  return address;
}

function headersOf(form, media) {
  const token = byId("token").value.trim().replace(/[^ -~]/g, "?"); // a header holds plain letters only
  return {
    ...(media ? { "Content-Type": media } : {}),
    ...(token && form.dataset.writes ? { Authorization: `Bearer ${token}` } : {}),
  };
}

// The same for a shell; the token stays out of it.
function asCommand(method, address, headers, body) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl", ...(method === "GET" ? [] : ["-X", method]), quoted(String(address))];
  if (headers.Authorization) parts.push("-H", '"Authorization: Bearer $PSEUDOMALLOWS_TOKEN"');
  if (headers["Content-Type"]) parts.push("-H", quoted(`Content-Type: ${headers["Content-Type"]}`));
  if (body !== null) parts.push("-d", quoted(body));
  return parts.join(" ");
}

// JSON with its lines broken; anything else as it is; not too long.
function readable(text) {
  let words = text;
  try {
    words = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // no JSON
  }
  return words.length > LONGEST ? `${words.slice(0, LONGEST)}\n… ${plain(words.length - LONGEST)} more letters` : words;
}
