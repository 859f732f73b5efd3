/**
 * The conversation: a window of messages around the place that is read, the reply that is being written, what
 * waits, and the field below. Only what is near the view is in the page; the place is never lost when it changes.
 */

import { announce, fill, h, tokens } from "./dom.js";
import { actionsOf, attempt, restore } from "./actions.js";
import { ChatLog, idOf, seqOf } from "./chatlog.js";
import { icon, iconButton } from "./icons.js";
import { menuButton } from "./menu.js";
import { compactionBoundary, plain, renderLive, renderMessage, resetBoundary } from "./message.js";
import { outbox } from "./outbox.js";
import { navigate } from "./routes.js";
import { otherAgent, sessions, shortKey, textOf, titleOf } from "./state.js";
import { wire } from "./wire.js";
import "./composer.js";

const NEAR_PX = 900;
const BOTTOM_PX = 48;

const sizes = new WeakMap();

/** How much a message says; one that grew is drawn again. */
function sizeOf(message) {
  if (!sizes.has(message)) sizes.set(message, JSON.stringify(message.content ?? "").length);
  return sizes.get(message);
}

class Chat extends HTMLElement {
  connectedCallback() {
    if (this.scroller) return;
    this.units = new Map();
    this.ownTop = null;
    this.head = h("header", { class: "chathead" });
    this.thread = h("div", { class: "thread" });
    this.scroller = h("div", { class: "scroller", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Conversation",
      onscroll: () => this.onScroll() }, this.thread);
    this.latest = h("button", { class: "tolatest", hidden: true, onclick: () => this.toLatest() },
      icon("down"), "Latest");
    this.queue = h("div", { class: "queue" });
    this.composer = h("oc-composer");
    this.append(this.head, this.scroller, this.latest, this.queue, this.composer);
    this.composer.addEventListener("send", (event) => this.send(event.detail));
    this.composer.addEventListener("stop", () => this.stop());
    this.ondragover = (event) => { event.preventDefault(); this.classList.add("dropping"); };
    this.ondragleave = () => this.classList.remove("dropping");
    this.ondrop = (event) => { this.classList.remove("dropping"); this.composer.take(event, event.dataTransfer); };
    // The view becomes smaller when the field or the queue grows; who reads the end goes on reading it.
    new ResizeObserver(() => this.stick && this.toEnd()).observe(this.scroller);
    this.offs = [
      wire.onStatus(() => this.log && this.drawQueue()),
      sessions.onChange(() => this.drawHead()),
      outbox.onChange((item, sent) => this.onOutbox(item, sent)),
      wire.on("chat", (event) => event.sessionKey === this.key && event.state === "final" && announce(textOf(event.message).slice(0, 500))),
    ];
    this.onVisible = () => this.markRead();
    document.addEventListener("visibilitychange", this.onVisible);
  }

  disconnectedCallback() {
    this.log?.close();
    this.offs.forEach((off) => off());
    document.removeEventListener("visibilitychange", this.onVisible);
  }

  /** Show a session, or one message of it. */
  open(key, messageId, windowId) {
    if (key !== this.key) {
      this.key = sessions.lastKey = key;
      this.log?.close();
      this.units.clear();
      this.thread.replaceChildren();
      this.log = new ChatLog(key, () => this.draw());
      this.composer.setKey(key);
      this.stick = true;
    } else if (!messageId) return;
    this.target = messageId;
    this.log.place = { messageId, windowId };
    if (wire.status === "open") this.log.open();
    this.draw();
  }

  // -- doing ---------------------------------------------------------------------------------------

  send(message) {
    this.stick = true;
    outbox.add({ key: this.key, ...message });
    if (this.log.hasNewer) this.toLatest();
  }

  onOutbox(item, sent) {
    if (item.key !== this.key) return;
    if (sent) this.log.acknowledge(item);
    this.draw();
  }

  async stop() {
    const runId = this.log.live?.runId;
    const done = await attempt(wire.call("chat.abort", { sessionKey: this.key, ...(runId ? { runId } : {}) }), "Not stopped");
    if (done) announce("Stopped");
  }

  toLatest() {
    this.stick = true;
    this.target = null;
    this.log.place = {};
    if (this.log.hasNewer) this.log.open();
    this.draw();
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.ownTop = this.scroller.scrollTop;
  }

