/** One message as a person reads it: words, folded thinking, folded tool calls with their results, boundaries. */

import { clock, fill, h, tokens } from "./dom.js";
import { attempt } from "./actions.js";
import { icon, iconButton } from "./icons.js";
import { renderMarkdown } from "./markdown.js";
import { outbox } from "./outbox.js";
import { textOf } from "./state.js";

const PLAIN_CHARS = 4000;
const STEP_CHARS = 200_000;
/** Of a long reply that is being written, the end is shown. */
const LIVE_CHARS = 6000;
const FILE = /^\[Attached file: (.{1,200}) \((.{1,80}), (\d+) bytes\)\]\n/;
const REASONS = { daily: "the day ended", idle: "it was idle", new: "/new", reset: "a reset", overflow: "the context was full" };

const blocksOf = (message) => (typeof message.content === "string" ? [{ type: "text", text: message.content }]
  : Array.isArray(message.content) ? message.content.filter((one) => one && typeof one === "object") : []);

/** Whether the gateway sent only the beginning, or nothing of it. */
const isCut = (message) => message.__openclaw?.truncated || textOf(message).endsWith("\n…(truncated)…");

/** @param {any} message @param {Map<string, any>} results tool results by the id of their call @param {boolean} running
 * @param {(message: any) => Promise<void>} readWhole what a click on a cut message asks for */
export function renderMessage(message, results, running, readWhole) {
  if (message.role === "toolResult") return wrap("tool", message, "Tool", [toolCard({ name: message.toolName }, message, running)]);
  const more = isCut(message) && wholeButton(() => readWhole(message));
  if (message.role === "user") return wrap("user", message, sender(message), [userParts(message), more]);
  if (message.role !== "assistant") return boundary(textOf(message));
  const parts = blocksOf(message).map((block) => {
    if (block.type === "thinking") return thinkingCard(block.thinking ?? "");
    if (block.type === "toolCall") return toolCard(block, results.get(block.id), running);
    return typeof block.text === "string" && block.text.trim() ? h("div", { class: "md" }, renderMarkdown(block.text)) : null;
  });
  if (message.stopReason === "error") parts.push(h("p", { class: "failed" }, message.errorMessage ?? "This turn failed."));
  if (message.stopReason === "aborted") parts.push(h("p", { class: "note" }, "Stopped."));
  if (message.stopReason === "length") parts.push(h("p", { class: "note" }, "Cut off: the model's limit was reached."));
  return wrap("assistant", message, "Assistant", [parts, more]);
}

function wholeButton(read) {
  const button = h("button", { class: "showmore", onclick: async () => {
    button.disabled = true;
    await attempt(read(), "Not read");
    button.disabled = false;
  } }, "Show the whole message");
  return button;
}

function wrap(kind, message, name, parts) {
  const at = message.timestamp || message.__openclaw?.recordTimestampMs;
  const used = message.usage && `${tokens(message.usage.input)} in, ${tokens(message.usage.output)} out`;
  const text = textOf(message);
  return h("article", { class: `msg ${kind}`, "aria-label": `${name}${at ? `, ${clock(at)}` : ""}` },
    h("header", { class: "meta" }, h("span", { class: "who" }, name),
      at && h("time", { datetime: new Date(at).toISOString(), title: [clock(at), message.model, used].filter(Boolean).join(" · ") },
        new Date(at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })),
      text && kind !== "tool" && iconButton("Copy the message", "copy", () => navigator.clipboard?.writeText(text), { class: "copy" })),
    parts);
}

function sender(message) {
  const from = message.provenance;
  if (from?.kind === "inter_session") return `Session ${from.sourceSessionKey ?? ""}`.trim();
  return from?.kind === "internal_system" ? "System" : from?.sourceChannel ?? "You";
}

// -- what a person wrote ---------------------------------------------------------------------------

function userParts(message) {
  const sent = outbox.pictures.get(message.idempotencyKey?.replace(/:user$/, ""));
  let picture = 0;
  return blocksOf(message).map((block) => {
    if (block.type !== "text") {
      const data = sent?.[picture++];
      return data ? h("img", { class: "picture", src: data, alt: "Attached picture" })
        : h("p", { class: "chip" }, icon("file"), `Picture${block.bytes ? `, ${Math.ceil(block.bytes / 1024)} kB` : ""}`);
    }
    const file = FILE.exec(block.text ?? "");
    return file ? fold("file", `${file[1]}, ${file[3]} bytes`, "", () => h("pre", null, block.text.slice(file[0].length, 100_000)))
      : plain(block.text ?? "");
  });
}

