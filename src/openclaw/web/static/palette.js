/** Ctrl-K: one field for every place and deed; and the list of keys. */

import { fill, h } from "./dom.js";
import { listPanels, toggleTheme } from "./app.js";
import { actionsOf } from "./actions.js";
import { navigate, route, sessionPath } from "./routes.js";
import { sessions, titleOf } from "./state.js";
import { wire } from "./wire.js";

const MOST = 12;
const SHORTCUTS = [["Ctrl K", "Go anywhere, do anything"], ["j  k", "Next and previous session"], ["Enter", "Open, or send"],
  ["/", "Search"], ["n", "New session"], ["c", "Write"], ["Shift Enter", "New line"],
  ["Alt Enter", "While it works: queue the message"], ["Esc", "Leave the field; stop completing"], ["?", "These keys"]];

function entries() {
  const list = document.querySelector("oc-sessions");
  const here = sessions.get(route().key);
  return [
    ...sessions.list().map((row) => ({ label: titleOf(row), hint: row.key, run: () => navigate(sessionPath(row.key)) })),
    ...(here ? actionsOf(here).map((action) => ({ label: action.label, hint: "this session", run: action.run })) : []),
    { label: "New session", hint: "n", run: () => list.create() },
    { label: "Search", hint: "/", run: () => list.focusSearch() },
    ...listPanels().map((panel) => ({ label: panel.title, hint: "panel", run: () => navigate(`/${panel.id}`) })),
    { label: "Light or dark", hint: "theme", run: toggleTheme },
    { label: "Keys", hint: "?", run: showShortcuts },
  ];
}

/** The main session of every agent, also where nothing was said yet; with one agent alone there is no choice. */
async function agentEntries() {
  const { agents, mainKey, scope } = await wire.call("agents.list");
  if (agents.length < 2 || scope === "global") return [];
  const path = ({ id }) => sessionPath(`agent:${id}:${mainKey}`);
  return agents.map((agent) => ({ label: `Talk to ${agent.name || agent.id}`, hint: "agent", run: () => navigate(path(agent)) }));
}

/** Whether the letters of `query` occur in this order; smaller is better, Infinity is no match. */
export function rank(query, text) {
  const low = text.toLowerCase();
  const whole = low.indexOf(query);
  if (whole !== -1) return whole;
  let at = -1;
  for (const letter of query) {
    at = low.indexOf(letter, at + 1);
    if (at === -1) return Infinity;
  }
  return 1000 + at;
}

export function openPalette() {
  if (document.querySelector("dialog[open]")) return;
  const all = entries();
  let shown = [];
  let at = 0;
  const field = h("input", { type: "text", placeholder: "Go to …", "aria-label": "Go to", autocomplete: "off",
    role: "combobox", "aria-expanded": "true", "aria-controls": "palettelist", spellcheck: "false" });
  const box = h("ul", { id: "palettelist", class: "plain options", role: "listbox", "aria-label": "Places and deeds" });
  const choose = (entry) => { dialog.close(); entry?.run(); };
  const draw = () => {
    const query = field.value.trim().toLowerCase();
    shown = all.map((entry) => ({ entry, rank: rank(query, `${entry.label} ${entry.hint}`) }))
      .filter((one) => one.rank < Infinity).sort((a, b) => a.rank - b.rank).slice(0, MOST).map((one) => one.entry);
    at = Math.max(0, Math.min(at, shown.length - 1));
    fill(box, shown.map((entry, i) => h("li", { id: `option${i}`, role: "option", "aria-selected": String(i === at),
      onclick: () => choose(entry) }, h("span", null, entry.label), h("span", { class: "hint" }, entry.hint))));
    field.setAttribute("aria-activedescendant", shown.length ? `option${at}` : "");
  };
  field.oninput = () => { at = 0; draw(); };
  field.onkeydown = (event) => {
    if (event.key === "ArrowDown") at += 1;
    else if (event.key === "ArrowUp") at -= 1;
    else if (event.key === "Enter") choose(shown[at]);
    else return;
    event.preventDefault();
    draw();
  };
  const dialog = h("dialog", { class: "dialog palette", "aria-label": "Go to", onclose: () => dialog.remove() }, field, box);
  document.body.append(dialog);
  dialog.showModal();
  draw();
  agentEntries().then((agents) => { all.push(...agents); draw(); }, () => { /* what is known stays */ });
}

export function showShortcuts() {
  const dialog = h("dialog", { class: "dialog", "aria-label": "Keys", onclose: () => dialog.remove() }, h("h2", null, "Keys"),
    h("dl", { class: "keys" }, SHORTCUTS.map(([key, what]) => [h("dt", null, h("kbd", null, key)), h("dd", null, what)])),
    h("form", { method: "dialog", class: "row end" }, h("button", { type: "submit", class: "primary" }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}
