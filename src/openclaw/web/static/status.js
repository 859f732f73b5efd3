/** How the gateway does: itself, its channels, who is connected, what could not be delivered, what is not safe. */

import { age, clock, duration, fill, h } from "./dom.js";
import { addPanel, badge, button, facts, Panel, section, sure, table } from "./panel.js";
import { sessionPath } from "./routes.js";
import { shortKey } from "./state.js";
import { wire } from "./wire.js";

const SEVERITIES = { critical: "bad", warn: "warn", info: "idle" };

class Status extends Panel {
  static events = ["health", "presence"];

  build() {
    this.frame("Status");
  }

  load() {
    return Promise.all([["status"], ["cron.status"], ["system-presence"], ["channels.status"], ["outbox.list", { state: "unknown" }],
      ["outbox.list", { state: "failed" }], ["security.audit"]].map(([method, params]) => wire.call(method, params)));
  }

  draw([status, cron, [own, ...others], channels, unknown, failed, audit]) {
    fill(this.body, this.gateway(status, cron, own), this.channels(channels), this.deliveries(unknown, failed), this.audit(audit), this.connected(others));
  }

  gateway(status, cron, own) {
    const { tasks, sessions } = status;
    return section("Gateway", facts([["Version", status.runtimeVersion], ["Host", `${own.host}, ${own.platform}`],
      ["Running since", `${clock(own.ts)} (${duration(Date.now() - own.ts)})`], ["Sessions", sessions.count],
      ["Store", sessions.paths.join(", ")],
      ["Turns", `${tasks.active} running, ${tasks.byStatus.queued} waiting`], ["Default model", `${sessions.defaults.modelProvider}/${sessions.defaults.model}`],
      ["Agents", status.heartbeat.agents.map((agent) => `${agent.agentId}${agent.enabled ? ` (heartbeat every ${agent.every})` : ""}`).join(", ")],
      ["Jobs", `${cron.jobs}${cron.enabled ? "" : " (the scheduler is off)"}${cron.nextWakeAtMs ? `, next ${clock(cron.nextWakeAtMs)}` : ""}`]]));
  }

  channels(answer) {
    const rows = answer.channelOrder.flatMap((channel) => answer.channelAccounts[channel].map((account) => ({ channel, ...account })));
    return section("Channels", table("Channels", [
      ["Channel", (row) => answer.channelLabels[row.channel]], ["Account", (row) => row.accountId],
      ["State", (row) => badge(row.state, row.lastError ? "bad" : row.running ? "good" : "warn")],
      ["Since", (row) => age(row.sinceMs)], ["Restarts", (row) => row.restarts ?? 0, "number"], ["Last error", (row) => row.lastError],
    ], rows, "No channel is connected."));
  }

  deliveries(unknown, failed) {
    const rows = [...unknown.deliveries, ...failed.deliveries];
    const states = Object.entries(failed.states).map(([state, count]) => `${count} ${state}`).join(", ");
    const act = (method) => (row) => async () => {
      if (method === "outbox.drop") await sure("Drop this delivery?", "It is never sent, and nobody is told.", "Drop");
      this.act(method, { deliveryNo: row.deliveryNo });
    };
    const again = act("outbox.retry");
    const drop = act("outbox.drop");
    return section("Deliveries", states && h("p", { class: "hint" }, states), table("Deliveries that need somebody", [
      ["State", (row) => badge(row.state, row.state === "failed" ? "bad" : "warn")], ["To", (row) => `${row.channel}: ${row.target}`],
      ["Session", (row) => h("a", { href: `#${sessionPath(row.sessionKey)}` }, shortKey(row.sessionKey))],
      ["Text", (row) => h("span", { class: "clip", title: row.text }, row.text)], ["Error", (row) => row.error], ["When", (row) => age(row.createdAt)],
      ["", (row) => [button("Send again", again(row)), button("Drop", drop(row), { class: "danger" })], "deeds"],
    ], rows, "Nothing failed, and nothing is uncertain."));
  }

  audit(answer) {
    const { critical = 0, warn = 0 } = answer.counts;
    return section("Security", h("p", null, critical ? badge(`${critical} critical`, "bad") : badge("nothing critical", "good"), warn > 0 && [" ", badge(`${warn} to look at`, "warn")]),
      table("Findings of the security audit", [
        ["Severity", (row) => badge(row.severity, SEVERITIES[row.severity])], ["Finding", (row) => row.detail],
        ["What to do", (row) => row.fix],
      ], answer.findings, "No findings."));
  }

  connected(entries) {
    return section("Connected", table("Connected clients", [
      ["Client", (row) => row.host], ["Mode", (row) => row.mode], ["Address", (row) => row.ip],
      ["Since", (row) => age(row.ts)],
    ], entries, "Nobody."));
  }
}

addPanel("status", "Status", Status, 30);
