// Upload: give a file of clicks, watch the service learn from it, and take the results away.

import { byId, make, many, plain, showTrouble } from "./dom.js";
import { SILENT, ServiceError, ask, post } from "./service.js";

const PAUSE = 400; // milliseconds between two looks at a job
const TRIES = 5; // times the service may be silent, or too busy, in a row
const BUSY = [0, 429, 503]; // statuses after which it is asked again
const LONGEST = 600_000; // milliseconds that sending a file may take
const KEPT = "pseudomallows-job"; // the running job, so that a reload of the page finds it again

let model = null;
let refresh = null;
let sending = null; // aborts the upload
let job = null; // id of the running job

export function prepare(itsRefresh) {
  refresh = itsRefresh;
  byId("file").addEventListener("change", (event) => {
    const [file] = event.target.files;
    if (file) upload(file);
    event.target.value = ""; // so that the same file can be given again
  });
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) byId("drop").addEventListener(kind, dragged);
  for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
  byId("token-part").addEventListener("submit", (event) => event.preventDefault());
  byId("cancel").addEventListener("click", cancel);
  byId("refit").addEventListener("submit", refit);
  for (let number = 1; number <= 20; number += 1) byId("n-clusters").append(make("option", { value: number, text: number }));
  const kept = recall();
  if (kept) watch(kept, "The model is being learnt.");
}

export function renew(itsModel) {
  model = itsModel;
  byId("token-part").hidden = !model.has_token;
  const isPersonal = model.method === "personal"; // learnt again without clusters
  byId("n-clusters-part").hidden = isPersonal;
  if (isPersonal) byId("n-clusters").value = "";
  const groups = model.n_clusters > 1 ? `, in ${many(model.n_clusters, "cluster")}` : "";
  byId("now-words").textContent =
    `Model ${model.model}: ${many(model.n_users, "user")}${groups}, ${many(model.n_items, "item")}, ` +
    `${many(model.n_clicks, "click")}.`;
}

// Giving a file

function dragged(event) {
  event.preventDefault();
  byId("drop").classList.toggle("over", event.type === "dragenter" || event.type === "dragover");
  if (event.type !== "drop") return;
  const [file] = event.dataTransfer.files;
  if (file) upload(file);
  else trouble(new ServiceError("This is not a file. Drop a CSV file, or choose one."));
}

async function upload(file) {
  if (isBusy()) return;
  if (!file.size) return trouble(new ServiceError(`The file ${plain(file.name, 60)} is empty.`));
  begin(`Sending ${plain(file.name, 60)}…`);
  sending = new AbortController();
  const headers = { "Content-Type": "text/csv", ...token() };
  try {
    const more = { signal: sending.signal, patience: LONGEST };
    const answer = await ask("upload?refit=true", { method: "POST", headers, body: file, ...more });
    const held = `${many(answer.clicks, "click")} of ${many(answer.users, "user")} on ${many(answer.items, "item")}`;
    watch(answer.job, `${plain(file.name, 60)}: ${held}.`);
    if (answer.warnings.length) trouble(new ServiceError(answer.warnings.join(" ")));
    byId("drop-words").textContent = "Drop another CSV file here";
  } catch (error) {
    end(error);
  }
  return undefined;
}

async function refit(event) {
  event.preventDefault();
  if (isBusy()) return;
  const chosen = byId("n-clusters").value;
  begin("Asking the service to learn again…");
  sending = new AbortController();
  try {
    const clusters = chosen === "" ? null : chosen === "auto" ? chosen : Number(chosen);
    const more = { headers: token(), signal: sending.signal };
    const answer = await post("refit", { clusters, method: null }, more);
    watch(answer.job, "The model is learnt again from all clicks.");
  } catch (error) {
    end(error);
  }
}

function token() {
  const given = byId("token").value.trim().replace(/[^ -~]/g, "?"); // a header holds plain letters only
  return model?.has_token && given ? { Authorization: `Bearer ${given}` } : {};
}

// Watching

const isBusy = () => sending !== null || job !== null;

