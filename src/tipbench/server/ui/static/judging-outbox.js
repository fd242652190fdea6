// Changes on their way to the server. They are kept in localStorage, one entry a field, until the server has
// acknowledged them; so a closed tab loses nothing, and two tabs don't send old values over new ones.

const PAUSES_S = [1, 2, 4, 8, 15, 30];
const AT_ONCE = 3; // requests; a page that closes may still have 64 KB of them under way
const TIMEOUT_MS = 15_000;
const HAND_IN_TIMEOUT_MS = 120_000;
const REFUSED = new Set([400, 404, 405, 409, 410, 413, 422]);

export class Outbox {
  #base;
  #prefix;
  #token;
  #entries = new Map(); // storage key → {slot, field, value, id, stored}
  #flying = new Set(); // slots
  #timer = 0;
  #failures = 0;
  #tabs;
  #state = { kind: "saved", message: "" };

  /** hooks: saved(slot, given) with what stands on the server, changed() when `state` is another. */
  constructor(base, batch, token, hooks) {
    this.#base = base;
    this.#prefix = `tipbench-judging/${batch}/`;
    this.#token = token;
    this.hooks = hooks;
    this.#tabs = new BroadcastChannel(this.#prefix);
    this.#tabs.onmessage = ({ data }) => {
      this.#due(data.slot); // what that tab has sent is off this one's list
      hooks.saved(data.slot, data.given);
    };
    addEventListener("online", () => this.#retry());
    addEventListener("beforeunload", (event) => {
      if (this.size) event.preventDefault();
    });
  }

  get size() {
    return this.#entries.size;
  }

  get state() {
    return this.#state;
  }

