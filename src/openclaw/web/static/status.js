/** How the gateway does: itself, its channels, who is connected, what could not be delivered, what is not safe. */

import { age, clock, duration, fill, h } from "./dom.js";
import { attempt } from "./actions.js";
import { registerPanel } from "./app.js";
import { badge, button, callAll, facts, Panel, section, sure, table } from "./panel.js";
import { sessionPath } from "./routes.js";
import { shortKey } from "./state.js";
import { wire } from "./wire.js";

const SEVERITIES = { critical: "bad", warn: "warn", info: "idle" };
const FATES = { failed: "bad", unknown: "warn", sent: "good", sending: "busy", prepared: "idle" };

class Status extends Panel {
  static events = ["health", "presence"];

  build() {
    this.frame("Status", button("Refresh", () => this.refresh()));
  }

  load() {
    return callAll({ status: ["status", { includeChannelSummary: true }], channels: ["channels.status"], cron: ["cron.status"],
      presence: ["system-presence"], failed: ["outbox.list", { state: "failed", limit: 20 }],
      unknown: ["outbox.list", { state: "unknown", limit: 20 }], audit: ["security.audit"] });
  }

  draw(data) {
    fill(this.body, this.gateway(data), this.channels(data.channels), this.deliveries(data), this.audit(data.audit),
      this.presence(data.presence ?? []));
  }

  gateway({ status, cron, presence }) {
    const own = presence?.find((entry) => entry.mode === "gateway");
    const { tasks, sessions } = status;
    return section("Gateway", facts([["Version", status.runtimeVersion], ["Host", own && `${own.host}, ${own.platform}`],
      ["Running since", own && `${clock(own.ts)} (${duration(Date.now() - own.ts)})`], ["Sessions", sessions.count],
      ["Store", sessions.paths.join(", ")],
      ["Turns", `${tasks.active} running, ${tasks.byStatus.queued} waiting`], ["Default model", `${sessions.defaults.modelProvider}/${sessions.defaults.model}`],
      ["Agents", status.heartbeat.agents.map((agent) => `${agent.agentId}${agent.enabled ? ` (heartbeat every ${agent.every})` : ""}`).join(", ")],
      ["Jobs", cron && `${cron.jobs}${cron.enabled ? "" : " (the scheduler is off)"}${cron.nextWakeAtMs ? `, next ${clock(cron.nextWakeAtMs)}` : ""}`]]));
  }

  channels(answer) {
    const rows = (answer?.channelOrder ?? []).flatMap((channel) => answer.channelAccounts[channel].map((account) => ({ channel, ...account })));
    return section("Channels", table("Channels", [
      ["Channel", (row) => answer.channelLabels[row.channel]], ["Account", (row) => row.accountId],
      ["State", (row) => badge(row.state, row.lastError ? "bad" : row.running ? "good" : "warn")],
      ["Since", (row) => age(row.sinceMs)], ["Restarts", (row) => row.restarts ?? 0, "number"], ["Last error", (row) => row.lastError ?? ""],
    ], rows, "No channel is connected."));
  }

  deliveries({ failed, unknown }) {
    const rows = [...(unknown?.deliveries ?? []), ...(failed?.deliveries ?? [])];
    const states = Object.entries(failed?.states ?? {}).map(([state, count]) => `${count} ${state}`).join(", ");
    const act = (method, done) => (row) => async () => {
      if (method === "outbox.drop") await sure("Drop this delivery?", "It is never sent, and nobody is told.", "Drop");
      if (await attempt(wire.call(method, { deliveryNo: row.deliveryNo }), `Not ${done}`)) this.refresh();
    };
    const again = act("outbox.retry", "sent again");
    const drop = act("outbox.drop", "dropped");
    return section("Deliveries", states && h("p", { class: "hint" }, states), table("Deliveries that need somebody", [
      ["State", (row) => badge(row.state, FATES[row.state] ?? "idle")], ["To", (row) => `${row.channel}: ${row.target}`],
      ["Session", (row) => h("a", { href: `#${sessionPath(row.sessionKey)}` }, shortKey(row.sessionKey))],
      ["Text", (row) => h("span", { class: "clip", title: row.text }, row.text)], ["Error", (row) => row.error ?? ""], ["When", (row) => age(row.createdAt)],
      ["", (row) => [button("Send again", again(row)), button("Drop", drop(row), { class: "danger" })], "deeds"],
    ], rows, "Nothing failed, and nothing is uncertain."));
  }

  audit(answer) {
    if (!answer) return null;
    const { critical = 0, warn = 0 } = answer.counts;
    return section("Security", h("p", null, critical ? badge(`${critical} critical`, "bad") : badge("nothing critical", "good"), warn > 0 && [" ", badge(`${warn} to look at`, "warn")]),
      table("Findings of the security audit", [
        ["Severity", (row) => badge(row.severity, SEVERITIES[row.severity])], ["Finding", (row) => row.detail],
        ["What to do", (row) => row.fix],
      ], answer.findings, "No findings."));
  }

  presence(entries) {
    return section("Connected", table("Connected clients", [
      ["Client", (row) => row.host], ["Mode", (row) => row.mode], ["Version", (row) => row.version], ["Address", (row) => row.ip ?? ""],
      ["Since", (row) => age(row.ts)],
    ], entries.filter((entry) => entry.mode !== "gateway"), "Nobody else."));
  }
}

customElements.define("oc-status", Status);
registerPanel({ id: "status", title: "Status", icon: "status", element: "oc-status", order: 30 });
