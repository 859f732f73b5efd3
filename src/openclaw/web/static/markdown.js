/**
 * Markdown as models write it, to DOM nodes. The text is hostile: it becomes text nodes and a closed set of
 * elements, never markup. No raw HTML, no pictures from elsewhere (they become links), links only to http, https
 * and mailto. The time is linear in the text: nesting is bounded, and no pattern can run back over what it has read.
 */

import { h } from "./dom.js";
import { iconButton } from "./icons.js";
import { renderInline } from "./inline.js";

const DEEPEST = 8;
/** More than this is shown when it is asked for, so that no message can stop the page. */
const SHOWN_CHARS = 24_000;
const MOST_CHARS = 200_000;
const SHOWN_LINES = 400;
const FOLDED_LINES = 40;
const MOST_ELEMENTS = 1200;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`\n]{0,80})/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: +|$)/;
const QUOTE = /^ {0,3}> ?/;

/** What the text at hand may still cost, and the fence that was open where it was cut. */
const state = { left: 0, fence: "" };

/**
 * The nodes of a text. Long texts end with a button that shows the next part.
 * @param {string} text @param {{limit?: number}} [options] @returns {DocumentFragment}
 */
export function renderMarkdown(text, { limit = SHOWN_CHARS } = {}) {
  const fragment = document.createDocumentFragment();
  const end = text.length > limit ? cutAt(text, limit) : text.length;
  const lines = text.slice(0, end).split("\n").map((line) => line.replace(/\r$/, "").replace(/\t/g, "    "));
  Object.assign(state, { left: MOST_ELEMENTS * Math.min(3, limit / SHOWN_CHARS), fence: "" });
  const [nodes, rest] = blocks(lines, 0);
  fragment.append(...nodes);
  const hidden = [...rest, ...(rest.length || end < text.length ? [text.slice(end)] : [])].join("\n");
  if (hidden) fragment.append(moreButton(state.fence && !rest.length ? `${state.fence}\n${hidden}` : hidden, limit));
  return fragment;
}

/** Cut at a line if there is one near, and never inside a character. */
function cutAt(text, limit) {
  const line = text.lastIndexOf("\n", limit);
  if (line > limit / 2) return line + 1;
  return /[\ud800-\udbff]/.test(text[limit - 1]) ? limit - 1 : limit;
}

function moreButton(rest, limit) {
  const button = h("button", { class: "showmore" }, `Show more (${rest.length.toLocaleString()} characters)`);
  button.onclick = () => button.replaceWith(renderMarkdown(rest, { limit: Math.min(2 * limit, MOST_CHARS) }));
  return button;
}

// -- blocks ----------------------------------------------------------------------------------------

/** The nodes of these lines, and the lines that would have cost too much.
 * @param {string[]} lines @param {number} depth @returns {[Node[], string[]]} */
function blocks(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length && state.left > 0) {
    const line = lines[at];
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const [node, next] = FENCE.test(line) ? fence(lines, at)
      : HEADING.test(line) ? heading(lines, at)
        : RULE.test(line) ? [h("hr"), at + 1]
          : depth < DEEPEST && QUOTE.test(line) ? quote(lines, at, depth)
            : depth < DEEPEST && ITEM.test(line) ? list(lines, at, depth)
              : isTable(lines, at) ? table(lines, at) : paragraph(lines, at, depth);
    found.push(node);
    at = next;
    state.left -= 1;
  }
  return [found, lines.slice(at)];
}

/** The same inside of something; what would cost too much is shown as it was written. */
function inner(lines, depth) {
  const [nodes, rest] = blocks(lines, depth);
  return rest.length ? [...nodes, rest.join("\n")] : nodes;
}

function words(text) {
  const nodes = renderInline(text);
  state.left -= nodes.length;
  return nodes;
}

function heading(lines, at) {
  const marks = HEADING.exec(lines[at])[1].length;
  const text = lines[at].trim().slice(marks).trim();
  // A page has one first heading of its own; those of a message come after it.
  return [h(`h${Math.min(6, marks + 2)}`, { class: `md${marks}` }, words(stripMarks(text))), at + 1];
}

function stripMarks(words) {
  let end = words.length;
  while (end > 0 && words[end - 1] === "#") end -= 1;
  return end === 0 || words[end - 1] === " " ? words.slice(0, end).trimEnd() : words;
}

function fence(lines, at) {
  const [, marks, info] = FENCE.exec(lines[at]);
  const start = at + 1;
  let end = start;
  while (end < lines.length && !closes(lines[end], marks)) end += 1;
  if (end === lines.length) state.fence = lines[at];
  state.left -= 8;
  return [codeBlock(lines.slice(start, end), info.trim().split(/\s/)[0]), end + 1];
}

function closes(line, marks) {
  const word = line.trim();
  return word.length >= marks.length && word.startsWith(marks) && [...word].every((char) => char === marks[0]);
}

/** Code as it is, with a copy button; long code is folded. @param {string[]} lines @param {string} language */
export function codeBlock(lines, language) {
  const folded = lines.length > SHOWN_LINES;
  const code = h("code", null, (folded ? lines.slice(0, FOLDED_LINES) : lines).join("\n"));
  const copy = iconButton("Copy the code", "copy", () => navigator.clipboard?.writeText(lines.join("\n")));
  const all = folded && h("button", { class: "showmore", onclick: () => {
    code.textContent = lines.join("\n");
    all.remove();
  } }, `Show all ${lines.length.toLocaleString()} lines`);
  return h("figure", { class: "code" }, h("figcaption", null, h("span", null, language || "code"), copy),
    h("pre", { tabindex: "0", "aria-label": `Code${language ? ` in ${language}` : ""}` }, code), all);
}

function quote(lines, at, depth) {
  const quoted = [];
  let end = at;
  while (end < lines.length && lines[end].trim() !== "" && (QUOTE.test(lines[end]) || !interrupts(lines[end]))) {
    quoted.push(lines[end].replace(QUOTE, ""));
    end += 1;
  }
  return [h("blockquote", null, inner(quoted, depth + 1)), end];
}

/** Whether a line begins something that ends a paragraph. */
function interrupts(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function paragraph(lines, at, depth) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !(depth < DEEPEST && interrupts(lines[end])) &&
    !isTable(lines, end)) end += 1;
  return [h("p", null, words(lines.slice(at, end).map((line) => line.trim()).join("\n"))), end];
}

// -- lists -----------------------------------------------------------------------------------------

function list(lines, at, depth) {
  const [, indent, marker] = ITEM.exec(lines[at]);
  const ordered = marker.length > 1;
  const items = [];
  let end = at;
  while (end < lines.length && state.left > 0) {
    const found = ITEM.exec(lines[end]);
    if (!found || RULE.test(lines[end]) || (found[2].length > 1) !== ordered || found[1].length > indent.length + 3 ||
      found[1].length < indent.length) break;
    const [own, next] = itemLines(lines, end, found);
    items.push(item(own, depth));
    end = next;
  }
  const first = Number.parseInt(marker, 10);
  return [h(ordered ? "ol" : "ul", { start: ordered && first !== 1 ? first : null }, items), end];
}

/** What belongs to one item: its line, deeper lines, and lines that only continue its paragraph. */
function itemLines(lines, at, found) {
  const width = found[0].length;
  const deep = found[1].length + 2;
  const own = [lines[at].slice(width)];
  let end = at + 1;
  let blank = false;
  while (end < lines.length) {
    const line = lines[end];
    if (line.trim() === "") blank = true;
    else {
      const indent = line.length - line.trimStart().length;
      if (indent < deep && (blank || interrupts(line))) break;
      if (blank) own.push("");
      own.push(line.slice(Math.min(indent, width)));
      blank = false;
    }
    end += 1;
  }
  return [own, end];
}

function item(lines, depth) {
  const task = /^\[([ xX])\] /.exec(lines[0]);
  if (task) lines[0] = lines[0].slice(4);
  state.left -= 1;
  const nodes = inner(lines, depth + 1);
  // One paragraph alone stands without its margins.
  if (nodes[0]?.nodeName === "P") nodes.splice(0, 1, ...nodes[0].childNodes);
  const box = task && h("input", { type: "checkbox", disabled: true, checked: task[1] !== " ",
    "aria-label": task[1] === " " ? "open" : "done" });
  return h("li", { class: task ? "task" : null }, box, nodes);
}

// -- tables ----------------------------------------------------------------------------------------

function isTable(lines, at) {
  const below = lines[at + 1];
  return below !== undefined && below.includes("-") && below.includes("|") && lines[at].includes("|") &&
    /^[|:\- ]+$/.test(below);
}

function table(lines, at) {
  const rows = [];
  const aligns = cells(lines[at + 1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : null));
  const row = (line, tag) => h("tr", null, cells(line).slice(0, aligns.length || 1)
    .map((cell, i) => h(tag, { class: aligns[i] && `to-${aligns[i]}`, scope: tag === "th" ? "col" : null }, words(cell))));
  let end = at + 2;
  for (; end < lines.length && lines[end].includes("|") && lines[end].trim() !== "" && state.left > 0; end += 1) {
    rows.push(row(lines[end], "td"));
    state.left -= 1 + aligns.length;
  }
  return [h("div", { class: "mdtable", tabindex: "0", role: "region", "aria-label": "Table" },
    h("table", null, h("thead", null, row(lines[at], "th")), h("tbody", null, rows))), end];
}

function cells(line) {
  let row = line.trim();
  if (row.startsWith("|")) row = row.slice(1);
  if (row.endsWith("|") && !row.endsWith("\\|")) row = row.slice(0, -1);
  return row.replaceAll("\\|", "\u0001").split("|").slice(0, 40).map((cell) => cell.replaceAll("\u0001", "|").trim());
}