  /** What an earlier tab could not send: [slot, field, value] each. It is sent now. */
  takeUp() {
    const found = storedEntries(this.#prefix);
    for (const [key, entry] of found) this.#entries.set(key, { ...entry, stored: true });
    if (found.length) this.#state = { kind: "saving", message: "" };
    this.#pump();
    return found.map(([, entry]) => [entry.slot, entry.field, entry.value]);
  }

  isWaiting(slot, field) {
    return this.#entries.has(this.#key(slot, field));
  }

  put(slot, field, value, delay = 0) {
    const entry = { slot, field, value, id: crypto.getRandomValues(new Uint32Array(2)).join("-") };
    const key = this.#key(slot, field);
    entry.stored = store(key, entry);
    this.#entries.set(key, entry);
    if (!this.#failures) this.#set("saving");
    if (delay) setTimeout(() => this.#pump(), delay);
    else this.#pump();
  }

  /** {done}, or {message} with why not, and {first}: the slot of the first item that is not scored. */
  async handIn() {
    const response = await this.#fetch("POST", `${this.#base}/submit`);
    if (!response) return { message: "the server does not answer" };
    if (response.type === "opaqueredirect") return { done: true };
    const body = await response.json().catch(() => null);
    if (response.status === 401) return { message: "your session is over, log in again in another tab" };
    if (response.status === 403) await this.#renewToken();
    const { message, problems = [] } = body?.error ?? { message: `the server answered ${response.status}` };
    return { message: [message, ...problems].join("; "), first: body?.first };
  }

  #key(slot, field) {
    return `${this.#prefix}${slot}/${field}`;
  }

  #pump() {
    if (this.#timer) return; // the server is away; the timer goes on
    const slots = new Set([...this.#entries.values()].map((entry) => entry.slot));
    for (const slot of slots) {
      if (this.#flying.size >= AT_ONCE) return;
      if (!this.#flying.has(slot)) this.#send(slot);
    }
    if (!this.#entries.size && !this.#flying.size && this.#state.kind !== "refused") this.#set("saved");
  }

  async #send(slot) {
    const sent = this.#due(slot);
    if (!sent.length) return;
    this.#flying.add(slot);
    try {
      this.#answered(sent, slot, await this.#request(slot, sent));
    } finally {
      this.#flying.delete(slot);
    }
    this.#pump();
  }

  /** The entries of an item as they stand now: another tab may have sent them, or put later ones in their place. */
  #due(slot) {
    const due = [];
    for (const [key, entry] of [...this.#entries].filter(([, one]) => one.slot === slot)) {
      const stored = entry.stored ? load(key) : entry;
      if (stored) due.push({ key, ...entry, value: stored.value, id: stored.id });
      else this.#entries.delete(key);
    }
    return due;
  }

  async #request(slot, sent) {
    const change = {};
    for (const { field, value } of sent) {
      const [part, name] = field.split(".");
      if (name) (change[part] ??= {})[name] = value;
      else change[part] = value;
    }
    const response = await this.#fetch("PATCH", `${this.#base}/items/${encodeURIComponent(slot)}`, change);
    return { response, body: (await response?.json().catch(() => null)) ?? null };
  }

  /** The response, or null when nobody answers: that is no error here. */
  #fetch(method, url, data) {
    return fetch(url, {
      method,
      keepalive: true,
      redirect: "manual",
      headers: { Accept: "application/json", "Content-Type": "application/json", "X-CSRF-Token": this.#token },
      body: data && JSON.stringify(data),
      signal: AbortSignal.timeout(method === "PATCH" ? TIMEOUT_MS : HAND_IN_TIMEOUT_MS),
    }).catch(() => null);
  }

  #answered(sent, slot, { response, body }) {
    if (response?.ok && body) {
      this.#failures = 0;
      this.#forget(sent);
      this.hooks.saved(slot, body.given);
      this.#tabs.postMessage({ slot, given: body.given });
      if (this.#state.kind !== "refused" && this.#entries.size) this.#set("saving");
    } else if (response && REFUSED.has(response.status)) {
      // A batch that is not there may be somebody else's, who logged in meanwhile: the next opening tries again.
      if (response.status === 404) for (const { key } of sent) this.#entries.delete(key);
      else this.#forget(sent);
      this.#set("refused", body?.error?.message ?? `the server answered ${response.status}`);
    } else {
      this.#wait(response);
    }
  }

  #forget(sent) {
    for (const { key, id } of sent) {
      if (load(key)?.id === id) localStorage.removeItem(key);
      const current = this.#entries.get(key);
      if (current?.id === id || (current?.stored && !load(key))) this.#entries.delete(key);
    }
  }

  #wait(response) {
    const over = response?.status === 401 || response?.type === "opaqueredirect";
    this.#set(over ? "login" : "away");
    if (this.#timer) return;
    const pause = PAUSES_S[Math.min(this.#failures, PAUSES_S.length - 1)];
    this.#failures += 1;
    this.#timer = setTimeout(() => this.#retry(), pause * 1000);
    if (response?.status === 403) this.#renewToken();
  }

  #retry() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#pump();
  }

  /** Whoever logged in again in another tab has a new token; a page of ours carries it. */
  async #renewToken() {
    const page = await fetch(this.#base, { redirect: "manual" }).then((answer) => answer.text()).catch(() => "");
    const meta = new DOMParser().parseFromString(page, "text/html").querySelector("meta[name=csrf-token]");
    if (!meta?.content || meta.content === this.#token) return;
    this.#token = meta.content;
    this.#retry();
  }

  #set(kind, message = "") {
    if (kind === this.#state.kind && message === this.#state.message) return;
    this.#state = { kind, message };
    this.hooks.changed();
  }
}

function storedEntries(prefix) {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
    return keys.map((key) => [key, load(key)]).filter(([, entry]) => entry);
  } catch {
    return []; // no storage in this browser: changes are kept in memory alone
  }
}

function store(key, entry) {
  try {
    localStorage.setItem(key, JSON.stringify(entry));
    return true;
  } catch {
    return false;
  }
}

function load(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}
