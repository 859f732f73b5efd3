/**
 * The sessions as this page knows them: rows of the gateway, kept up to date by its events. Nothing is decided
 * here that the gateway decides; after a break everything is read anew.
 */

import { wire } from "./wire.js";

const PAGE = 100;
const LOOK_AGAIN_MS = 400;
/** More rows than these are read together. */
const MOST_LOOKED_UP = 10;

/** What people call a session; a helper by its task. @param {any} row */
export function titleOf(row) {
  return row.label || row.displayName || row.derivedTitle?.replace(/^\[Subagent Task\] /, "") || shortKey(row.key);
}

/** `agent:main:telegram:direct:7` as `telegram:direct:7`. @param {string} key */
export function shortKey(key) {
  return key.startsWith("agent:") ? key.split(":").slice(2).join(":") : key;
}

/** The agent of a session, unless it is the one that everybody begins with. @param {string} key */
export function otherAgent(key) {
  const agent = key.startsWith("agent:") && key.split(":")[1];
  return agent && agent !== wire.hello?.snapshot?.sessionDefaults?.defaultAgentId ? agent : null;
}

/** Whether a row is somebody's conversation, and not a helper's or a schedule's. */
export function isConversation(row) {
  return !row.isBackground && !row.spawnedBy;
}

/** A call for each change, at most once per frame; hidden pages have no frames, so a timer helps out. */
export function oncePerFrame(act) {
  let waiting = false;
  const run = () => {
    if (waiting) {
      waiting = false;
      act();
    }
  };
  return () => {
    if (waiting) return;
    waiting = true;
    if (document.visibilityState === "visible") requestAnimationFrame(run);
    setTimeout(run, 100);
  };
}

class Sessions {
  constructor() {
    /** @type {Map<string, any>} */
    this.rows = new Map();
    /** Rows that were shown before: a hit of a search still has its title. */
    this.known = new Map();
    /** @type {"conversations"|"all"|"archived"} */
    this.filter = "conversations";
    this.search = "";
    this.hasMore = false;
    this.loaded = false;
    this.lastKey = null;
    this._watchers = new Set();
    this._ask = 0;
    this._stale = new Set();
    this._staleTimer = 0;
    this._tell = oncePerFrame(() => this._watchers.forEach((watcher) => watcher()));
  }

  start() {
    wire.on("resync", () => this.load());
    wire.on("sessions.changed", (event) => this._changed(event));
    wire.on("session.message", (event) => this._message(event));
  }

  onChange(watcher) {
    this._watchers.add(watcher);
    return () => this._watchers.delete(watcher);
  }

  get(key) {
    return this.rows.get(key) ?? this.known.get(key);
  }

  /** The rows to show: pinned ones first, then the newest. */
  list() {
    const time = (row) => row.updatedAt ?? 0;
    return [...this.rows.values()].filter((row) => this._belongs(row))
      .sort((a, b) => (b.pinned === true) - (a.pinned === true) || time(b) - time(a) || (a.key < b.key ? -1 : 1));
  }

  /** Read the list anew, as far as it was shown; with `more` one page further. */
  async load({ more = false } = {}) {
    const ask = ++this._ask;
    const shown = this.list().length;
    const params = { includeDerivedTitles: true, includeLastMessage: true, archived: this.filter === "archived",
      limit: more ? shown + PAGE : Math.max(PAGE, shown) };
    if (this.filter === "conversations") Object.assign(params, { excludeSubagents: true, excludeCron: true });
    if (this.search) params.search = this.search;
    let answer;
    try {
      answer = await wire.call("sessions.list", params);
    } catch (error) {
      if (error.code !== "OFFLINE") console.error("sessions.list", error);
      return;
    }
    if (ask !== this._ask) return;
    if (this.known.size > 2000) this.known.clear();
    for (const [key, row] of this.rows) this.known.set(key, row);
    this.rows = new Map(answer.sessions.map((row) => [row.key, row]));
    this.hasMore = answer.hasMore;
    this.loaded = true;
    this._tell();
  }

  choose({ filter = this.filter, search = this.search }) {
    if (filter === this.filter && search === this.search) return;
    Object.assign(this, { filter, search });
    this.load();
  }

  /** Change fields of a session. Rejects as the wire does. */
  patch(key, changes) {
    return wire.call("sessions.patch", { key, ...changes });
  }

  /** A person looks at the end of this session now. */
  async markRead(key) {
    const row = this.rows.get(key);
    if (!row?.unread || row.reading) return;
    row.reading = true;
    try {
      await this.patch(key, { unread: false });
      row.unread = false;
    } catch {
      /* the next message or the next visit tries again */
    } finally {
      row.reading = false;
      this._tell();
    }
  }

  _belongs(row) {
    if (this.search) return true;
    if (this.filter === "archived") return row.archived;
    return !row.archived && (this.filter === "all" || isConversation(row));
  }

  _changed(event) {
    const { sessionKey: key, session, reason } = event;
    if (reason === "delete" || session === null || session === undefined) this.rows.delete(key);
    else {
      const old = this.rows.get(key);
      if (!old && (this.search || !this._belongs(session))) return;
      // Events carry neither title nor preview: those that we know stay until they are looked up again.
      const { derivedTitle, lastMessagePreview } = old ?? {};
      this.rows.set(key, { derivedTitle, lastMessagePreview, ...session });
      if (!old || reason) this._lookUp(key);
    }
    this._tell();
  }

  _message(event) {
    const row = this.rows.get(event.sessionKey);
    if (!row) return;
    const text = textOf(event.message);
    if (text && event.message.role !== "toolResult") row.lastMessagePreview = text.slice(0, 160);
    row.unread = event.session?.unread ?? row.unread;
    row.updatedAt = event.session?.updatedAt ?? row.updatedAt;
    this._tell();
  }

  _lookUp(key) {
    this._stale.add(key);
    clearTimeout(this._staleTimer);
    this._staleTimer = setTimeout(() => this._describe(), LOOK_AGAIN_MS);
  }

  async _describe() {
    const keys = [...this._stale];
    this._stale.clear();
    if (keys.length > MOST_LOOKED_UP) return void this.load();
    for (const key of keys) {
      try {
        const params = { key, includeDerivedTitles: true, includeLastMessage: true };
        const { session } = await wire.call("sessions.describe", params);
        if (session && this.rows.has(key)) this.rows.set(key, session);
      } catch {
        return undefined;
      }
      this._tell();
    }
    return undefined;
  }
}

/** The words of a message, without thinking and tool calls. @param {any} message */
export function textOf(message) {
  const content = message?.content;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.filter((block) => block?.type === "text" && typeof block.text === "string")
    .map((block) => block.text).join("\n");
}

export const sessions = new Sessions();
