/**
 * One conversation as far as this page holds it: a window of its messages, what runs, what waits. Bounded: reading
 * back lets go of what is far below, and reading on lets go of what is far above. The gateway's rows are the truth;
 * events only bring them sooner, and `sync` makes it right after any break.
 */

import { oncePerFrame, textOf } from "./state.js";
import { wire } from "./wire.js";

const PAGE = 80;
export const MOST_HELD = 240;
const MAX_CHARS = 40_000;
const WHOLE_CHARS = 20_000_000;
const MAX_BYTES = 1_500_000;
const SYNC_MS = 120;

/** @typedef {{runId: string, text: string, thinking: string, phase: string, tool: string, startedAt: number, told: boolean}} Live */

export class ChatLog {
  /** @param {string} key @param {(log: ChatLog) => void} changed called at most once per frame */
  constructor(key, changed) {
    this.key = key;
    this.messages = [];
    this.windows = [];
    /** @type {Map<string, any>} where the context was made smaller, by id */
    this.compactions = new Map();
    this.pending = [];
    this.unconfirmed = new Map();
    /** @type {Live|null} */
    this.live = null;
    this.failure = null;
    this.compacting = false;
    this.info = null;
    this.error = null;
    this.loaded = this.hasOlder = this.hasNewer = this.closed = false;
    this.currentId = null;
    /** @type {{messageId?: string|null, windowId?: string|null}} where to begin reading */
    this.place = {};
    this.cursor = null;
    this.offset = 0;
    this.heard = 0;
    this.busy = null;
    this.changed = oncePerFrame(() => this.closed || changed(this));
    this.offs = [
      wire.on("chat", (event) => event.sessionKey === key && this.onChat(event)),
      wire.on("agent", (event) => event.sessionKey === key && this.onAgent(event)),
      wire.on("session.message", (event) => event.sessionKey === key && this.onMessage(event)),
      wire.on("sessions.changed", (event) => event.sessionKey === key && this.onRow(event)),
      wire.on("session.operation", (event) => event.sessionKey === key && this.onOperation(event)),
      wire.on("resync", () => this.soon(0)),
    ];
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.offs.forEach((off) => off());
  }

  get running() {
    return this.live !== null;
  }

  // -- reading -------------------------------------------------------------------------------------

  /** Read the newest part, or the part at `place`. */
  async open() {
    const { messageId = null, windowId = null } = this.place;
    const params = { limit: PAGE };
    if (messageId) params.messageId = messageId;
    if (windowId) params.sessionId = windowId;
    const heard = this.heard;
    const page = await this.ask(params);
    if (!page) {
      if (!messageId || !this.error) return;
      this.place = {};
      return void this.open();
    }
    this.place = {};
    this.loaded = true;
    this.messages = this.take(page);
    this.hasOlder = page.hasMore;
    this.offset = page.nextOffset ?? 0;
    this.hasNewer = Boolean(messageId) || (windowId !== null && page.deltaCursor === undefined);
    this.cursor = page.deltaCursor ?? null;
    this.currentId = page.sessionInfo?.sessionId ?? page.sessionId ?? null;
    this.takeState(page, heard);
    this.changed();
    await this.readWindows();
    if (windowId && !this.cursor) {
      // An earlier conversation has no end to go on from; the current one has.
      const now = await this.ask({ limit: 1 });
      this.cursor = now?.deltaCursor ?? null;
    }
  }

  async ask(params) {
    try {
      const page = await wire.call("chat.history", { sessionKey: this.key, maxChars: MAX_CHARS, maxBytes: MAX_BYTES, ...params });
      this.error = null;
      return this.closed ? null : page;
    } catch (error) {
      if (error.code !== "OFFLINE") this.error = error.message;
      this.changed();
      return null;
    }
  }

  /** A message of which only the beginning came takes its place whole. */
  async readWhole({ window, __openclaw: { id } }) {
    const params = { sessionKey: this.key, messageId: id, sessionId: window, maxChars: WHOLE_CHARS };
    const { message, unavailableReason } = await wire.call("chat.message.get", params);
    if (!message) throw new Error(unavailableReason.replace("_", " "));
    this.merge([{ ...message, window }]);
    this.changed();
  }

