/** What a person does to a whole session, each with its way back where there is one. */

import { h, notice } from "./dom.js";
import { navigate, route, sessionPath } from "./routes.js";
import { sessions, titleOf } from "./state.js";
import { wire } from "./wire.js";

/** Do it, and say so when it was refused. @returns {Promise<any>} undefined after a refusal */
export async function attempt(promise, what) {
  try {
    return await promise;
  } catch (error) {
    notice(`${what}: ${error.message}`);
    return undefined;
  }
}

/** The entries of a session's menu. @param {any} row */
export function actionsOf(row) {
  const key = row.key;
  const change = (fields, what) => () => attempt(sessions.patch(key, fields), what);
  return [
    { label: "Rename …", run: () => rename(row) },
    { label: row.pinned ? "Unpin" : "Pin", run: change({ pinned: !row.pinned }, "Not pinned") },
    ...(route().key === key ? [] : [{ label: "Mark unread", run: change({ unread: true }, "Not marked") }]),
    row.archived
      ? { label: "Take out of the archive", run: () => archive(row, false) }
      : { label: "Archive", run: () => archive(row, true) },
    { label: "Compact the context", run: () => compact(key) },
    { label: "Reset: begin anew", run: () => reset(row) },
    { label: "Take the last reset back", run: () => restore(key, "Nothing to take back") },
    ...(row.isMain ? [] : [{ label: "Delete", danger: true, run: () => remove(row) }]),
  ];
}

/** Ask for a new name. An empty one brings the derived title back. */
export function rename(row) {
  const input = h("input", { name: "label", value: row.label ?? "", maxlength: "200", "aria-label": "Name",
    placeholder: titleOf(row), autocomplete: "off" });
  ask("Rename the session", input, "Rename", () =>
    attempt(sessions.patch(row.key, { label: input.value.trim() || null }), "Not renamed"));
}

/** A dialog with one field. @param {string} title @param {HTMLElement} field @param {string} verb @param {() => void} done */
export function ask(title, field, verb, done) {
  const close = () => dialog.close();
  const form = h("form", { method: "dialog", onsubmit: (event) => { event.preventDefault(); close(); done(); } },
    h("h2", null, title), field,
    h("div", { class: "row end" }, h("button", { onclick: close }, "Cancel"),
      h("button", { type: "submit", class: "primary" }, verb)));
  const dialog = h("dialog", { class: "dialog", "aria-label": title, onclose: () => dialog.remove() }, form);
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
  field.select?.();
}

async function archive(row, archived) {
  const done = await attempt(sessions.patch(row.key, { archived, expectedSessionId: row.sessionId }), "Not archived");
  if (done && archived) {
    const undo = () => attempt(sessions.patch(row.key, { archived: false }), "Not taken back");
    notice(`Archived: ${titleOf(row)}`, { action: "Undo", run: undo });
  }
}

/** Delete at once, with a way back: the transcript is kept by the gateway. */
export async function remove(row) {
  const params = { key: row.key, expectedSessionId: row.sessionId };
  const done = await attempt(wire.call("sessions.delete", params), "Not deleted");
  if (!done) return;
  sessions.rows.delete(row.key);
  sessions.load();
  const was = route().key === row.key;
  if (was) navigate("/");
  notice(`Deleted: ${titleOf(row)}`, { action: "Undo", seconds: 20, run: async () => {
    if (await restore(row.key, "Not taken back") && was) navigate(sessionPath(row.key));
  } });
}

/** Begin anew, with a way back. */
export async function reset(row) {
  const params = { key: row.key, expectedSessionId: row.sessionId };
  const done = await attempt(wire.call("sessions.reset", params), "Not reset");
  if (done) notice("Begun anew.", { action: "Undo", seconds: 20, run: () => restore(row.key, "Not taken back") });
}

/** Take the last reset or the deletion back. */
export async function restore(key, what) {
  const done = await attempt(wire.call("sessions.restore", { key }), what);
  if (done) {
    notice(done.restored === "delete" ? "The session is back." : "The earlier conversation is back.");
    sessions.load();
  }
  return done;
}

async function compact(key) {
  const closeNotice = notice("Compacting …", { seconds: 0 });
  const done = await attempt(wire.call("sessions.compact", { key }), "Not compacted");
  closeNotice();
  if (done) notice(done.compacted ? "The context is smaller now." : `Not compacted: ${done.reason ?? "nothing to do"}`);
}
