/**
 * The inside of a line: code, emphasis, links. One pass over the text with a bounded stack of open marks; what is
 * never closed is text. Nothing here reads the same character more than a fixed number of times.
 */

import { h } from "./dom.js";

/** Marks that may be open at once; deeper ones are text. */
const MOST_OPEN = 24;
/** Elements of one text; after these, marks are text. */
const MOST_ELEMENTS = 400;
const LONGEST_URL = 2000;
const TAGS = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" };
const SPECIAL = /[\\`*_~[\]!<\n]|https?:\/\//g;
const WORD = /[\p{L}\p{N}]/u;
const SPACE = /\s/;

/** A link's address, if it is one that this page follows. @param {string} text @returns {string|null} */
export function safeUrl(text) {
  if (text.length > LONGEST_URL || !/^(?:https?:\/\/|mailto:)/i.test(text)) return null;
  try {
    const url = new URL(text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function link(href, children) {
  return h("a", { href, title: href, target: "_blank", rel: "noopener noreferrer nofollow" }, children);
}

/** @param {string} text @returns {(Node|string)[]} */
export function renderInline(text) {
  return new Reader(text).read();
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    /** @type {{mark: string, out: (Node|string)[], start: number, image?: boolean}[]} open marks, the outermost first */
    this.stack = [{ mark: "", out: [], start: 0 }];
    this.made = 0;
    this.ticks = null;
    this.nextParen = -1;
    this.nextAngle = -1;
  }

  get out() {
    return this.stack.at(-1).out;
  }

  read() {
    const { text } = this;
    const special = new RegExp(SPECIAL);
    while (this.at < text.length && this.made < MOST_ELEMENTS) {
      special.lastIndex = this.at;
      const found = special.exec(text);
      const upTo = found ? found.index : text.length;
      if (upTo > this.at) this.push(text.slice(this.at, upTo));
      this.at = upTo;
      if (found) this.special(found[0]);
    }
    while (this.stack.length > 1) this.giveUp();
    if (this.at < text.length) this.push(text.slice(this.at));
    return this.stack[0].out;
  }

  special(what) {
    switch (what[0]) {
      case "\\": return this.escape();
      case "`": return this.code();
      case "\n": return this.take(1, h("br"));
      case "[": return this.open("[", 1);
      case "!": return this.text[this.at + 1] === "[" ? this.open("![", 2) : this.take(1, "!");
      case "]": return this.closeBracket();
      case "<": return this.angle();
      case "h": return this.bareUrl();
      default: return this.emphasis(what[0]);
    }
  }

  /** Texts that follow one another become one: nodes are what costs. */
  push(node) {
    const { out } = this;
    if (typeof node === "string" && typeof out.at(-1) === "string") out[out.length - 1] += node;
    else {
      out.push(node);
      this.made += typeof node !== "string";
    }
  }

  take(length, node) {
    this.push(node);
    this.at += length;
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next && /[!-/:-@[-`{-~]/.test(next)) this.take(2, next);
    else this.take(1, "\\");
  }

  open(mark, length) {
    if (this.stack.length >= MOST_OPEN) return this.take(length, mark);
    this.stack.push({ mark, out: [], start: this.at });
    this.at += length;
    return undefined;
  }

  /** The innermost open mark was none: it and what followed become text again. */
  giveUp() {
    const { mark, out } = this.stack.pop();
    this.push(mark);
    for (const node of out) this.push(node);
  }

  // -- code ----------------------------------------------------------------------------------------

  /** Where the runs of backticks of each length are, found once for the whole text. */
  runs() {
    if (this.ticks) return this.ticks;
    this.ticks = new Map();
    for (const { 0: run, index } of this.text.matchAll(/`+/g)) {
      if (!this.ticks.has(run.length)) this.ticks.set(run.length, { places: [], next: 0 });
      this.ticks.get(run.length).places.push(index);
    }
    return this.ticks;
  }

  code() {
    let length = 1;
    while (this.text[this.at + length] === "`") length += 1;
    const runs = this.runs().get(length);
    const from = this.at + length;
    while (runs && runs.next < runs.places.length && runs.places[runs.next] < from) runs.next += 1;
    const end = runs?.places[runs.next];
    if (end === undefined) return this.take(length, "`".repeat(length));
    let inside = this.text.slice(from, end).replaceAll("\n", " ");
    if (inside.startsWith(" ") && inside.endsWith(" ") && inside.trim()) inside = inside.slice(1, -1);
    this.push(h("code", null, inside));
    this.at = end + length;
    return undefined;
  }

  // -- emphasis ------------------------------------------------------------------------------------

  emphasis(char) {
    let run = 1;
    while (this.text[this.at + run] === char && run < 64) run += 1;
    if (char === "~" && run !== 2) return this.take(run, char.repeat(run));
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[this.at + run] ?? " ";
    const inWord = char === "_" && WORD.test(before) && WORD.test(after);
    let canOpen = !SPACE.test(after) && !inWord;
    let canClose = !SPACE.test(before) && !inWord;
    if (run > 3) canOpen = canClose = false;
    let left = run;
    while (left > 0 && canClose) {
      const mark = this.openMark(char, left);
      if (!mark) break;
      this.close(mark);
      left -= mark.length;
      this.at += mark.length;
    }
    while (left > 0 && canOpen && this.stack.length < MOST_OPEN) {
      const mark = char.repeat(left >= 2 ? 2 : 1);
      this.open(mark, mark.length);
      left -= mark.length;
    }
    if (left > 0) this.take(left, char.repeat(left));
    return undefined;
  }

  /** The innermost mark of this character that is open inside the innermost bracket and short enough. */
  openMark(char, most) {
    for (let i = this.stack.length - 1; i > 0; i -= 1) {
      const { mark } = this.stack[i];
      if (mark.endsWith("[")) return null;
      if (mark[0] === char && mark.length <= most) return mark;
    }
    return null;
  }

  close(mark) {
    while (this.stack.at(-1).mark !== mark) this.giveUp();
    const { out } = this.stack.pop();
    this.push(out.length ? h(TAGS[mark], null, out) : mark + mark);
  }

  // -- links ---------------------------------------------------------------------------------------

  closeBracket() {
    const opened = this.stack.findLastIndex((frame) => frame.mark.endsWith("["));
    if (opened < 1) return this.take(1, "]");
    while (this.stack.length - 1 > opened) this.giveUp();
    const target = this.text[this.at + 1] === "(" ? this.target(this.at + 2) : null;
    const href = target && safeUrl(target.url);
    if (!href) {
      this.giveUp();
      return this.take(1, "]");
    }
    const { mark, out } = this.stack.pop();
    const words = out.length ? out : [target.url];
    this.push(mark === "![" ? link(href, ["Picture: ", words]) : link(href, words));
    this.at = target.end;
    return undefined;
  }

  /** The address between round brackets, with pairs of them inside; a title is read over. */
  target(from) {
    if (this.nextParen < from) {
      const found = this.text.indexOf(")", from);
      this.nextParen = found === -1 ? Infinity : found;
    }
    if (this.nextParen - from > LONGEST_URL) return null;
    let deep = 0;
    let end = from;
    for (const most = Math.min(this.text.length, from + LONGEST_URL); end < most; end += 1) {
      const char = this.text[end];
      if (char === "\n") return null;
      if (char === "(") deep += 1;
      else if (char === ")" && deep-- === 0) break;
    }
    if (this.text[end] !== ")") return null;
    const url = this.text.slice(from, end).trim().split(/\s/, 1)[0].replace(/^<|>$/g, "");
    return { url, end: end + 1 };
  }

  angle() {
    if (this.nextAngle < this.at) {
      const found = this.text.indexOf(">", this.at);
      this.nextAngle = found === -1 ? Infinity : found;
    }
    const end = this.nextAngle;
    const href = end - this.at < LONGEST_URL ? safeUrl(this.text.slice(this.at + 1, end)) : null;
    if (!href) return this.take(1, "<");
    return this.take(end + 1 - this.at, link(href, this.text.slice(this.at + 1, end)));
  }

  bareUrl() {
    const before = this.text[this.at - 1];
    const isText = (before && WORD.test(before)) || this.stack.some((frame) => frame.mark.endsWith("["));
    if (isText) return this.take(4, "http");
    const most = Math.min(this.text.length, this.at + LONGEST_URL);
    let end = this.at;
    while (end < most && !/[\s<>"'`*\]\\]/.test(this.text[end])) end += 1;
    const pairs = this.text.slice(this.at, end).includes("(");
    while (end > this.at && (pairs ? /[.,:;!?_~]/ : /[.,:;!?_~)]/).test(this.text[end - 1])) end -= 1;
    const url = this.text.slice(this.at, end);
    const href = safeUrl(url);
    return href ? this.take(url.length, link(href, url)) : this.take(4, "http");
  }
}
