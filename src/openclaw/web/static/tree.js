/**
 * The live tree of sessions and their helpers: how each does, for how long, with how many tokens, at what cost.
 * It is read once and then kept by events; only the lines near the view are elements.
 */

import { announce, duration, fill, h, money, notice } from "./dom.js";
import { ask, attempt } from "./actions.js";
import { Family, kindOf, parentOf, stateOf } from "./family.js";
import { gauge } from "./gauge.js";
import { icon } from "./icons.js";
import { addPanel, badge, button, choice, Panel, sure } from "./panel.js";
import { navigate, sessionPath } from "./routes.js";
import { titleOf } from "./state.js";
import { wire } from "./wire.js";

const MARGIN = 10;
const FILTERS = [["all", "All"], ["running", "Running"], ["archived", "With archived"]];
const HEADS = [["name", ""], ["state", "State"], ["time", "Runtime"], ["context", "Context"], ["cost", "Cost"]];

class Tree extends Panel {
  build() {
    this.family = new Family();
    this.filter = "all";
    this.frame("Tree", choice("Which sessions", FILTERS, "all", (filter) => {
      this.filter = filter;
      this.refresh();
    }), button("Fold or unfold", () => this.foldAll()));
    this.summary = h("p", { class: "dim" });
    this.window = h("div", { class: "treewindow", role: "presentation" });
    this.pad = h("div", { class: "treepad", role: "presentation" }, this.window);
    this.view = h("div", { class: "treeview", role: "tree", tabindex: "0", "aria-label": "Sessions and their helpers",
      onscroll: () => this.redraw(), onkeydown: (event) => this.onKey(event), onclick: (event) => this.onClick(event) }, this.pad);
    this.body.append(this.summary, h("div", { class: "treeline treehead", "aria-hidden": "true" },
      HEADS.map(([name, word]) => h("span", { class: name }, word))), this.view,
    h("p", { class: "hint keyhint" }, "Arrows move, Enter opens, s steers, x stops."));
  }

  connectedCallback() {
    super.connectedCallback();
    const timer = setInterval(() => this.tick(), 1000);
    const size = new ResizeObserver(() => this.redraw());
    size.observe(this.view);
    this.offs.push(wire.on("sessions.changed", (event) => this.changed(event)), () => clearInterval(timer), () => size.disconnect());
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
    const { rows } = this.family;
    const old = rows.get(key);
    const above = session && parentOf(session);
    const hidden = session?.archived && above && this.filter !== "archived";
    if (!session || reason === "delete" || hidden) rows.delete(key);
    else if (old || rows.has(above)) this.family.put(session, phase === "end" || phase === "error");
    else if (above) this.refresh();
    if (old?.hasActiveRun && session?.hasActiveRun === false) announce(`${titleOf({ ...old, ...session })}: ${stateOf(session)}`);
  }

  // -- drawing -------------------------------------------------------------------------------------

  draw({ hasMore }) {
    this.arrange();
    const rows = [...this.family.rows.values()];
    const running = rows.filter((row) => row.hasActiveRun).length;
    const cost = rows.reduce((sum, row) => sum + (row.estimatedCostUsd ?? 0), 0);
    this.view.hidden = this.lines.length === 0;
    this.summary.textContent = rows.length === 0 ? "No session has helpers yet. When an agent asks others for help, they appear here."
      : `${rows.length} sessions, ${running} running, ${money(cost)}${hasMore ? "; older helpers are not shown" : ""}`;
    if (!this.view.hidden) this.drawLines();
  }

  arrange() {
    this.lines = this.family.lines((row) => this.filter !== "running" || row.hasActiveRun);
  }

  drawLines() {
    const height = this.rowHeight();
    const { scrollTop, clientHeight } = this.view;
    const first = Math.max(0, Math.floor(scrollTop / height) - MARGIN);
    const lines = this.lines.slice(first, Math.ceil((scrollTop + clientHeight) / height) + MARGIN);
    if (!this.lines.some((line) => line.row.key === this.at)) this.at = this.lines[0].row.key;
    this.pad.style.setProperty("height", `${this.lines.length * height}px`);
    this.window.style.setProperty("transform", `translateY(${first * height}px)`);
    const old = new Map([...this.window.children].map((element) => [element.dataset.key, element]));
    const shown = lines.map((line) => {
      const sign = JSON.stringify([line, line.row.key === this.at]);
      const known = old.get(line.row.key);
      return known?.sign === sign ? known : Object.assign(this.line(line), { sign });
    });
    if (shown.length !== old.size || shown.some((element, i) => element !== this.window.children[i])) fill(this.window, shown);
    this.view.setAttribute("aria-activedescendant", `node-${this.at}`);
  }

  rowHeight() {
    return parseFloat(getComputedStyle(this.view).getPropertyValue("--row"));
  }