function begin(words) {
  showTrouble(byId("upload-trouble"), null);
  byId("job").hidden = false;
  byId("job-title").textContent = "Learning";
  byId("job-words").textContent = words;
  byId("job-count").textContent = byId("job-time").textContent = "";
  byId("progress").hidden = byId("cancel").hidden = false;
  byId("progress").removeAttribute("value");
  allowCancel(true);
  if ([byId("file"), byId("refit-button")].includes(document.activeElement)) byId("job-title").focus();
  byId("refit-button").disabled = byId("file").disabled = true;
  byId("drop").classList.add("off");
  say(words);
}

async function watch(id, words) {
  begin(words);
  [sending, job] = [null, id];
  keep(id);
  let silences = 0;
  while (job === id) {
    try {
      const found = await ask(`jobs/${encodeURIComponent(id)}`);
      silences = 0;
      if (job !== id) return;
      tell(found);
      if (found.state !== "running") return finish(found);
    } catch (error) {
      silences += 1;
      if (!BUSY.includes(error.status) || silences >= TRIES) return end(lost(error));
      byId("job-count").textContent = "The service does not answer; asking again…";
    }
    await new Promise((done) => setTimeout(done, PAUSE));
  }
}

function lost(error) {
  if (error.status === 404) return new ServiceError("The service no longer knows of this job: it may have been started anew.");
  return error.status ? error : new ServiceError(`${SILENT} The model was being learnt; whether it was kept is not known.`);
}

function tell({ done, total, seconds }) {
  const bar = byId("progress");
  if (total > 0) [bar.max, bar.value] = [total, done];
  byId("job-count").textContent = total > 0 ? `step ${done} of ${total}` : "";
  byId("job-time").textContent = timeOf(seconds) + left(done, total, seconds);
}

const timeOf = (seconds) => (seconds < 100 ? `${Number(seconds).toFixed(1)} s` : `${Math.round(seconds / 60)} min`);

// What is left, once enough is done to tell.
function left(done, total, seconds) {
  if (!(done >= 5 && done >= 0.05 * total && done < total)) return "";
  const rest = (seconds / done) * (total - done);
  return `, about ${rest < 100 ? `${Math.ceil(rest)} s` : `${Math.round(rest / 60)} min`} to go`;
}

async function finish({ state, seconds, error }) {
  if (state === "failed") return end(new ServiceError(error || "The model could not be learnt."));
  if (state === "cancelled") return end(null, "Cancelled. The model is as it was.");
  await refresh();
  return end(null, `Learnt in ${timeOf(seconds)}. This is model ${model?.model ?? "new"}.`, true);
}

// No job any more: with trouble, or with words of how it went.
function end(error, words = "", isNew = false) {
  const aborted = error?.name === "AbortError";
  const hadFocus = byId("job").contains(document.activeElement);
  [sending, job] = [null, null];
  keep(null);
  byId("refit-button").disabled = byId("file").disabled = false;
  byId("drop").classList.remove("off");
  byId("progress").hidden = byId("cancel").hidden = true;
  byId("job-count").textContent = byId("job-time").textContent = "";
  byId("job").hidden = Boolean(error) && !aborted;
  if (error && !aborted) return trouble(error);
  byId("job-title").textContent = isNew ? "A new model" : "Cancelled";
  byId("job-words").replaceChildren(aborted ? "Cancelled. Nothing was sent." : words);
  if (isNew) byId("job-words").append(" ", make("a", { href: "#start", text: "See it" }), " or ", make("a", { href: "#try", text: "try it" }), ".");
  if (hadFocus) byId("job-title").focus();
  say(byId("job-words").textContent);
  return undefined;
}

// Not by "disabled", which would take the focus from those who use the keyboard.
const allowCancel = (is) => byId("cancel").setAttribute("aria-disabled", String(!is));

async function cancel() {
  if (byId("cancel").getAttribute("aria-disabled") === "true") return undefined;
  allowCancel(false);
  if (sending) return sending.abort();
  try {
    await ask(`jobs/${encodeURIComponent(job)}`, { method: "DELETE", headers: token() });
  } catch (error) {
    allowCancel(true);
    trouble(error);
  }
  return undefined;
}

function trouble(error) {
  showTrouble(byId("upload-trouble"), error);
}

function say(words) {
  byId("upload-news").textContent = words;
}

function keep(id) {
  try {
    if (id === null) sessionStorage.removeItem(KEPT);
    else sessionStorage.setItem(KEPT, id);
  } catch {
    // a browser may refuse to keep anything: then a reload forgets the job
  }
}

function recall() {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null;
  }
}
