/**
 * The live tree of sessions and their helpers: how each does, for how long, with how many tokens, at what cost.
 * It is read once and then kept by events; only the lines near the view are elements.
 */

import { announce, duration, fill, h, money, notice } from "./dom.js";
import { ask, attempt } from "./actions.js";
import { registerPanel } from "./app.js";
import { Family, kindOf, parentOf, stateOf } from "./family.js";
import { gauge } from "./gauge.js";
import { icon } from "./icons.js";
import { badge, button, choice, Panel, sure } from "./panel.js";
import { navigate, sessionPath } from "./routes.js";
import { titleOf } from "./state.js";
import { wire } from "./wire.js";

const MARGIN = 10;
const STOP_MS = 60_000;
const FILTERS = [["all", "All"], ["running", "Running"], ["archived", "With archived"]];

class Tree extends Panel {
  build() {
    this.family = new Family();
    this.filter = "all";
    this.lines = [];
    this.tools = h("div");
    this.frame("Tree", this.tools, button("Fold or unfold", () => this.foldAll()));
    this.summary = h("p", { class: "dim" });
    this.window = h("div", { class: "treewindow", role: "presentation" });
    this.pad = h("div", { class: "treepad", role: "presentation" }, this.window);
    this.view = h("div", { class: "treeview", role: "tree", tabindex: "0", "aria-label": "Sessions and their helpers",
      onscroll: () => this.redraw(), onkeydown: (event) => this.onKey(event), onclick: (event) => this.onClick(event) }, this.pad);
    this.body.append(this.summary, h("div", { class: "treeline treehead", "aria-hidden": "true" }, ["", "State", "Runtime", "Context", "Cost"].map((word, i) =>
      h("span", { class: ["", "", "time", "context", "cost"][i] }, word))), this.view, h("p", { class: "hint keyhint" }, "Arrows move, Enter opens, s steers, x stops."));
  }

  connectedCallback() {
    super.connectedCallback();
    this.offs.push(wire.on("sessions.changed", (event) => this.changed(event)));
    this.timer = setInterval(() => this.tick(), 1000);
    const size = new ResizeObserver(() => this.redraw());
    size.observe(this.view);
    this.offs.push(() => size.disconnect());
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    clearInterval(this.timer);
  }

  // -- what is known -------------------------------------------------------------------------------

  async load() {
    this.meanwhile = [];
    const answer = await wire.call("sessions.tree", { includeArchived: this.filter === "archived" });
    this.skew = answer.ts - Date.now();
    this.family.rows = new Map(answer.nodes.map((row) => [row.key, row]));
    // What was told while the answer was on its way may be newer than the answer.
    this.meanwhile.forEach((event) => this.change(event));
    return answer;
  }

  changed(event) {
    if (this.reading) this.meanwhile.push(event);
    this.change(event);
    this.redraw();
  }

  change({ sessionKey: key, session, reason, phase }) {
    const old = this.family.rows.get(key);
    if (!session || reason === "delete") this.family.rows.delete(key);
    else {
      const above = parentOf(session);
      if (session.archived && this.filter !== "archived" && above) this.family.rows.delete(key);
      else if (old || this.family.rows.has(above)) this.family.put(session, phase === "end" || phase === "error");
      else if (above) this.refresh();
      if (old?.hasActiveRun && !session.hasActiveRun) announce(`${titleOf({ ...old, ...session })}: ${stateOf(session)}`);
    }
  }

  // -- drawing -------------------------------------------------------------------------------------

  draw(data) {
    this.lines = this.family.lines((row) => this.filter !== "running" || row.hasActiveRun);
    const rows = [...this.family.rows.values()];
    const running = rows.filter((row) => row.hasActiveRun).length;
    const cost = rows.reduce((sum, row) => sum + (row.estimatedCostUsd ?? 0), 0);
    this.summary.textContent = rows.length ? `${rows.length} sessions, ${running} running, ${money(cost)}${data.hasMore ? "; older helpers are not shown" : ""}` : "";
    if (this.drawn !== this.filter) {
      this.drawn = this.filter;
      fill(this.tools, choice("Which sessions", FILTERS, this.filter, (filter) => {
        this.filter = filter;
        this.refresh();
      }));
    }
    this.drawLines();
  }