  /** The conversations of this session, the newest first; boundaries are drawn between them. */
  async readWindows() {
    if (!wire.has("sessions.windows")) return;
    try {
      this.windows = (await wire.call("sessions.windows", { key: this.key })).windows;
      this.changed();
    } catch {
      /* boundaries are missing, nothing else */
    }
  }

  windowOf(id) {
    return this.windows.findIndex((one) => one.sessionId === id);
  }

  /** Whether there is something above what is held, in this window or in an earlier one. */
  get canReadBack() {
    if (this.hasOlder) return true;
    const at = this.windowOf(this.messages[0]?.window ?? this.currentId);
    return at !== -1 && at + 1 < this.windows.length;
  }

  /** One page further back. Only one reading at a time. */
  older() {
    return this.once(async () => {
      if (!this.canReadBack) return;
      const oldest = this.messages[0]?.window ?? this.currentId;
      const params = { limit: PAGE };
      if (this.hasOlder && this.offset !== null) Object.assign(params, { offset: this.offset, sessionId: oldest });
      else if (this.hasOlder) Object.assign(params, { messageId: idOf(this.messages[0]), limit: 2 * PAGE, sessionId: oldest });
      else params.sessionId = this.windows[this.windowOf(oldest) + 1].sessionId;
      const page = await this.ask(params);
      if (!page) return;
      this.hasOlder = page.hasMore;
      this.offset = page.nextOffset ?? 0;
      this.merge(this.take(page));
      if (page.messages.length === 0 && !page.hasMore) this.windows = this.windows.filter((one) => one.sessionId !== params.sessionId);
      if (this.messages.length > MOST_HELD) {
        this.messages.length = MOST_HELD;
        this.hasNewer = true;
      }
      this.changed();
    });
  }

  /** One page further on, after some of the newest were let go or never read. */
  newer() {
    return this.once(async () => {
      const last = this.messages.at(-1);
      if (!this.hasNewer || !last) return;
      let page = await this.ask({ limit: PAGE, messageId: idOf(last), sessionId: last.window });
      if (!page) return;
      let fresh = this.take(page).filter((one) => !this.has(one));
      const at = this.windowOf(last.window);
      if (fresh.length === 0 && at > 0) {
        const next = this.windows[at - 1];
        page = next.firstMessageId && (await this.ask({ limit: PAGE, messageId: next.firstMessageId, sessionId: next.sessionId }));
        fresh = page ? this.take(page) : [];
      }
      if (fresh.length === 0) {
        this.hasNewer = false;
        this.soon(0);
      }
      this.merge(fresh);
      const extra = this.messages.length - MOST_HELD;
      if (extra > 0) this.letGoAbove(extra);
      this.changed();
    });
  }

  letGoAbove(extra) {
    const gone = this.messages.splice(0, extra);
    this.hasOlder = gone.at(-1).window === this.messages[0].window;
    // Rows that are not shown count too, so the place is looked up by a message when it is needed again.
    this.offset = null;
  }

  async once(work) {
    if (this.busy) return this.busy;
    this.busy = work().finally(() => { this.busy = null; });
    return this.busy;
  }

  // -- merging -------------------------------------------------------------------------------------

  has(message) {
    return this.messages.some((one) => idOf(one) === idOf(message));
  }

  /** Each message once, in its place. */
  merge(fresh) {
    const known = new Map(this.messages.map((one) => [idOf(one), one]));
    for (const one of fresh) known.set(idOf(one), one);
    const rank = new Map(this.windows.map((one, i) => [one.sessionId, -i]));
    const place = (one) => rank.get(one.window) ?? (one.window === this.currentId ? 1 : -1e6);
    this.messages = [...known.values()].sort((a, b) => place(a) - place(b) || seqOf(a) - seqOf(b));
  }

