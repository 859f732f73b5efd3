/** The page's own small pictures: one path each, drawn on a grid of 16, in the colour of the text around them. */

import { h, svg } from "./dom.js";

const PATHS = {
  chat: "M2.5 3.5h11v7h-6l-3 3v-3h-2z",
  plus: "M8 3v10M3 8h10",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5l3 3",
  send: "M8 13V3.5M4 7.5l4-4 4 4",
  stop: "M4.5 4.5h7v7h-7z",
  clip: "M12.5 7.5l-5 5a2.8 2.8 0 0 1-4-4l5.5-5.5a1.9 1.9 0 0 1 2.7 2.7l-5.2 5.2a.9.9 0 0 1-1.3-1.3l4.6-4.6",
  more: "M3 8h1M7.5 8h1M12 8h1",
  back: "M9.5 3.5L5 8l4.5 4.5",
  down: "M8 3v9M4 8.5L8 12.5l4-4",
  chevron: "M6 4l4 4-4 4",
  pin: "M6 2.5h4l-.5 4 2 2.5h-7l2-2.5zM8 9v4.5",
  tool: "M9.5 6.5l-6 6M9.6 2.8a3.2 3.2 0 0 0 3.6 3.6 3.2 3.2 0 0 1-4.4-4.2z",
  thought: "M5 11.5a3 3 0 0 1-1-5.8 4 4 0 0 1 7.6-.5A3.2 3.2 0 0 1 11 11.5zM4.5 14h.01",
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4 4l8 8M12 4l-8 8",
  copy: "M6 6h7v7H6zM3 10V3h7",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  tree: "M4 2.5v9h4M4 6.5h4M9 5h4v3H9zM9 10h4v3H9z",
  usage: "M3 13V8M8 13V3M13 13V6",
  status: "M2 8h3l2-5 3 10 2-5h2",
  logs: "M3 4h10M3 7h10M3 10h7M3 13h5",
  cron: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM8 5v3.5l2.5 1.5",
  devices: "M2.5 3.5h8v6h-8zM5 12.5h3M12 6.5h2v6h-3v-6z",
  settings: "M3 4.5h6M12 4.5h1M3 11.5h1M7 11.5h6M10.5 3v3M5.5 10v3",
  people: "M6 7.5a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM2 13c0-2.4 1.6-4 4-4s4 1.6 4 4M10.5 3.5a2 2 0 0 1 0 3.8M11.5 9c1.6.4 2.5 1.9 2.5 4",
  out: "M6 3H3v10h3M7 8h6.5M11 5.5L13.5 8 11 10.5",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
};

/** A picture by its name, or by the path that is given. Says nothing to screen readers: its button does.
 * @param {string} name */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" },
    svg("path", { d: PATHS[name] ?? name }));
}

/** A button that is only a picture; `label` is what it does. @param {string} label @param {string} name
 * @param {(event: MouseEvent) => void} onclick @param {Object<string, any>} [props] */
export function iconButton(label, name, onclick, { class: kind = "", ...props } = {}) {
  return h("button", { class: `iconbutton ${kind}`, title: label, "aria-label": label, onclick, ...props }, icon(name));
}
