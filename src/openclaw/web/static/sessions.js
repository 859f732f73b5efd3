/** The list of sessions: search in names and in everything that was said, filters, unread and running marks. */

import { age, fill, h } from "./dom.js";
import { actionsOf, attempt } from "./actions.js";
import { icon, iconButton } from "./icons.js";
import { menuButton } from "./menu.js";
import { navigate, route, sessionPath } from "./routes.js";
import { otherAgent, sessions, shortKey, titleOf } from "./state.js";
import { wire } from "./wire.js";

const TYPING_MS = 180;
const FILTERS = [["conversations", "Chats"], ["all", "All"], ["archived", "Archived"]];

/** A text with the words of a search marked. Compares without case; a word is found where it begins.
 * @param {string} text @param {string} query @returns {(Node|string)[]} */
export function highlight(text, query) {
  const words = [...new Set(query.toLowerCase().split(/\s+/).filter(Boolean))].slice(0, 12);
  const low = text.toLowerCase();
  if (words.length === 0 || low.length !== text.length) return [text];
  const parts = [];
  let from = 0;
  while (from < text.length) {
    let at = -1;
    let length = 0;
    for (const word of words) {
      const found = low.indexOf(word, from);
      if (found !== -1 && (at === -1 || found < at || (found === at && word.length > length))) {
        at = found;
        length = word.length;
      }
    }
    if (at === -1) break;
    if (at > from) parts.push(text.slice(from, at));
    parts.push(h("mark", null, text.slice(at, at + length)));
    from = at + length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

class SessionList extends HTMLElement {
  connectedCallback() {
    if (this.box) return;
    this.hits = [];
    this.cursor = null;
    this.field = h("input", { type: "search", class: "searchfield", placeholder: "Search", "aria-label":
      "Search sessions and messages", autocomplete: "off", spellcheck: "false", oninput: () => this.onSearch(),
      onkeydown: (event) => this.onSearchKey(event) });
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "Which sessions" });
    this.box = h("div", { class: "list", onscroll: () => this.onScroll() });
    this.append(h("header", { class: "sidehead" },
      h("div", { class: "row" }, h("span", { class: "searchbox" }, icon("search"), this.field),
        iconButton("New session", "plus", () => this.create())), this.tabs), this.box);
    sessions.onChange(() => this.draw());
    addEventListener("hashchange", () => this.draw());
    setInterval(() => document.visibilityState === "visible" && this.draw(), 60_000);
    this.draw();
  }

  // -- doing ---------------------------------------------------------------------------------------

  focusSearch() {
    this.field.focus();
    this.field.select();
  }

  /** A fresh session; its key is the gateway's choice. */
  async create() {
    const made = await attempt(wire.call("sessions.create", {}), "No new session");
    if (!made) return;
    if (sessions.filter === "archived") sessions.choose({ filter: "conversations" });
    navigate(sessionPath(made.key));
    requestAnimationFrame(() => document.querySelector("oc-chat textarea")?.focus());
  }

  /** Move the mark by `step` rows; Enter opens. */
  move(step) {
    const links = [...this.box.querySelectorAll("a.session")];
    if (links.length === 0) return;
    const at = links.findIndex((link) => link === document.activeElement);
    const here = at === -1 ? links.findIndex((link) => link.getAttribute("aria-current")) : at;
    const next = links[Math.max(0, Math.min(links.length - 1, here + step))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  onSearch() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.find(this.field.value.trim()), TYPING_MS);
  }

  onSearchKey(event) {
    if (event.key === "Escape" && this.field.value) {
      this.field.value = "";
      this.find("");
      event.preventDefault();
    } else if (event.key === "ArrowDown" || event.key === "Enter") {
      this.box.querySelector("a")?.[event.key === "Enter" ? "click" : "focus"]();
      event.preventDefault();
    }
  }

  /** Names and keys through the list, words through the full text. */
  async find(query) {
    this.query = query;
    this.hits = [];
    sessions.choose({ search: query });
    this.draw();
    if (!query) return;
    try {
      const found = await wire.call("sessions.search", { query, limit: 30 });
      if (this.query === query) this.hits = found.hits;
    } catch {
      /* a query without a word in it finds nothing */
    }
    this.draw();
  }

  onScroll() {
    const near = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 400;
    if (near && sessions.hasMore && !this.loading) {
      this.loading = true;
      sessions.load({ more: true }).finally(() => { this.loading = false; });
    }
  }

  // -- drawing -------------------------------------------------------------------------------------

  draw() {
    const focused = this.box.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    const here = route();
    const rows = sessions.list();
    fill(this.tabs, FILTERS.map(([id, label]) => h("button", { "aria-pressed":
      String(sessions.filter === id), onclick: () => sessions.choose({ filter: id }) }, label)));
    fill(this.box, this.query && rows.length > 0 && h("h2", { class: "listhead" }, "Sessions"),
      h("ul", { class: "plain" }, rows.map((row) => this.row(row, here.key))),
      this.query && h("h2", { class: "listhead" }, `Messages${this.hits.length ? "" : ": none"}`),
      h("ul", { class: "plain" }, this.hits.map((hit) => this.hit(hit, here))),
      rows.length === 0 && !this.query && h("p", { class: "empty" }, this.emptyText()));
    if (focused) this.box.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  emptyText() {
    if (!sessions.loaded) return "";
    const main = wire.hello?.snapshot?.sessionDefaults?.mainSessionKey;
    return sessions.filter === "archived" ? "Nothing is archived."
      : ["No sessions yet. ", main && h("a", { href: `#${sessionPath(main)}` }, "Begin with the main one.")];
  }

  row(row, here) {
    const marks = [row.hasActiveRun && "running", row.unread && "unread", row.pinned && "pinned"].filter(Boolean);
    const title = titleOf(row);
    const link = h("a", { class: "session", href: `#${sessionPath(row.key)}`, "data-id": row.key, title: row.key,
      "aria-current": row.key === here ? "page" : null, "data-marks": marks.join(" ") },
    h("span", { class: "dot", "aria-hidden": "true" }),
    h("span", { class: "title" }, row.pinned && icon("pin"), highlight(title, this.query ?? "")),
    h("span", { class: "when" }, age(row.updatedAt)),
    h("span", { class: "preview" }, [otherAgent(row.key), row.lastMessagePreview || shortKey(row.key)].filter(Boolean).join(" · ")),
    marks.length > 0 && h("span", { class: "unseen" }, `, ${marks.join(", ")}`));
    return h("li", null, link, menuButton(`Actions for ${title}`, () => actionsOf(sessions.get(row.key) ?? row), "more"));
  }

  hit(hit, here) {
    const row = sessions.get(hit.sessionKey);
    return h("li", null, h("a", { class: "session hit", href: `#${sessionPath(hit.sessionKey, hit.messageId, hit.sessionId)}`,
      "data-id": hit.messageId, "aria-current": hit.messageId === here.messageId ? "page" : null },
    h("span", { class: "title" }, row ? titleOf(row) : shortKey(hit.sessionKey)),
    h("span", { class: "when" }, age(hit.timestamp)),
    h("span", { class: "preview" }, highlight(hit.snippet, this.query ?? ""))));
  }
}

customElements.define("oc-sessions", SessionList);