  drawLines() {
    const none = this.lines.length === 0;
    this.view.classList.toggle("none", none);
    if (none) {
      this.at = null;
      this.view.removeAttribute("aria-activedescendant");
      fill(this.window, h("p", { class: "empty" }, this.filter === "running" ? "Nobody works at the moment."
        : "No session has helpers yet. When an agent asks others for help, they appear here."));
      this.pad.style.setProperty("height", "auto");
      this.window.style.setProperty("transform", "none");
      return;
    }
    const height = this.rowHeight();
    const first = Math.max(0, Math.floor(this.view.scrollTop / height) - MARGIN);
    const last = Math.min(this.lines.length, Math.ceil((this.view.scrollTop + this.view.clientHeight) / height) + MARGIN);
    if (!this.lines.some((line) => line.row.key === this.at)) this.at = this.lines[0].row.key;
    this.pad.style.setProperty("height", `${this.lines.length * height}px`);
    this.window.style.setProperty("transform", `translateY(${first * height}px)`);
    const old = new Map([...this.window.children].map((element) => [element.dataset.key, element]));
    const shown = this.lines.slice(first, last).map((line) => {
      const sign = JSON.stringify([line.row, line.depth, line.at, line.of, line.children, line.running, line.open, line.row.key === this.at]);
      const known = old.get(line.row.key);
      if (known?.sign === sign) return known;
      const element = this.line(line);
      element.sign = sign;
      return element;
    });
    if (shown.some((element, i) => element !== this.window.children[i]) || shown.length !== this.window.children.length) {
      fill(this.window, shown);
    }
    this.view.setAttribute("aria-activedescendant", this.window.querySelector("[aria-selected=true]")?.id ?? "");
  }

  rowHeight() {
    return parseFloat(getComputedStyle(this.view).getPropertyValue("--row")) || 36;
  }

  line({ row, depth, at, of, children, running, open }) {
    const state = stateOf(row);
    const title = titleOf(row);
    const lasted = this.lasted(row);
    const words = [title, state, lasted, row.totalTokens && `${row.totalTokens} tokens`, row.estimatedCostUsd && money(row.estimatedCostUsd),
      children && `${children} helpers, ${running} running below`].filter(Boolean).join(", ");
    const twist = children > 0
      ? h("span", { class: "twist", "data-do": "fold", "aria-hidden": "true" }, icon("chevron"))
      : h("span", { class: "twist" });
    const deed = (name, label, picture) => h("button", { type: "button", class: "iconbutton", tabindex: "-1", "data-do": name,
      title: label, "aria-label": `${label}: ${title}` }, icon(picture));
    const element = h("div", { class: "treeline", id: `node-${row.key}`, role: "treeitem", "data-key": row.key, "data-state": state,
      "aria-label": words, "aria-level": depth + 1, "aria-posinset": at, "aria-setsize": of,
      "aria-expanded": children > 0 ? String(open) : null, "aria-selected": String(row.key === this.at) },
    h("span", { class: "name" }, twist, h("span", { class: `dot ${kindOf(state)}` }),
      h("a", { href: `#${sessionPath(row.key)}`, tabindex: "-1", title: row.key }, title),
      !open && running > 0 && h("span", { class: "hint" }, `${running} running`)),
    h("span", { class: "state" }, badge(state, kindOf(state)), row.archived && h("span", { class: "hint" }, " archived")),
    h("span", { class: "time", "data-from": row.hasActiveRun ? row.startedAt : null }, lasted),
    h("span", { class: "context" }, gauge(row)), h("span", { class: "cost" }, money(row.estimatedCostUsd ?? null)),
    h("span", { class: "deeds" }, deed("steer", "Steer", "send"), row.hasActiveRun || running > 0 ? deed("stop", "Stop", "stop") : null));
    element.style.setProperty("--depth", Math.min(depth, 12));
    return element;
  }

  lasted(row) {
    if (!row.hasActiveRun) return duration(row.task?.runtimeMs ?? row.runtimeMs ?? null);
    return row.startedAt ? duration(Math.max(0, Date.now() + this.skew - row.startedAt)) : "";
  }

