/** What model calls used and cost: per day, agent, model and session; and how full the contexts are. */

import { fill, h, money, tokens } from "./dom.js";
import { gauge } from "./gauge.js";
import { addPanel, choice, facts, Panel, section, table } from "./panel.js";
import { bars, columns } from "./plot.js";
import { sessionPath } from "./routes.js";
import { shortKey, titleOf } from "./state.js";
import { wire } from "./wire.js";

const MOST_BARS = 15;
const READ_AGAIN_MS = 1500;
const KINDS = [["input", "Input"], ["output", "Output"], ["cacheRead", "Cache read"], ["cacheWrite", "Cache write"]];
const CHOICES = {
  days: ["Days", [[7, "7 days"], [30, "30 days"], [90, "90 days"]]],
  by: ["By", [["day", "Day"], ["agent", "Agent"], ["model", "Model"], ["session", "Session"]]],
  measure: ["Measure", [["cost", "Cost"], ["tokens", "Tokens"]]],
};
/** Names and amounts of one grouping. */
const ROWS = {
  day: ({ cost }) => cost.daily.map((day) => [day.date, day]),
  agent: ({ used }) => used.aggregates.byAgent.map((one) => [one.agentId, one.totals]),
  model: ({ used }) => used.aggregates.byModel.map((one) => [`${one.provider}/${one.model}`, one.totals]),
  session: ({ used }) => used.sessions.filter((one) => one.usage).map((one) => [one.label || shortKey(one.key), one.usage]),
};

class Usage extends Panel {
  build() {
    // Until somebody chooses, models that cost nothing are measured by their tokens.
    Object.assign(this, { days: 30, by: "day", measure: null });
    const groups = Object.entries(CHOICES).map(([name, [label, choices]]) => choice(label, choices, this[name], (value) => {
      this[name] = value;
      this.refresh();
    }));
    this.measures = groups.at(-1);
    this.frame("Usage", groups);
  }

  connectedCallback() {
    super.connectedCallback();
    // A turn has ended: its numbers are in the rows by now. Many that end together are read once.
    this.offs.push(wire.on("sessions.changed", ({ phase }) => {
      if (phase !== "end" && phase !== "error") return;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.isConnected && this.refresh(), READ_AGAIN_MS);
    }));
  }

  async load() {
    const cost = await wire.call("usage.cost", { days: this.days });
    const span = { startDate: cost.daily[0].date, endDate: cost.daily.at(-1).date, limit: 1000 };
    const [used, list] = await Promise.all([wire.call("sessions.usage", span), wire.call("sessions.list", { limit: 50, includeDerivedTitles: true })]);
    return { cost, used, list };
  }

  draw(data) {
    const { cost: { totals }, used, list } = data;
    this.shown = this.measures.press(this.measure ?? (totals.totalCost > 0 ? "cost" : "tokens"));
    fill(this.body, facts([["Cost", money(totals.totalCost)], ["Tokens", tokens(totals.totalTokens)], ["Model calls", totals.calls],
      ["Sessions", used.aggregates.sessionCount], ["Calls without a known price", totals.missingCostEntries || null]]),
    totals.calls ? this.plot(data) : h("p", { class: "empty" }, `No model was called in these ${this.days} days.`),
    this.contexts(list.sessions));
  }

  plot(data) {
    const isCost = this.shown === "cost";
    const rows = ROWS[this.by](data);
    if (this.by !== "day") rows.sort(([, a], [, b]) => b.totalCost - a.totalCost || b.totalTokens - a.totalTokens);
    const label = `${isCost ? "Cost" : "Tokens"} per ${this.by}, ${this.days} days`;
    const marks = rows.map(([name, amounts]) => ({ name, values: isCost ? [amounts.totalCost] : KINDS.map(([kind]) => amounts[kind]),
      words: `${name}: ${money(amounts.totalCost)}, ${tokens(amounts.totalTokens)} tokens` }));
    const scale = { label, series: isCost ? ["Cost"] : KINDS.map(([, name]) => name), format: isCost ? money : tokens };
    return section(label, this.by === "day" ? columns(marks, scale) : bars(marks.slice(0, MOST_BARS), scale),
      h("details", { class: "numbers", open: this.opened, ontoggle: (event) => { this.opened = event.target.open; } }, h("summary", null, "The numbers as a table"),
        table(label, [["Name", ([name]) => name],
          ...[...KINDS, ["totalTokens", "Tokens"]].map(([kind, name]) => [name, ([, amounts]) => amounts[kind].toLocaleString("en"), "number"]),
          ["Cost", ([, amounts]) => `$${amounts.totalCost.toFixed(6)}`, "number"]], rows, "")));
  }

  contexts(rows) {
    const share = (row) => row.totalTokens / row.contextTokens;
    return section("Context in use", table("Context in use", [
      ["Session", (row) => h("a", { href: `#${sessionPath(row.key)}`, title: row.key }, titleOf(row))], ["Model", (row) => row.model],
      ["Context", (row) => [gauge(row), h("span", { class: "hint" }, ` of ${tokens(row.contextTokens)}, ${Math.round(100 * share(row))} %`)]],
      ["Cost", (row) => money(row.estimatedCostUsd), "number"],
    ], rows.filter((row) => share(row) > 0).sort((a, b) => share(b) - share(a)).slice(0, MOST_BARS), "No session has been measured yet."));
  }
}

addPanel("usage", "Usage", Usage, 20);
