/** What model calls used and cost: per day, agent, model and session; and how full the contexts are. */

import { fill, h, money, tokens } from "./dom.js";
import { registerPanel } from "./app.js";
import { gauge } from "./gauge.js";
import { choice, facts, Panel, section, table } from "./panel.js";
import { bars, columns } from "./plot.js";
import { sessionPath } from "./routes.js";
import { shortKey, titleOf } from "./state.js";
import { wire } from "./wire.js";

const MOST_BARS = 15;
const MOST_CONTEXTS = 12;
const READ_AGAIN_MS = 1500;
const KINDS = [["input", "Input"], ["output", "Output"], ["cacheRead", "Cache read"], ["cacheWrite", "Cache write"]];
const BY = [["day", "Day"], ["agent", "Agent"], ["model", "Model"], ["session", "Session"]];

/** @typedef {{name: string, amounts: any, href?: string}} Row amounts as `usage.cost` has them */

/** The rows of one grouping; days in their order, everything else with the most expensive first. */
function rowsBy(by, { cost, used }) {
  if (by === "day") return cost.daily.map((day) => ({ name: day.date, amounts: day }));
  const rows = {
    agent: () => used.aggregates.byAgent.map((one) => ({ name: one.agentId, amounts: one.totals })),
    model: () => used.aggregates.byModel.map((one) => ({ name: `${one.provider}/${one.model}`, amounts: one.totals })),
    session: () => used.sessions.filter((one) => one.usage).map((one) =>
      ({ name: one.label || shortKey(one.key), amounts: one.usage, href: one.sessionId && `#${sessionPath(one.key)}` })),
  }[by]();
  return rows.sort((a, b) => b.amounts.totalCost - a.amounts.totalCost || b.amounts.totalTokens - a.amounts.totalTokens);
}

class Usage extends Panel {
  build() {
    Object.assign(this, { days: 30, by: "day", measure: "cost" });
    this.tools = h("div", { class: "row wrap" });
    this.frame("Usage", this.tools);
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
    const span = { startDate: cost.daily[0].date, endDate: cost.daily.at(-1).date };
    const [used, list] = await Promise.all([wire.call("sessions.usage", { ...span, limit: 1000 }),
      wire.call("sessions.list", { limit: 50, includeDerivedTitles: true })]);
    return { cost, used, sessions: list.sessions };
  }

  draw(data) {
    const sign = JSON.stringify([this.days, this.by, this.measure, data.cost.totals, data.cost.daily.at(-1).date,
      data.sessions.map((row) => [row.key, row.totalTokens])]);
    if (sign === this.sign) return;
    this.sign = sign;
    const set = (name) => (value) => {
      this[name] = value;
      if (name === "days") this.refresh();
      else this.redraw();
    };
    fill(this.tools, choice("Days", [[7, "7 days"], [30, "30 days"], [90, "90 days"]], this.days, set("days")),
      choice("By", BY, this.by, set("by")), choice("Measure", [["cost", "Cost"], ["tokens", "Tokens"]], this.measure, set("measure")));
    const { totals } = data.cost;
    fill(this.body, facts([["Cost", money(totals.totalCost)], ["Tokens", tokens(totals.totalTokens)], ["Model calls", totals.calls],
      ["Sessions", data.used.aggregates.sessionCount]]),
    totals.missingCostEntries > 0 && h("p", { class: "hint" }, `${totals.missingCostEntries} calls have no known price; they count tokens and no money. Set `,
      h("code", null, "models.providers.*.models[].cost"), "."),
    this.plot(data), this.contexts(data.sessions));
  }

  plot(data) {
    const rows = rowsBy(this.by, data);
    const what = `${this.measure === "cost" ? "Cost" : "Tokens"} per ${this.by}, ${this.days} days`;
    if (data.cost.totals.calls === 0) return h("p", { class: "empty" }, `No model was called in these ${this.days} days.`);
    const values = (amounts) => (this.measure === "cost" ? [amounts.totalCost] : KINDS.map(([kind]) => amounts[kind]));
    const marks = rows.map(({ name, amounts }) => ({ name, values: values(amounts),
      words: `${name}: ${money(amounts.totalCost)}, ${tokens(amounts.totalTokens)} tokens` }));
    const scale = { label: what, series: this.measure === "cost" ? ["Cost"] : KINDS.map(([, name]) => name),
      format: this.measure === "cost" ? money : tokens };
    const shown = marks.slice(0, MOST_BARS);
    const numbers = rows.slice().reverse();
    return section(what, this.by === "day" ? columns(marks, scale) : bars(shown, scale),
      shown.length < marks.length && this.by !== "day" && h("p", { class: "hint" }, `The first ${MOST_BARS} of ${marks.length}; all stand in the table.`),
      h("details", { class: "numbers", open: this.opened === true, ontoggle: (event) => { this.opened = event.target.open; } },
        h("summary", null, "The numbers as a table"), table(what, [
          [BY.find(([id]) => id === this.by)[1], (row) => (row.href ? h("a", { href: row.href }, row.name) : row.name)],
          ...KINDS.map(([kind, name]) => [name, (row) => row.amounts[kind].toLocaleString("en"), "number"]),
          ["Tokens", (row) => row.amounts.totalTokens.toLocaleString("en"), "number"],
          ["Cost", (row) => `$${row.amounts.totalCost.toFixed(6)}`, "number"],
        ], this.by === "day" ? numbers : rows, "Nothing.")));
  }

  contexts(sessions) {
    const measured = sessions.filter((row) => row.totalTokens > 0 && row.contextTokens)
      .sort((a, b) => b.totalTokens / b.contextTokens - a.totalTokens / a.contextTokens).slice(0, MOST_CONTEXTS);
    return section("Context in use", table("Context in use", [
      ["Session", (row) => h("a", { href: `#${sessionPath(row.key)}`, title: row.key }, titleOf(row))],
      ["Model", (row) => row.model],
      ["Context", (row) => [gauge(row), h("span", { class: "hint" }, ` of ${tokens(row.contextTokens)}, ${Math.round((100 * row.totalTokens) / row.contextTokens)} %`)]],
      ["Cost", (row) => money(row.estimatedCostUsd ?? null), "number"],
    ], measured, "No session has been measured yet."));
  }
}

customElements.define("oc-usage", Usage);
registerPanel({ id: "usage", title: "Usage", icon: "usage", element: "oc-usage", order: 20 });
