// What the service is asked. Trouble comes back as a ServiceError whose message is in words.

const PATIENCE = 60_000; // milliseconds

export const SILENT = "The service does not answer. It may have stopped, or the network may be down.";

export class ServiceError extends Error {
  constructor(words, status = 0) {
    super(words);
    this.status = status; // 0: no answer
  }
}

// Ask for `path`; `more` as of fetch. The answer's JSON.
export async function ask(path, { signal, patience = PATIENCE, ...more } = {}) {
  const limits = [AbortSignal.timeout(patience)];
  if (signal) limits.push(signal);
  let answer, text;
  try {
    answer = await fetch(new URL(path, document.baseURI), { ...more, signal: AbortSignal.any(limits) });
    text = await answer.text();
  } catch (error) {
    if (signal?.aborted) throw error; // we no longer want it
    throw new ServiceError(SILENT);
  }
  const body = parsed(text);
  if (!answer.ok) throw new ServiceError(wordsOf(body, answer.status), answer.status);
  if (body === undefined) throw new ServiceError("The service's answer cannot be read.", answer.status);
  return body;
}

export function post(path, body, more = {}) {
  const headers = { "Content-Type": "application/json", ...more.headers };
  return ask(path, { ...more, method: "POST", headers, body: JSON.stringify(body) });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function wordsOf(body, status) {
  const words = body?.error;
  if (typeof words === "string" && words) return words[0].toUpperCase() + words.slice(1);
  return `The service could not do this (status ${status}).`;
}
