/** What panels share. One reads when it is shown, after every break, and when one of its events comes; hidden it does nothing. */

import { fill, h } from "./dom.js";
import { ask, attempt } from "./actions.js";
import { registerPanel } from "./app.js";
import { oncePerFrame } from "./state.js";
import { wire } from "./wire.js";

/** Base of a panel: `build` once, then `load` reads and `draw` shows what was read; the focus stays where it was. */
export class Panel extends HTMLElement {
  /** Events after which the panel reads anew. @type {string[]} */
  static events = [];

  connectedCallback() {
    if (!this.body) this.build();
    this.offs = ["resync", ...this.constructor.events].map((event) => wire.on(event, () => this.refresh()));
    this.refresh();
  }

  disconnectedCallback() {
    this.offs.forEach((off) => off());
  }

  /** @param {string} title @param {...any} controls stand beside the title; without any, one that reads anew */
  frame(title, ...controls) {
    this.className = "panel";
    this.body = h("div", { class: "panelbody" });
    const again = controls.length === 0 && button("Refresh", () => this.refresh());
    this.append(h("header", { class: "panelhead" }, h("h1", null, title), h("div", { class: "row wrap" }, controls, again)), this.body);
    const focusable = () => [...this.body.querySelectorAll("button, a, summary")];
    this.redraw = oncePerFrame(() => {
      if (!this.isConnected || !this.data) return;
      const at = focusable().indexOf(document.activeElement);
      this.draw(this.data);
      if (at >= 0) focusable()[at]?.focus();
    });
  }

  /** Read and draw. Changes that come while it reads are read once more, together. */
  async refresh() {
    this.again = this.reading;
    if (this.reading) return;
    this.reading = true;
    try {
      this.data = await this.load();
      this.redraw();
    } catch (error) {
      this.failed(error);
    }
    this.reading = false;
    if (this.again) this.refresh();
  }

  /** Ask for a change and read anew. Undefined after a refusal, of which people are told. */
  async act(method, params, refusal = "Refused") {
    const answer = await attempt(wire.call(method, params), refusal);
    this.refresh();
    return answer;
  }

  /** What was shown stays when the connection is gone; a refusal is told. */
  failed(error) {
    if (error.code === "OFFLINE") return;
    if (!error.code) console.error(error);
    fill(this.body, h("div", { class: "empty", role: "alert" }, h("p", null, `This cannot be shown: ${error.message}`),
      button("Try again", () => this.refresh())));
  }
}

/** Put a panel into the navigation, at `#/<id>`. */
export function addPanel(id, title, kind, order) {
  customElements.define(`oc-${id}`, kind);
  registerPanel({ id, title, icon: id, element: `oc-${id}`, order });
}

/** A table, or the sentence that there is nothing; on narrow screens each row becomes a card.
 * @param {[string, (row: any) => any, string?][]} columns label, cell, class */
export function table(caption, columns, rows, empty) {
  if (rows.length === 0) return h("p", { class: "none" }, empty);
  return h("div", { class: "tablebox" }, h("table", { class: "table" }, h("caption", { class: "unseen" }, caption),
    h("thead", null, h("tr", null, columns.map(([label, , kind]) => h(label ? "th" : "td", { class: kind }, label)))),
    h("tbody", null, rows.map((row) => h("tr", null, columns.map(([label, cell, kind]) =>
      h("td", { class: kind, "data-label": label }, cell(row))))))));
}

/** A part of a panel under its own heading. */
export const section = (title, ...children) => h("section", { class: "section" }, h("h2", null, title), children);

/** Names and values; those without a value are left out. @param {[string, any][]} pairs */
export const facts = (pairs) => h("dl", { class: "facts" }, pairs.filter(([, value]) => value ?? false)
  .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));

/** A word with a colour of its own: good, warn, bad, idle or busy. */
export const badge = (word, kind) => h("span", { class: `badge ${kind}` }, word);

export const button = (label, run, props = {}) => h("button", { ...props, onclick: run }, label);

/** Choices of which one is pressed. @param {[any, string][]} choices @param {(value: any) => void} choose */
export function choice(name, choices, chosen, choose) {
  const press = (value) => {
    buttons.forEach((one, i) => one.setAttribute("aria-pressed", String(choices[i][0] === value)));
    return value;
  };
  const buttons = choices.map(([value, label]) => button(label, () => choose(press(value))));
  press(chosen);
  return Object.assign(h("div", { class: "tabs", role: "group", "aria-label": name }, buttons), { press });
}

/** Ask before something that cannot be taken back; goes on only after a yes. @returns {Promise<void>} */
export const sure = (title, text, verb) => new Promise((yes) => { ask(title, h("p", null, text), verb, yes); });
