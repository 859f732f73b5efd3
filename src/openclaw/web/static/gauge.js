/** How full the context of a session is: a small bar with its numbers in words. */

import { h, svg, tokens } from "./dom.js";

/** @param {any} row a session; nothing is shown of one that has not been measured */
export function gauge(row) {
  const { totalTokens: used, contextTokens: size } = row;
  if (!used || !size) return h("span", { class: "gauge none" }, tokens(used ?? null));
  const share = Math.min(1, used / size);
  const level = share >= 0.9 ? "full" : share >= 0.7 ? "near" : "calm";
  const words = `${tokens(used)} of ${tokens(size)} tokens, ${Math.round(share * 100)} %`;
  return h("span", { class: `gauge ${level}`, role: "meter", "aria-label": "Context in use", "aria-valuemin": "0",
    "aria-valuemax": size, "aria-valuenow": Math.min(used, size), "aria-valuetext": words, title: `Context: ${words}` },
  svg("svg", { viewBox: "0 0 48 6", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "all", width: 48, height: 6, rx: 3 }),
    svg("rect", { class: "used", width: Math.max(2, 48 * share), height: 6, rx: 3 })),
  h("span", { "aria-hidden": "true" }, tokens(used)));
}
