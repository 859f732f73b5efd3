/** The gateway's log as it is written: newest last, by level and by words. It is asked for only while it is seen. */

import { fill, h } from "./dom.js";
import { addPanel, choice, Panel } from "./panel.js";
import { wire } from "./wire.js";

const EVERY_MS = 2000;
const MOST_LINES = 2000;
const LEVELS = [["debug", "All"], ["info", "Info"], ["warning", "Warnings"], ["error", "Errors"]];
const RANK = { debug: 0, info: 1, warn: 2, warning: 2, error: 3, critical: 3 };

/** One line of the file; a line that is no object is shown as it is. */
function parse(text) {
  try {
    const { time = "", level = "info", name = "", message = "", ...more } = JSON.parse(text);
    const rest = Object.keys(more).length ? ` ${Object.values(more).map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(" ")}` : "";
    return { time: String(time), level: String(level).toLowerCase(), name: String(name), message: `${message}${rest}` };
  } catch {
    return { time: "", level: "info", name: "", message: text };
  }
}

class Logs extends Panel {
  build() {
    Object.assign(this, { lines: [], level: "info", cursor: null, follows: true });
    this.field = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter the log", oninput: () => this.redraw() });
    const levels = choice("Least level", LEVELS, this.level, (level) => {
      this.level = level;
      this.redraw();
    });
    this.frame("Logs", levels, this.field);
    this.box = h("div", { class: "log", role: "log", "aria-live": "off", tabindex: "0", "aria-label": "Log lines", onscroll: () => this.onScroll() });
    this.place = h("p", { class: "hint" });
    this.body.append(this.box, this.place);
  }

  connectedCallback() {
    super.connectedCallback();
    this.timer = setInterval(() => document.visibilityState === "visible" && wire.status === "open" && this.refresh(), EVERY_MS);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    clearInterval(this.timer);
  }

  async load() {
    const answer = await wire.call("logs.tail", this.cursor === null ? { limit: 500 } : { cursor: this.cursor, limit: 1000 });
    if (answer.reset) this.lines = [];
    this.cursor = answer.cursor;
    this.lines = [...this.lines, ...answer.lines.map(parse)].slice(-MOST_LINES);
    return answer;
  }

  draw(answer) {
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = this.lines.filter((line) => (RANK[line.level] ?? 1) >= RANK[this.level]
      && words.every((word) => `${line.name} ${line.message}`.toLowerCase().includes(word)));
    this.place.textContent = `${answer.file} · ${shown.length} of ${this.lines.length} lines`;
    const sign = [shown.length, this.level, ...words].join(" ");
    if (this.sign === sign && this.last === shown.at(-1)) return;
    Object.assign(this, { sign, last: shown.at(-1) });
    fill(this.box, shown.length === 0 ? h("p", { class: "empty" }, this.lines.length ? "No line matches." : "Nothing was logged yet.")
      : shown.map((line) => (line.element ??= h("div", { class: "logline", "data-level": line.level }, h("time", { title: line.time }, line.time.slice(11, 19)),
        h("span", { class: "level" }, line.level), h("span", { class: "source" }, line.name.replace(/^openclaw\./, "")), h("span", { class: "text" }, line.message)))));
    if (this.follows) this.box.scrollTop = this.box.scrollHeight;
  }

  onScroll() {
    this.follows = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40;
  }
}

addPanel("logs", "Logs", Logs, 70);
