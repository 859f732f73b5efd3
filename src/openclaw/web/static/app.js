/**
 * The shell: navigation, routes, keyboard, what the connection is doing. It knows the sessions list and the chat;
 * every other view is a panel that registered itself. Routes stand behind `#`, so that the gateway sees none.
 */

import { announce, fill, h, notice } from "./dom.js";
import { icon } from "./icons.js";
import { wire } from "./wire.js";
import { outbox } from "./outbox.js";
import { sessions } from "./state.js";
import { openPalette, showShortcuts } from "./palette.js";
import { narrow, navigate, route, sessionPath } from "./routes.js";
import "./sessions.js";
import "./chat.js";

export { navigate, sessionPath };

/** @typedef {{id: string, title: string, icon: string, element: string, order?: number}} Panel */

/** @type {Map<string, Panel>} */
const panels = new Map();
const shell = { root: null, main: null, rail: null, banner: null, view: null, viewId: "" };

/** Put a panel into the navigation; `element` is the name of its custom element, shown at `#/<id>`.
 * @param {Panel} panel */
export function registerPanel(panel) {
  panels.set(panel.id, panel);
  if (shell.root) {
    drawRail();
    if (route().panel === panel.id) show();
  }
}

/** All panels in their order. @returns {Panel[]} */
export function listPanels() {
  return [...panels.values()].sort((a, b) => (a.order ?? 100) - (b.order ?? 100));
}

// -- drawing ---------------------------------------------------------------------------------------

function build() {
  shell.rail = h("nav", { class: "rail", "aria-label": "Sections" });
  shell.main = h("main", { id: "main", class: "main", tabindex: "-1" });
  shell.banner = h("div", { class: "banner", role: "status", hidden: true });
  const skip = h("a", { class: "skip", href: "#main", onclick: (event) => {
    event.preventDefault();
    shell.main.focus();
  } }, "Skip to the conversation");
  shell.root = h("div", { class: "app" }, skip, shell.rail,
    h("aside", { class: "sidebar", "aria-label": "Sessions" }, h("oc-sessions")),
    h("div", { class: "stage" }, shell.banner, shell.main));
  document.getElementById("app").replaceChildren(shell.root);
  drawRail();
}

function drawRail() {
  const here = route().panel || "s";
  const link = (id, title, picture, href) => h("a", { class: "railitem", href, title, "aria-label": title,
    "aria-current": here === id ? "page" : null }, icon(picture), h("span", null, title));
  fill(shell.rail, link("s", "Chat", "chat", sessions.lastKey ? `#${sessionPath(sessions.lastKey)}` : "#/"),
    listPanels().map((panel) => link(panel.id, panel.title, panel.icon, `#/${panel.id}`)),
    h("span", { class: "spring" }),
    h("button", { class: "railitem", title: "Light or dark", "aria-label": "Light or dark",
      onclick: toggleTheme }, icon("theme"), h("span", null, "Theme")),
    h("button", { class: "railitem", title: "Sign this browser out", "aria-label": "Sign out",
      onclick: signOut }, icon("out"), h("span", null, "Sign out")));
}

/** Show what the address says. A view that is still the right one is told, not built again. */
function show() {
  const place = route();
  if (!place.panel || (place.panel === "s" && !place.key)) {
    const key = sessions.lastKey ?? wire.hello?.snapshot?.sessionDefaults?.mainSessionKey;
    shell.root.dataset.view = "list";
    if (key && !narrow()) location.replace(`#${sessionPath(key)}`);
    return drawRail();
  }
  const panel = panels.get(place.panel);
  const element = place.panel === "s" ? "oc-chat" : panel?.element;
  shell.root.dataset.view = "main";
  if (shell.viewId !== place.panel) {
    shell.view = element ? h(element) : h("p", { class: "empty" }, "There is nothing at this address.");
    shell.viewId = element ? place.panel : "";
    fill(shell.main, shell.view);
  }
  if (place.panel === "s") shell.view.open(place.key, place.messageId, place.windowId);
  document.title = place.panel === "s" ? "OpenClaw" : `${panel?.title ?? "Not found"} · OpenClaw`;
  drawRail();
}

function drawStatus(status) {
  shell.root.dataset.wire = status;
  shell.banner.hidden = status === "open";
  const text = { connecting: "Connecting …", offline: "The gateway is not reachable. Trying again; what you send is kept." };
  if (status === "signed-out") {
    fill(shell.banner, h("div", { class: "card signin" }, h("h1", null, "Sign this browser in"),
      h("p", null, "Run this on the gateway's machine and open the link that it prints. A link works once."),
      h("pre", null, "openclaw dashboard"),
      h("button", { class: "primary", onclick: () => location.reload() }, "I have opened the link")));
  } else if (status !== "open") {
    fill(shell.banner, h("span", null, text[status]),
      h("button", { class: "link", onclick: () => wire.retryNow() }, "Try now"));
  }
  announce(status === "open" ? "Connected" : text[status] ?? "Signed out");
}

/** Light, dark, as the system has it: each press goes one on. */
export function toggleTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("openclaw.theme", root.dataset.theme);
  } catch {
    announce("The choice is not kept: this browser stores nothing.");
  }
}

/** End the sign-in, and leave nothing of it in this browser: neither drafts nor what was not sent. */
async function signOut() {
  try {
    await fetch("/signout", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
    Object.keys(localStorage).filter((name) => /^openclaw\.(draft|outbox)\./.test(name)).forEach((name) => localStorage.removeItem(name));
  } catch (error) {
    return void notice(`Not signed out: ${error.message}`);
  }
  return void location.reload();
}

// -- keyboard --------------------------------------------------------------------------------------

/** Whether keys are for a field and not for the page. */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

const list = () => shell.root.querySelector("oc-sessions");
const KEYS = {
  j: () => list().move(1),
  k: () => list().move(-1),
  "/": () => list().focusSearch(),
  n: () => list().create(),
  c: () => shell.main.querySelector("textarea")?.focus(),
  "?": () => showShortcuts(),
};

function onKey(event) {
  if (event.defaultPrevented) return;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
  } else if (event.key === "Escape") {
    if (isTyping(event.target)) event.target.blur();
    else if (narrow() && shell.root.dataset.view === "main") navigate("/");
  } else if (!event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target) && KEYS[event.key]) {
    if (document.querySelector("dialog[open]")) return;
    event.preventDefault();
    KEYS[event.key]();
  }
}

function start() {
  build();
  addEventListener("hashchange", show);
  addEventListener("keydown", onKey);
  sessions.start();
  outbox.start();
  wire.onStatus(drawStatus);
  wire.on("resync", () => !shell.viewId && show());
  wire.start();
  show();
}

start();