  /** Come to the truth soon: what came since, what runs, what waits. */
  soon(ms = SYNC_MS) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.sync(), ms);
  }

  async sync() {
    if (this.closed) return;
    if (!this.loaded || !this.cursor) return void this.open();
    const heard = this.heard;
    const asked = [...this.unconfirmed.keys()];
    const page = await this.ask({ cursor: this.cursor, limit: 500 });
    if (!page) return;
    if (page.kind === "reset") {
      this.live = null;
      this.unconfirmed.clear();
      return void this.open();
    }
    this.cursor = page.deltaCursor;
    if (!this.hasNewer) this.append(page.messages.map((one) => ({ ...one.message, window: one.sessionId })));
    // A message that the gateway acknowledged before we asked waits, or was said, or was answered as a command.
    for (const id of asked) this.unconfirmed.delete(id);
    this.mark(page);
    this.takeState(page, heard);
    this.changed();
  }

  /** The messages of a page, each with its window. */
  take(page) {
    this.mark(page);
    return page.messages.map((message) => ({ ...message, window: page.sessionId }));
  }

  mark(page) {
    for (const one of page.compactions ?? []) this.compactions.set(one.id, { ...one, window: page.sessionId });
  }

  append(fresh) {
    this.merge(fresh);
    for (const one of fresh) this.unconfirmed.delete(one.idempotencyKey?.replace(/:user$/, ""));
    const extra = this.messages.length - MOST_HELD;
    if (extra > PAGE) this.letGoAbove(extra);
  }

  takeState(page, heard) {
    this.info = page.sessionInfo ?? this.info;
    this.pending = page.pendingInputs?.items ?? [];
    if (heard !== this.heard) return this.soon();
    const run = page.inFlightRun;
    if (!run) this.live = null;
    else if (this.live?.runId !== run.runId) {
      // The text of a step that is stored already is not told again.
      const told = this.messages.some((one) => one.__openclaw.runId === run.runId && textOf(one) === run.text);
      this.live = newLive(run.runId, told ? "" : run.text, run.startedAt);
    }
    return undefined;
  }

  // -- hearing -------------------------------------------------------------------------------------

  liveOf(event) {
    if (this.live?.runId !== event.runId) this.live = newLive(event.runId, "", event.ts ?? Date.now());
    return this.live;
  }

  onChat(event) {
    this.heard += 1;
    if (event.state === "status") this.liveOf(event).phase = event.phase;
    else if (event.state === "delta") {
      const live = this.liveOf(event);
      if (!live.told) Object.assign(live, { text: textOf(event.message), phase: "" });
    } else {
      if (this.live?.runId === event.runId) this.live = null;
      this.unconfirmed.delete(event.runId);
      this.failure = event.state === "error" ? { runId: event.runId, text: event.errorMessage } : null;
      this.soon();
    }
    this.changed();
  }

  onAgent({ stream, data, ...event }) {
    if (stream === "lifecycle" && (data.phase === "end" || data.phase === "error")) return;
    this.heard += 1;
    const live = this.liveOf(event);
    if (stream === "lifecycle" && data.phase === "model") Object.assign(live, { text: "", thinking: "", told: false, phase: "" });
    else if (stream === "lifecycle" && data.phase === "start") this.failure = null;
    else if (stream === "thinking" && !live.told) live.thinking = data.text;
    else if (stream === "tool") live.tool = data.phase === "start" ? data.name : "";
    else if (stream === "run_status") live.phase = data.message ?? data.phase;
    else if (stream === "compaction") live.phase = data.phase === "start" ? "compacting the context" : "";
    this.changed();
  }

  onMessage(event) {
    this.heard += 1;
    const message = { ...event.message, window: event.sessionId };
    if (message.role === "assistant" && this.live?.runId === message.__openclaw?.runId) {
      Object.assign(this.live, { text: "", thinking: "", told: true });
    }
    if (this.loaded && !this.hasNewer && event.sessionId === this.currentId) {
      if (this.offset !== null && !this.has(message)) this.offset += 1;
      this.append([message]);
    } else this.soon();
    this.changed();
  }

  onRow(event) {
    if (event.session) this.info = event.session;
    this.soon();
    this.changed();
  }

  onOperation(event) {
    this.compacting = event.phase === "start";
    this.soon();
    this.changed();
  }

  /** The gateway has acknowledged what was sent from here; shown until the transcript shows it. */
  acknowledge(item) {
    this.unconfirmed.set(item.id, item);
    this.soon(0);
    this.changed();
  }
}

function newLive(runId, text, startedAt) {
  return { runId, text, thinking: "", phase: "", tool: "", startedAt, told: false };
}

export function idOf(message) {
  return message.__openclaw.id;
}

export function seqOf(message) {
  return message.__openclaw.seq;
}