/** Words as they were typed; long ones are folded, and very long ones unfold in steps. */
export function plain(text) {
  return unfold(h("div", { class: "plaintext" }), text, PLAIN_CHARS);
}

function unfold(box, text, shown) {
  box.replaceChildren(text.slice(0, shown));
  if (text.length > shown) {
    box.append(" … ", h("button", { class: "showmore", onclick: () => unfold(box, text, shown + STEP_CHARS) },
      text.length > STEP_CHARS ? "Show more" : `Show all ${text.length.toLocaleString()} characters`));
  }
  return box;
}

// -- folded parts ----------------------------------------------------------------------------------

/** A part that is built when it is first unfolded. */
function fold(picture, title, state, build) {
  const body = h("div", { class: "foldbody" });
  return h("details", { class: `fold ${state}`, ontoggle: (event) => {
    if (event.target.open && !body.firstChild) body.append(build());
  } }, h("summary", null, icon(picture), h("span", { class: "foldtitle" }, title),
    state && h("span", { class: "state" }, state)), body);
}

/** @param {string} text */
export function thinkingCard(text) {
  return text.trim() ? fold("thought", "Thinking", "", () => plain(text)) : null;
}

/** Data as people read it; anything else as it is. */
function pretty(text) {
  try {
    return text.length < 50_000 && /^[{[]/.test(text) ? JSON.stringify(JSON.parse(text), null, 2) : text;
  } catch {
    return text;
  }
}

function toolCard(call, result, running) {
  const args = call.arguments && Object.keys(call.arguments).length ? call.arguments : null;
  const short = args ? JSON.stringify(args).slice(0, 120) : "";
  const state = result ? (result.isError ? "failed" : "done") : running ? "running" : "no result";
  return fold("tool", [h("b", null, call.name ?? "tool"), " ", h("span", { class: "dim" }, short)], state, () => {
    const parts = h("div");
    if (args) parts.append(h("h3", null, "Asked"), h("pre", { tabindex: "0" }, JSON.stringify(args, null, 2).slice(0, 100_000)));
    if (result) parts.append(h("h3", null, "Answered"), h("pre", { tabindex: "0" }, pretty(textOf(result)).slice(0, 100_000) || "nothing"));
    return parts;
  });
}

// -- boundaries ------------------------------------------------------------------------------------

/** A line across the conversation. @param {string} text @param {HTMLElement|null} [action] */
export function boundary(text, action = null) {
  return h("div", { class: "boundary", role: "separator", "aria-label": text }, h("span", null, text), action);
}

export function resetBoundary(window, action) {
  return boundary(`New conversation · ${REASONS[window.reason] ?? window.reason} · ${clock(window.startedAt)}`, action);
}

export function compactionBoundary(compaction) {
  const size = compaction.tokensBefore ? ` from ${tokens(compaction.tokensBefore)} tokens` : "";
  return boundary(`Compacted${size} · ${clock(compaction.at)} · the model sees a summary of what is above`);
}

/** The reply that is being written. @param {import("./chatlog.js").Live} live @param {HTMLElement|null} old */
export function renderLive(live, old) {
  const box = old ?? h("article", { class: "msg assistant live", "aria-label": "Assistant, writing" });
  const shown = live.text.length > LIVE_CHARS ? `… ${live.text.slice(-LIVE_CHARS)}` : live.text;
  const doing = live.tool ? `Using ${live.tool}` : live.phase ? live.phase.replaceAll("_", " ") : live.text ? "" : "Working";
  fill(box, h("header", { class: "meta" }, h("span", { class: "who" }, "Assistant")),
    live.thinking && h("div", { class: "thoughts" }, live.thinking.slice(-600)),
    shown && h("div", { class: "md" }, renderMarkdown(shown)),
    h("p", { class: "note" }, h("span", { class: "pulse", "aria-hidden": "true" }), doing));
  return box;
}