  line({ row, depth, at, of, children, running, open }) {
    const state = stateOf(row);
    const title = titleOf(row);
    const lasted = this.lasted(row);
    const words = [title, state, !row.hasActiveRun && lasted, row.totalTokens && `${row.totalTokens} tokens`, row.estimatedCostUsd && money(row.estimatedCostUsd),
      children && `${children} helpers, ${running} running below`].filter(Boolean).join(", ");
    const deed = (name, label, picture) => h("button", { class: "iconbutton", tabindex: "-1", "data-do": name,
      title: label, "aria-label": `${label}: ${title}` }, icon(picture));
    const element = h("div", { class: "treeline", id: `node-${row.key}`, role: "treeitem", "data-key": row.key, "data-state": state,
      "aria-label": words, "aria-level": depth + 1, "aria-posinset": at, "aria-setsize": of,
      "aria-expanded": children > 0 && String(open), "aria-selected": String(row.key === this.at) },
    h("span", { class: "name" }, h("span", { class: "twist", "data-do": children > 0 && "fold" }, children > 0 && icon("chevron")),
      h("span", { class: `dot ${kindOf(state)}` }), h("a", { href: `#${sessionPath(row.key)}`, tabindex: "-1", title: row.key }, title),
      !open && running > 0 && h("span", { class: "hint" }, `${running} running`)),
    h("span", { class: "state" }, badge(state, kindOf(state))),
    h("span", { class: "time", "data-from": row.hasActiveRun && row.startedAt }, lasted),
    h("span", { class: "context" }, gauge(row)), h("span", { class: "cost" }, money(row.estimatedCostUsd)),
    h("span", { class: "deeds" }, deed("steer", "Steer", "send"), (row.hasActiveRun || running > 0) && deed("stop", "Stop", "stop")));
    element.style.setProperty("--depth", Math.min(depth, 12));
    return element;
  }

  lasted(row) {
    return row.hasActiveRun ? this.since(row.startedAt) : duration(row.task?.runtimeMs ?? row.runtimeMs);
  }

  since(ms) {
    return duration(Math.max(0, Date.now() + this.skew - ms));
  }

  /** Once a second, and only what is seen: how long the running ones have been at it. */
  tick() {
    if (document.visibilityState !== "visible") return;
    for (const place of this.window.querySelectorAll("[data-from]")) place.textContent = this.since(Number(place.dataset.from));
  }

  // -- doing ---------------------------------------------------------------------------------------

  foldAll() {
    this.family.folded = new Set(this.family.folded.size ? [] : this.family.rows.keys());
    this.rearrange();
  }

  fold(key) {
    if (!this.family.folded.delete(key)) this.family.folded.add(key);
    this.rearrange();
  }

  /** The next key may come before the next frame. */
  rearrange() {
    this.arrange();
    this.redraw();
  }

  select(index) {
    const at = Math.max(0, Math.min(this.lines.length - 1, index));
    this.at = this.lines[at].row.key;
    const height = this.rowHeight();
    const { scrollTop, clientHeight } = this.view;
    this.view.scrollTop = Math.max((at + 1) * height - clientHeight, Math.min(scrollTop, at * height));
    this.redraw();
  }

  onKey(event) {
    const index = this.lines.findIndex((line) => line.row.key === this.at);
    const { row: { key }, depth, open, children } = this.lines[index];
    const page = Math.floor(this.view.clientHeight / this.rowHeight()) - 1;
    const above = this.lines.findLastIndex((line, i) => i < index && line.depth < depth);
    const to = { ArrowDown: index + 1, j: index + 1, ArrowUp: index - 1, k: index - 1, Home: 0, End: this.lines.length, PageDown: index + page,
      PageUp: index - page }[event.key];
    const deed = { ArrowRight: () => (open ? this.select(index + 1) : children && this.fold(key)), Enter: () => navigate(sessionPath(key)),
      ArrowLeft: () => (open ? this.fold(key) : above >= 0 && this.select(above)), " ": () => children && this.fold(key),
      s: () => this.steer(key), x: () => this.stop(key) }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || (to === undefined && !deed)) return;
    event.preventDefault();
    if (deed) deed();
    else this.select(to);
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
    const field = h("textarea", { rows: 4, "aria-label": "Message", onkeydown: (event) => event.ctrlKey && event.key === "Enter" && field.form.requestSubmit(), placeholder: row.hasActiveRun ? "Taken in by the turn in progress" : "Begins a turn" });
    ask(`Steer ${titleOf(row)}`, field, "Send", async () => {
      const message = field.value.trim();
      if (message && await attempt(wire.call("sessions.steer", { key, message }), "Not sent")) notice("Sent.");
    });
  }

  /** Stop it and everything below it, as the command does that; the tree shows how each ends. */
  async stop(key) {
    const { row, running } = this.lines.find((line) => line.row.key === key);
    if (!row.hasActiveRun && !running) return;
    const text = running ? `Its turn ends now, and so do those of ${running} below it.` : "Its turn ends now. What it has done stays.";
    await sure(`Stop ${titleOf(row)}?`, text, "Stop");
    const asked = { sessionKey: key, message: "/stop", idempotencyKey: `web-stop-${Date.now()}-${Math.random()}` };
    attempt(wire.call("chat.send", asked), "Not stopped");
  }
}

addPanel("tree", "Tree", Tree, 10);
