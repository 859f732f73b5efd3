/** Where a person writes: drafts that survive, attachments by button, drop or paste, completion of slash commands. */

import { fill, h, notice } from "./dom.js";
import { icon, iconButton } from "./icons.js";
import { wire } from "./wire.js";

const DRAFT = "openclaw.draft.";
const MOST_FILES = 20;
let commands = null;

/** The chat commands, asked for once. */
async function loadCommands() {
  commands ??= wire.call("commands.list", { scope: "text" }).then((answer) => answer.commands)
    .catch(() => { commands = null; return []; });
  return commands;
}

/** What may follow: commands for a first word, choices for a second. @returns {{text: string, hint: string}[]} */
export function completions(text, list) {
  const [, name, rest] = /^\/(\S*)(\s+\S*)?$/.exec(text) ?? [];
  if (name === undefined) return [];
  if (rest === undefined) {
    const word = `/${name.toLowerCase()}`;
    return list.flatMap((one) => one.textAliases.map((alias) => ({ text: alias, hint: one.description })))
      .filter((one) => one.text.startsWith(word)).slice(0, 10);
  }
  const command = list.find((one) => one.textAliases.includes(`/${name}`));
  const choices = command?.args?.[0]?.choices ?? [];
  return choices.map((choice) => (typeof choice === "string" ? choice : choice.value ?? ""))
    .filter((choice) => choice.startsWith(rest.trim())).map((choice) => ({ text: `/${name} ${choice}`, hint: "" }));
}

class Composer extends HTMLElement {
  connectedCallback() {
    if (this.field) return;
    this.files = [];
    this.options = [];
    this.at = 0;
    this.field = h("textarea", { rows: 1, placeholder: "Message", "aria-label": "Message", role: "combobox", "aria-expanded": "false",
      "aria-controls": "completions", "aria-autocomplete": "list", "aria-haspopup": "listbox",
      oninput: () => this.onInput(), onkeydown: (event) => this.onKey(event), onpaste: (event) => this.take(event, event.clipboardData),
      onblur: () => setTimeout(() => this.complete([]), 150) });
    this.chips = h("div", { class: "chips" });
    this.box = h("ul", { id: "completions", class: "plain options completions", role: "listbox", "aria-label": "Commands", hidden: true });
    this.picker = h("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to attach",
      onchange: () => { this.attach([...this.picker.files]); this.picker.value = ""; } });
    this.stop = iconButton("Stop", "stop", () => this.emit("stop"), { class: "stop", hidden: true });
    this.hint = h("p", { class: "hint" });
    this.append(this.box, this.chips, h("div", { class: "composer" },
      iconButton("Attach files", "clip", () => this.picker.click()), this.picker, this.field, this.stop,
      iconButton("Send", "send", () => this.send(), { class: "send" })), this.hint);
    this.setState({ running: false });
  }

  /** Another session: its own draft. */
  setKey(key) {
    this.key = key;
    this.files = [];
    this.field.value = readDraft(key);
    this.drawChips();
    this.grow();
  }

  setState({ running }) {
    if (this.running === running) return;
    this.running = running;
    this.stop.hidden = !running;
    this.hint.textContent = running ? "Enter steers the reply that is being written · Alt Enter queues" : "";
  }

  emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  send(queueMode) {
    const text = this.field.value;
    if (!text.trim() && this.files.length === 0) return;
    const mode = this.running ? queueMode ?? "steer" : undefined;
    this.emit("send", { text, attachments: this.files.map(({ fileName, mimeType, content }) => ({ fileName, mimeType, content })),
      queueMode: mode });
    this.field.value = "";
    this.files = [];
    this.onInput();
    this.drawChips();
  }

  onInput() {
    writeDraft(this.key, this.field.value);
    this.grow();
    const text = this.field.value;
    if (!text.startsWith("/") || text.includes("\n")) return this.complete([]);
    return loadCommands().then((list) => this.field.value === text && this.complete(completions(text, list)));
  }

  grow() {
    this.field.style.setProperty("height", "auto");
    this.field.style.setProperty("height", `${Math.min(this.field.scrollHeight + 2, innerHeight * 0.4)}px`);
  }

  onKey(event) {
    if (event.isComposing) return;
    const open = this.options.length > 0;
    const chosen = this.options[this.at]?.text;
    if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : -1) + this.options.length) % this.options.length;
      this.drawOptions();
    } else if (open && event.key === "Escape") this.complete([]);
    else if (open && (event.key === "Tab" || (event.key === "Enter" && chosen !== this.field.value.trim()))) this.choose(chosen);
    else if (event.key === "Enter" && !event.shiftKey) this.send(event.altKey ? "followup" : undefined);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // -- completion ----------------------------------------------------------------------------------

  complete(options) {
    this.options = options;
    this.at = 0;
    this.drawOptions();
  }

  choose(text) {
    this.field.value = `${text} `;
    this.field.focus();
    this.onInput();
  }

  drawOptions() {
    this.box.hidden = this.options.length === 0;
    this.field.setAttribute("aria-expanded", String(this.options.length > 0));
    this.field.setAttribute("aria-activedescendant", this.options.length ? `completion${this.at}` : "");
    fill(this.box, this.options.map((one, i) => h("li", { id: `completion${i}`, role: "option", "aria-selected": String(i === this.at),
      onpointerdown: (event) => { event.preventDefault(); this.choose(one.text); } }, h("span", null, one.text),
    h("span", { class: "hint" }, one.hint))));
  }

  // -- attachments ---------------------------------------------------------------------------------

  /** Files that were dropped or pasted; anything else is the browser's. */
  take(event, data) {
    const files = [...(data?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    this.attach(files);
  }

  async attach(files) {
    const limit = wire.hello?.policy?.attachments?.maxBytes ?? 19_000_000;
    for (const file of files) {
      const total = this.files.reduce((sum, one) => sum + one.size, file.size);
      if (this.files.length >= MOST_FILES || total > limit) {
        notice(`${file.name} is not attached: at most ${MOST_FILES} files and ${Math.floor(limit / 1e6)} MB together.`);
        continue;
      }
      const url = await readAsUrl(file);
      this.files.push({ fileName: file.name, mimeType: file.type, size: file.size, content: url.slice(url.indexOf(",") + 1) });
    }
    this.drawChips();
  }

  drawChips() {
    fill(this.chips, this.files.map((file, i) => h("span", { class: "chip" },
      file.mimeType.startsWith("image/") ? h("img", { src: `data:${file.mimeType};base64,${file.content}`, alt: "" }) : icon("file"),
      file.fileName, h("button", { class: "quiet", "aria-label": `Remove ${file.fileName}`, onclick: () => {
        this.files.splice(i, 1);
        this.drawChips();
      } }, "×"))));
  }
}

function readAsUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

function readDraft(key) {
  try {
    return localStorage.getItem(DRAFT + key) ?? "";
  } catch {
    return "";
  }
}

function writeDraft(key, text) {
  try {
    if (text) localStorage.setItem(DRAFT + key, text);
    else localStorage.removeItem(DRAFT + key);
  } catch {
    /* a draft that cannot be kept lives in the field */
  }
}

customElements.define("oc-composer", Composer);