  onScroll() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const below = scrollHeight - scrollTop - clientHeight;
    // Where this page itself scrolled to says nothing about what its reader wants.
    const own = this.ownTop !== null && Math.abs(scrollTop - this.ownTop) < 2;
    this.ownTop = null;
    if (own) return;
    this.stick = below < BOTTOM_PX && !this.log.hasNewer;
    if (scrollTop < NEAR_PX && this.log.loaded && this.log.canReadBack) this.log.older();
    else this.readOn();
    this.latest.hidden = this.stick || (below < clientHeight && !this.log.hasNewer);
    this.markRead();
  }

  /** Read what comes after, and fill a view that is not full yet. */
  readOn() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    if (!this.log.loaded) return;
    if (this.log.hasNewer && scrollHeight - scrollTop - clientHeight < NEAR_PX) this.log.newer();
    else if (this.log.canReadBack && scrollHeight <= clientHeight) this.log.older();
  }

  markRead() {
    if (this.stick && document.visibilityState === "visible" && this.log?.loaded) sessions.markRead(this.key);
  }

  // -- drawing -------------------------------------------------------------------------------------

  draw() {
    if (!this.log) return;
    const anchor = this.stick ? null : this.anchor();
    this.drawThread();
    this.drawHead();
    this.drawQueue();
    this.composer.setState({ running: this.log.running });
    const top = this.scroller.scrollTop;
    if (this.target) this.showTarget();
    else if (this.stick) this.toEnd();
    else if (anchor?.node.isConnected) this.scroller.scrollTop += anchor.node.getBoundingClientRect().top - anchor.top;
    if (this.scroller.scrollTop !== top) this.ownTop = this.scroller.scrollTop;
    this.latest.hidden = this.stick;
    this.markRead();
    this.readOn();
  }

  /** The first message in view, and where it stands: it shall stand there after drawing too. */
  anchor() {
    const top = this.scroller.getBoundingClientRect().top;
    for (const node of this.thread.children) {
      const box = node.getBoundingClientRect();
      if (box.bottom > top) return { node, top: box.top };
    }
    return null;
  }

  showTarget() {
    const unit = this.units.get(this.target);
    if (!unit) return;
    unit.node.classList.add("found");
    unit.node.scrollIntoView({ block: "center" });
    this.target = null;
    this.stick = false;
  }

  drawThread() {
    const wanted = this.log.loaded ? this.wanted() : [];
    const ids = new Set(wanted.map((unit) => unit.id));
    for (const [id, unit] of this.units) {
      if (!ids.has(id)) {
        unit.node.remove();
        this.units.delete(id);
      }
    }
    let at = this.thread.firstChild;
    for (const { id, sign, build } of wanted) {
      let unit = this.units.get(id);
      if (!unit || unit.sign !== sign) {
        const node = build(unit?.node ?? null);
        if (unit && unit.node !== node) {
          if (at === unit.node) at = node;
          unit.node.replaceWith(node);
        }
        unit = { node, sign };
        this.units.set(id, unit);
      }
      if (unit.node === at) at = at.nextSibling;
      else this.thread.insertBefore(unit.node, at);
    }
    this.drawEmpty(wanted.length === 0);
  }

  drawEmpty(empty) {
    const text = this.log.error ?? (this.log.loaded ? "Nothing was said here yet. Write below; / shows the commands." : "");
    this.thread.dataset.empty = empty ? text : "";
  }

  /** What shall be in the thread, in order: an id, a sign that changes with it, and how to build it. */
  wanted() {
    const { log } = this;
    const results = new Map(log.messages.filter((one) => one.role === "toolResult").map((one) => [one.toolCallId, one]));
    const calls = new Set(log.messages.flatMap((one) => (Array.isArray(one.content) ? one.content : [])
      .filter((block) => block?.type === "toolCall").map((block) => block.id)));
    const units = [];
    let before = null;
    for (const message of log.messages) {
      units.push(...this.boundaries(before, message));
      before = message;
      if (message.role === "toolResult" && calls.has(message.toolCallId)) continue;
      const answered = Array.isArray(message.content) ? message.content.filter((block) => results.has(block?.id)).length : 0;
      const waits = log.running && message.__openclaw.runId === log.live.runId;
      const sign = `${answered}${waits}${sizeOf(message)}`;
      units.push({ id: idOf(message), sign, build: () => renderMessage(message, results, waits, (one) => log.readWhole(one)) });
    }
    units.push(...this.compactions(before, null));
    // A conversation that was just begun anew holds nothing yet.
    if (before && !log.hasNewer && before.window !== log.currentId) units.push(...this.begin(log.currentId));
    return [...units, ...this.ending()];
  }

  /** What is not in the transcript yet: sent from here, being written, failed. */
  ending() {
    const { log } = this;
    const sent = [...log.unconfirmed.values()].filter((item) => !log.pending.some((one) => one.runId === item.id));
    const units = sent.map((item) => ({ id: item.id, sign: "sent", build: () => h("article", { class: "msg user sent" }, plain(item.text)) }));
    if (log.live && !log.hasNewer) units.push({ id: "live", sign: {}, build: (old) => this.buildLive(old) });
    const last = log.messages.at(-1);
    const told = last?.stopReason === "error" && last.__openclaw.runId === log.failure?.runId;
    if (log.failure && !log.live && !told) units.push({ id: "failure", sign: log.failure.text, build: () =>
      h("p", { class: "failed", role: "alert" }, log.failure.text) });
    return units;
  }

  /** A reply that grows fast is drawn less often, so that the page stays quick. */
  buildLive(old) {
    const now = performance.now();
    if (old && now < (this.nextLive ?? 0)) {
      clearTimeout(this.liveTimer);
      this.liveTimer = setTimeout(() => this.draw(), this.nextLive - now);
      return old;
    }
    const node = renderLive(this.log.live, old);
    this.nextLive = performance.now() + Math.min(2000, 8 * (performance.now() - now));
    return node;
  }

  // -- boundaries ----------------------------------------------------------------------------------

  boundaries(before, message) {
    const { log } = this;
    const units = this.compactions(before, message);
    const at = log.windowOf(message.window);
    const begins = before ? before.window !== message.window : !log.hasOlder && at + 1 < log.windows.length;
    return begins ? [...units, ...this.begin(message.window)] : units;
  }

  /** The line above a conversation; the last reset can be taken back there. */
  begin(windowId) {
    const window = this.log.windows[this.log.windowOf(windowId)];
    const undo = windowId === this.log.currentId ? h("button", { class: "link",
      onclick: () => restore(this.key, "Not taken back") }, "Take it back") : null;
    return window ? [{ id: `window:${windowId}`, sign: String(Boolean(undo)), build: () => resetBoundary(window, undo) }] : [];
  }

  /** The compactions that happened between two messages of one window. */
  compactions(before, after) {
    if (this.log.compactions.size === 0) return [];
    const window = (after ?? before)?.window;
    const from = before && before.window === window ? seqOf(before) : after ? seqOf(after) : 0;
    const to = after ? seqOf(after) : before && !this.log.hasNewer ? Infinity : 0;
    return [...this.log.compactions.values()].filter((one) => one.window === window && one.seq > from && one.seq < to)
      .map((one) => ({ id: `compaction:${one.id}`, sign: "", build: () => compactionBoundary(one) }));
  }

  // -- around --------------------------------------------------------------------------------------

  drawHead() {
    const row = sessions.get(this.key) ?? this.log?.info;
    const title = row ? titleOf(row) : shortKey(this.key ?? "");
    const share = row?.totalTokens && row?.contextTokens ? Math.min(100, Math.round((100 * row.totalTokens) / row.contextTokens)) : null;
    const sign = JSON.stringify([this.key, title, row?.model, row?.totalTokens, share, row?.hasActiveRun, this.log?.compacting, row?.archived]);
    if (sign === this.headSign) return;
    this.headSign = sign;
    if (this.key) document.title = `${title} · OpenClaw`;
    fill(this.head, iconButton("Back to the sessions", "back", () => navigate("/"), { class: "narrowonly" }),
    h("div", { class: "headtext" }, h("h1", { title: this.key }, title),
      h("p", { class: "dim" }, [this.key && otherAgent(this.key), row?.model, share !== null && `${tokens(row.totalTokens)} of ${tokens(row.contextTokens)} tokens, ${share} %`,
        this.log?.compacting && "compacting …", row?.archived && "archived"].filter(Boolean).join(" · "))),
    row && menuButton("Actions for this session", () => actionsOf(sessions.get(this.key) ?? row)));
  }

  /** What waits for its turn, and what waits for the connection; each can be taken back. */
  drawQueue() {
    const waiting = this.log.pending.filter((item) => item.runId !== this.log.live?.runId).map((item) => this.chip("queued",
      textOf(item.message), () => attempt(wire.call("chat.abort", { sessionKey: this.key, runId: item.runId }), "Not cancelled")));
    const unsent = outbox.of(this.key).filter((item) => item.state === "refused" || wire.status !== "open")
      .map((item) => this.chip(item.state === "refused" ? `refused: ${item.error}` : "waits for the connection", item.text,
        () => outbox.drop(item.id), item.state === "refused" ? () => outbox.retry(item.id) : null));
    fill(this.queue, waiting, unsent);
  }

  chip(state, text, cancel, again = null) {
    return h("div", { class: "queued" }, h("span", { class: "state" }, state), h("span", { class: "preview" }, text.slice(0, 200)),
      again && h("button", { class: "link", onclick: again }, "Try again"),
      h("button", { class: "quiet", "aria-label": `Cancel: ${text.slice(0, 60)}`, onclick: cancel }, "×"));
  }
}

customElements.define("oc-chat", Chat);
