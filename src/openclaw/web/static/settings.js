/** The configuration in force, secrets masked by the gateway. To look at: it is changed with `openclaw config`. */

import { fill, h } from "./dom.js";
import { addPanel, badge, facts, Panel, section } from "./panel.js";
import { wire } from "./wire.js";

const MASKED = "__OPENCLAW_REDACTED__";
const isBranch = (value) => value !== null && typeof value === "object" && Object.values(value).some((one) => !Array.isArray(value) || isBranch(one));

/** Whether a path, or anything below it, has the words. */
function has(path, value, word) {
  if (path.toLowerCase().includes(word)) return true;
  if (!isBranch(value)) return JSON.stringify(value).toLowerCase().includes(word);
  return Object.entries(value).some(([name, one]) => has(`${path}.${name}`, one, word));
}

class Settings extends Panel {
  build() {
    this.field = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter the settings", oninput: () => this.redraw() });
    this.frame("Settings", this.field);
  }

  load() {
    return wire.call("config.get", {});
  }

  draw(answer) {
    const word = this.field.value.trim().toLowerCase();
    const problems = [...answer.issues.map((one) => ({ ...one, kind: "bad" })), ...answer.warnings.map((one) => ({ ...one, kind: "warn" }))];
    const shown = Object.entries(answer.config).filter(([name, value]) => !word || has(name, value, word));
    fill(this.body, facts([["File", h("code", null, answer.path)], ["State", answer.valid ? badge("valid", "good") : badge("not valid", "bad")],
      ["Change it", h("code", null, "openclaw config set <path> <value>")]]),
    problems.map((one) => h("p", null, badge(one.kind === "bad" ? "error" : "warning", one.kind), " ", h("code", null, one.path), ` ${one.message}`)),
    section("In force", shown.length === 0 ? h("p", { class: "none" }, word ? "No setting matches." : "Everything is as it comes.")
      : h("div", { class: "settings" }, shown.map(([name, value]) => this.branch(name, name, value, word)))));
  }

  branch(name, path, value, word) {
    if (!isBranch(value)) {
      const text = value === MASKED ? h("span", { class: "masked" }, "hidden") : h("code", null, JSON.stringify(value).replaceAll(MASKED, "hidden"));
      return h("div", { class: "leaf", title: path }, h("span", null, name), text);
    }
    const below = Object.entries(value).filter(([key, one]) => !word || has(`${path}.${key}`, one, word));
    return h("details", { open: Boolean(word) || path.split(".").length < 3 }, h("summary", null, name), below.map(([key, one]) => this.branch(key, `${path}.${key}`, one, word)));
  }
}

addPanel("settings", "Settings", Settings, 80);
