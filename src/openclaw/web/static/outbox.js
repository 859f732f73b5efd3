/**
 * What a person sent, until the gateway has it. Every message goes this way, with or without a connection; its id
 * is the idempotency key, so sending it again after a break never makes two of one. Kept in the browser's storage,
 * so that a closed tab loses nothing.
 */

import { WireError, wire } from "./wire.js";

const PREFIX = "openclaw.outbox.";
const PICTURES = 20;

/** @typedef {{id: string, key: string, text: string, attachments: any[], queueMode?: string, at: number,
 *   state: "waiting"|"sending"|"refused", error?: string}} Item */

class Outbox {
  constructor() {
    /** @type {Map<string, Item>} in the order of sending */
    this.items = new Map();
    /** Pictures that were sent from here: the gateway's history leaves their bytes out. */
    this.pictures = new Map();
    this._watchers = new Set();
    this._sending = false;
  }

  start() {
    for (const item of readStored()) this.items.set(item.id, { ...item, state: "waiting" });
    wire.on("resync", () => this.flush());
  }

  /** `changed(item, sent)`: `sent` is true once, when the gateway has it. */
  onChange(watcher) {
    this._watchers.add(watcher);
    return () => this._watchers.delete(watcher);
  }

  of(key) {
    return [...this.items.values()].filter((item) => item.key === key);
  }

  /** @param {{key: string, text: string, attachments?: any[], queueMode?: string}} message @returns {Item} */
  add({ key, text, attachments = [], queueMode }) {
    const item = { id: crypto.randomUUID?.() ?? randomId(), key, text, attachments, queueMode, at: Date.now(), state: "waiting" };
    this.items.set(item.id, item);
    this._keepPictures(item);
    store(item);
    this._tell(item, false);
    this.flush();
    return item;
  }

  drop(id) {
    const item = this.items.get(id);
    this.items.delete(id);
    forget(id);
    if (item) this._tell(item, false);
  }

  retry(id) {
    const item = this.items.get(id);
    if (item) item.state = "waiting";
    this.flush();
  }

  /** Send what waits, one after the other: the order of a conversation is its meaning. */
  async flush() {
    if (this._sending || wire.status !== "open") return;
    this._sending = true;
    try {
      for (const item of [...this.items.values()]) {
        if (item.state === "waiting" && !(await this._send(item))) break;
      }
    } finally {
      this._sending = false;
    }
    if (wire.status === "open" && [...this.items.values()].some((item) => item.state === "waiting")) this.flush();
  }

  async _send(item) {
    item.state = "sending";
    const params = { sessionKey: item.key, message: item.text, idempotencyKey: item.id };
    if (item.attachments.length) params.attachments = item.attachments;
    if (item.queueMode) params.queueMode = item.queueMode;
    try {
      await wire.call("chat.send", params);
    } catch (error) {
      return this._failed(item, error);
    }
    this.items.delete(item.id);
    forget(item.id);
    this._tell(item, true);
    return true;
  }

  /** Whether to go on with the next one. */
  _failed(item, error) {
    const offline = !(error instanceof WireError) || error.code === "OFFLINE" || error.retryable;
    item.state = offline ? "waiting" : "refused";
    item.error = offline ? undefined : error.message;
    this._tell(item, false);
    return !offline;
  }

  _keepPictures(item) {
    const shown = item.attachments.filter((one) => one.mimeType?.startsWith("image/"))
      .map((one) => `data:${one.mimeType};base64,${one.content}`);
    if (shown.length) this.pictures.set(item.id, shown);
    if (this.pictures.size > PICTURES) this.pictures.delete(this.pictures.keys().next().value);
  }

  _tell(item, sent) {
    for (const watcher of [...this._watchers]) watcher(item, sent);
  }
}

/** Without a secure context there is no `randomUUID`. */
function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function store(item) {
  try {
    localStorage.setItem(PREFIX + item.id, JSON.stringify(item));
  } catch {
    /* too large or no storage: it is kept for as long as this tab lives */
  }
}

function forget(id) {
  try {
    localStorage.removeItem(PREFIX + id);
  } catch {
    /* there was no storage */
  }
}

function readStored() {
  const found = [];
  try {
    for (const name of Object.keys(localStorage).filter((one) => one.startsWith(PREFIX))) {
      const item = JSON.parse(localStorage.getItem(name));
      if (typeof item?.key === "string" && typeof item.text === "string") found.push({ attachments: [], ...item });
    }
  } catch {
    /* what cannot be read is not sent */
  }
  return found.sort((a, b) => a.at - b.at);
}

export const outbox = new Outbox();