  /** Once a second, and only what is seen: how long the running ones have been at it. */
  tick() {
    if (document.visibilityState !== "visible" || this.skew === undefined) return;
    for (const place of this.window.querySelectorAll("[data-from]")) {
      const text = duration(Math.max(0, Date.now() + this.skew - Number(place.dataset.from)));
      if (place.textContent !== text) place.textContent = text;
    }
  }

  // -- doing ---------------------------------------------------------------------------------------

  foldAll() {
    this.family.folded = new Set(this.family.folded.size ? [] : this.family.rows.keys());
    this.redraw();
  }

  fold(key, fold = !this.family.folded.has(key)) {
    this.family.folded[fold ? "add" : "delete"](key);
    this.redraw();
  }

  select(index) {
    const line = this.lines[Math.max(0, Math.min(this.lines.length - 1, index))];
    if (!line) return;
    this.at = line.row.key;
    const height = this.rowHeight();
    const top = this.lines.indexOf(line) * height;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    else if (top + height > this.view.scrollTop + this.view.clientHeight) this.view.scrollTop = top + height - this.view.clientHeight;
    this.redraw();
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const index = this.lines.findIndex((line) => line.row.key === this.at);
    const line = this.lines[index];
    if (!line) return;
    const page = Math.max(1, Math.floor(this.view.clientHeight / this.rowHeight()) - 1);
    const above = () => {
      let at = index;
      while (at > 0 && this.lines[at].depth >= line.depth) at -= 1;
      return at;
    };
    const key = line.row.key;
    const keys = {
      ArrowDown: () => this.select(index + 1), ArrowUp: () => this.select(index - 1), j: () => this.select(index + 1),
      k: () => this.select(index - 1), Home: () => this.select(0), End: () => this.select(this.lines.length - 1),
      PageDown: () => this.select(index + page), PageUp: () => this.select(index - page),
      ArrowRight: () => (line.children && !line.open ? this.fold(key, false) : line.open && this.select(index + 1)),
      ArrowLeft: () => (line.open ? this.fold(key, true) : line.depth > 0 && this.select(above())),
      " ": () => line.children && this.fold(key), Enter: () => navigate(sessionPath(key)), s: () => this.steer(key), x: () => this.stop(key),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  onClick(event) {
    const key = event.target.closest("[data-key]")?.dataset.key;
    if (!key) return;
    this.at = key;
    const deed = event.target.closest("[data-do]")?.dataset.do;
    if (deed) this[deed](key);
    else if (!event.target.closest("a")) navigate(sessionPath(key));
    this.redraw();
  }

  steer(key) {
    const row = this.family.rows.get(key);
    const field = h("textarea", { rows: 4, "aria-label": "Message", placeholder: row.hasActiveRun
      ? "Taken in by the turn in progress" : "Begins a turn" });
    ask(`${row.hasActiveRun ? "Steer" : "Message to"} ${titleOf(row)}`, field, "Send", async () => {
      const message = field.value.trim();
      if (message && await attempt(wire.call("sessions.steer", { key, message }), "Not sent")) notice("Sent.", { seconds: 4 });
      this.view.focus();
    });
  }

  /** Stop it and everything below it; the gateway says how that went. */
  async stop(key) {
    const row = this.family.rows.get(key);
    const below = this.family.below(key).filter((one) => one.hasActiveRun).length;
    if (!row.hasActiveRun && below === 0) return notice(`${titleOf(row)} does not run.`, { seconds: 4 });
    const text = below ? `Its turn ends now, and so do those of ${below} below it.` : "Its turn ends now. What it has done stays.";
    const agreed = await sure(`Stop ${titleOf(row)}?`, text, "Stop");
    this.view.focus();
    if (!agreed) return undefined;
    const idempotencyKey = `web-stop-${Date.now()}-${Math.random().toString(36).slice(2)}`;
    const off = wire.on("chat", (event) => {
      if (event.runId !== idempotencyKey || (event.state !== "final" && event.state !== "error")) return;
      off();
      notice(event.message?.content?.[0]?.text ?? event.errorMessage ?? "Stopped.");
    });
    setTimeout(off, STOP_MS);
    if (!await attempt(wire.call("chat.send", { sessionKey: key, message: "/stop", idempotencyKey }), "Not stopped")) off();
    return undefined;
  }
}

customElements.define("oc-tree", Tree);
registerPanel({ id: "tree", title: "Tree", icon: "tree", element: "oc-tree", order: 10 });
