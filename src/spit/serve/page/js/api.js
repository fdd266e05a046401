/** Requests to the server that served this page; nothing else is ever asked. */

let token = new URLSearchParams(location.hash.slice(1)).get("token") ?? sessionStorage.getItem("token");
if (token) sessionStorage.setItem("token", token);
if (location.hash.includes("token=")) history.replaceState(null, "", location.pathname + location.search);

/** A refusal of the server: one sentence and a stable code. */
export class ApiError extends Error {
  constructor(message, code, status) {
    super(message);
    Object.assign(this, {code, status});
  }
}

/** Asks for the token; main.js puts a dialog here. */
export const hooks = {askToken: async () => null};

const headers = () => (token ? {Authorization: `Bearer ${token}`} : {});

async function refusal(status, text) {
  try {
    const {error} = JSON.parse(text);
    return new ApiError(error.message, error.code, status);
  } catch {
    return new ApiError(`The server answered ${status}. Try again, or look at its log.`, "unknown", status);
  }
}

async function renewToken() {
  token = await hooks.askToken();
  if (token) sessionStorage.setItem("token", token);
  return Boolean(token);
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, {...options, headers: {...headers(), ...options.headers}});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer. Is spit serve still running?", "offline", 0);
  }
  if (answer.status === 401 && await renewToken()) return ask(path, options);
  if (!answer.ok) throw await refusal(answer.status, await answer.text());
  return answer;
}

export const json = async (path, options) => (await ask(path, options)).json();
export const bytes = async (path, options) => (await ask(path, options)).arrayBuffer();
export const blob = async (path) => (await ask(path)).blob();
export const text = async (path) => (await ask(path)).text();

export async function post(path, body, options = {}) {
  return ask(path, {method: "POST", body: JSON.stringify(body), headers: {"Content-Type": "application/json"}, ...options});
}

/** Send a picture. `tell(share)` gets the share that was sent, then 1 while the server works. */
export function upload(path, form, tell, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => event.lengthComputable && tell(event.loaded / event.total);
    request.upload.onload = () => tell(1);
    request.onload = async () => {
      if (request.status === 401 && await renewToken()) resolve(upload(path, form, tell, signal));
      else if (request.status < 200 || request.status > 299) reject(await refusal(request.status, request.responseText));
      else resolve(JSON.parse(request.responseText));
    };
    request.onerror = () => reject(new ApiError("The server does not answer. Is spit serve still running?", "offline", 0));
    signal?.addEventListener("abort", () => { request.abort(); reject(new DOMException("stopped", "AbortError")); });
    request.send(form);
  });
}

/** The parts of a picture that the server keeps, for Picture.load. */
export function pictureSource(id) {
  const at = `explorer/pictures/${id}`;
  return {at, image: () => blob(`${at}/image.png`), labels: () => bytes(`${at}/labels.bin`),
    parents: () => bytes(`${at}/parents.bin`), tokens: () => bytes(`${at}/tokens.bin`),
    regions: () => bytes(`${at}/regions.bin`), attention: (layer) => bytes(`${at}/attention.bin?layer=${layer}`)};
}

/** Run something long and tell its progress, `{done, total}`, as the server counts it. */
export async function withJob(run, tell) {
  const job = Math.random().toString(36).slice(2, 14);
  let over = false;
  const watch = (async () => {
    await new Promise((wake) => setTimeout(wake, 400)); // short ones need no progress
    while (!over) {
      const state = await json(`explorer/jobs/${job}`).catch(() => ({})); // the answer itself says what went wrong
      if (!over && state.total) tell(state);
      await new Promise((wake) => setTimeout(wake, 300));
    }
  })();
  try {
    return await run(job);
  } finally {
    over = true;
    watch.catch(() => {});
  }
}
