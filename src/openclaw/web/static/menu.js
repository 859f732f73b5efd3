/** A small menu under a button: arrows move, Enter chooses, Escape and a click elsewhere close. */

import { h } from "./dom.js";
import { iconButton } from "./icons.js";

/** A button that opens a menu. @param {string} label @param {() => {label: string, run: () => void}[]} items
 * @param {string} [kind] a class of its own */
export function menuButton(label, items, kind = "") {
  return iconButton(label, "more", (event) => openMenu(event.currentTarget, items()),
    { class: kind, "aria-haspopup": "menu", "aria-expanded": "false" });
}

/**
 * @param {HTMLElement} anchor the button that opened it; gets the focus back
 * @param {{label: string, run: () => void, danger?: boolean}[]} items
 */
function openMenu(anchor, items) {
  const close = (refocus = true) => {
    box.remove();
    removeEventListener("pointerdown", outside, true);
    anchor.setAttribute("aria-expanded", "false");
    if (refocus) anchor.focus();
  };
  const outside = (event) => !box.contains(event.target) && close(false);
  const buttons = items.map((item) => h("button", { role: "menuitem", tabindex: "-1",
    class: item.danger ? "danger" : null, onclick: () => { close(); item.run(); } }, item.label));
  const box = h("div", { class: "menu", role: "menu", "aria-label": anchor.getAttribute("aria-label") ?? "Menu",
    onkeydown: (event) => moveIn(event, buttons, close) }, buttons);
  document.body.append(box);
  place(box, anchor.getBoundingClientRect());
  anchor.setAttribute("aria-expanded", "true");
  addEventListener("pointerdown", outside, true);
  buttons[0]?.focus();
}

function moveIn(event, buttons, close) {
  const at = buttons.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
  if (to !== undefined) buttons.at(to === buttons.length ? 0 : to)?.focus();
  else if (event.key === "Escape" || event.key === "Tab") close();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function place(box, near) {
  const size = box.getBoundingClientRect();
  const left = Math.max(8, Math.min(near.right - size.width, innerWidth - size.width - 8));
  const below = near.bottom + 4;
  const top = below + size.height > innerHeight - 8 ? Math.max(8, near.top - size.height - 4) : below;
  box.style.setProperty("left", `${left}px`);
  box.style.setProperty("top", `${top}px`);
}
