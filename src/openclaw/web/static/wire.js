/**
 * The one connection to the gateway that served this page: requests, events, and coming back after a break.
 *
 * The browser's sign-in cookie is the credential; no secret is in this page. A break is followed by `resync`,
 * which means: what you show may be old, read it anew. Requests are never repeated here, because only the caller
 * knows whether that is safe.
 */

const PROTOCOL = 4;
const CLIENT = { id: "webchat-ui", mode: "webchat", version: "1", platform: "web", displayName: "web page" };
const SCOPES = ["operator.admin", "operator.read", "operator.write", "operator.approvals", "operator.questions",
  "operator.pairing"];
const CAPS = ["tool-events", "thinking-events"];
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 15_000;
const SIGNED_OUT_WAIT_MS = 20_000;
/** A broken connection ends its calls sooner; only an answer that never comes takes this long. */
const CALL_MS = 600_000;
/** Refusals of `connect` that another attempt with the same cookie cannot change. */
const NOT_SIGNED_IN = new Set(["DEVICE_IDENTITY_REQUIRED", "CONTROL_UI_DEVICE_IDENTITY_REQUIRED", "AUTH_REQUIRED",
  "AUTH_TOKEN_MISSING", "AUTH_PASSWORD_MISSING", "AUTH_UNAUTHORIZED", "AUTH_TOKEN_NOT_CONFIGURED"]);

/** A refusal of the gateway: `code`, `details` and `message` are its own words; `OFFLINE` when none came. */
export class WireError extends Error {
  constructor(error) {
    super(error.message ?? "the gateway refused");
    this.code = error.code ?? "UNAVAILABLE";
    this.details = error.details ?? {};
    this.retryable = error.retryable ?? false;
  }
}

class Wire {
  constructor() {
    /** @type {"connecting"|"open"|"offline"|"signed-out"} */
    this.status = "connecting";
    /** What the gateway said when it let us in. */
    this.hello = null;
    this._handlers = new Map();
    this._watchers = new Set();
    this._calls = new Map();
    this._number = 0;
    this._seq = 0;
    this._wait = FIRST_WAIT_MS;
    this._socket = null;
    this._timer = 0;
    this._heardAt = 0;
  }

  /** Connect, and stay connected for as long as the page lives. */
  start() {
    addEventListener("online", () => this.retryNow());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.retryNow());
    setInterval(() => this._checkSilence(), 5000);
    this._connect();
  }

  /** Do not wait any longer for the next attempt. */
  retryNow() {
    if (this._socket === null) {
      this._wait = FIRST_WAIT_MS;
      this._connect();
    }
  }

  /**
   * Ask, and wait for the answer. Rejects with WireError; `OFFLINE` when the connection is not there or broke.
   * @param {string} method @param {object} [params] @returns {Promise<any>}
   */
  call(method, params = {}) {
    if (this.status === "open") return this._request(method, params);
    return Promise.reject(new WireError({ code: "OFFLINE", message: "not connected" }));
  }

  /** Hear an event; `resync` is ours, all others are the gateway's. Returns how to stop. */
  on(event, handler) {
    if (!this._handlers.has(event)) this._handlers.set(event, new Set());
    this._handlers.get(event).add(handler);
    return () => this._handlers.get(event).delete(handler);
  }

  /** Hear of every change of `status`, and of the present one at once. Returns how to stop. */
  onStatus(handler) {
    this._watchers.add(handler);
    handler(this.status);
    return () => this._watchers.delete(handler);
  }

  /** Whether the gateway has a method, as it said itself. */
  has(method) {
    return this.hello?.features?.methods?.includes(method) ?? false;
  }

  _request(method, params) {
    const id = String(++this._number);
    return new Promise((resolve, reject) => {
      if (this._socket?.readyState !== WebSocket.OPEN) return void reject(new WireError({ code: "OFFLINE", message: "not connected" }));
      const timer = setTimeout(() => {
        this._calls.delete(id);
        reject(new WireError({ code: "OFFLINE", message: `${method}: no answer` }));
      }, CALL_MS);
      this._calls.set(id, { resolve, reject, timer });
      this._socket.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  _connect() {
    clearTimeout(this._timer);
    if (this._socket !== null) return;
    if (this.status !== "signed-out") this._setStatus(this.hello ? "offline" : "connecting");
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/`);
    this._socket = socket;
    this._seq = 0;
    this._heardAt = Date.now();
    socket.onmessage = (message) => socket === this._socket && this._receive(message.data);
    socket.onclose = () => socket === this._socket && this._lost();
  }

  _receive(text) {
    this._heardAt = Date.now();
    const frame = JSON.parse(text);
    if (frame.type === "res") this._answer(frame);
    else if (frame.event === "connect.challenge") this._greet();
    else this._event(frame);
  }

  async _greet() {
    const params = { minProtocol: PROTOCOL, maxProtocol: PROTOCOL, client: CLIENT, role: "operator", scopes: SCOPES,
      caps: CAPS, locale: navigator.language };
    try {
      this.hello = await this._request("connect", params);
      this._wait = FIRST_WAIT_MS;
      await this._request("sessions.subscribe", {});
    } catch (error) {
      if (NOT_SIGNED_IN.has(error.details?.code)) this._setStatus("signed-out");
      return;
    }
    this._setStatus("open");
    this._tell("resync", { reason: "connected" });
  }

  _answer(frame) {
    const call = this._calls.get(frame.id);
    if (!call) return;
    this._calls.delete(frame.id);
    clearTimeout(call.timer);
    if (frame.ok) call.resolve(frame.payload);
    else call.reject(new WireError(frame.error ?? {}));
  }

  _event(frame) {
    const gap = typeof frame.seq === "number" && this._seq !== 0 && frame.seq !== this._seq + 1;
    if (typeof frame.seq === "number") this._seq = frame.seq;
    this._tell(frame.event, frame.payload);
    if (gap) this._tell("resync", { reason: "gap" });
  }

  _tell(event, payload) {
    for (const handler of [...(this._handlers.get(event) ?? [])]) {
      try {
        handler(payload);
      } catch (error) {
        console.error(event, error);
      }
    }
  }

  /** A peer that vanished without a word (sleep, cable) is noticed by its silence. */
  _checkSilence() {
    const most = 2.5 * (this.hello?.policy?.tickIntervalMs ?? 30_000);
    if (this._socket === null || Date.now() - this._heardAt <= most) return;
    // Nobody may be there to answer the farewell: it is not waited for.
    this._socket.close();
    this._lost();
  }

  _lost() {
    this._socket = null;
    for (const call of this._calls.values()) {
      clearTimeout(call.timer);
      call.reject(new WireError({ code: "OFFLINE", message: "the connection broke" }));
    }
    this._calls.clear();
    const signedOut = this.status === "signed-out";
    if (!signedOut) this._setStatus("offline");
    const wait = signedOut ? SIGNED_OUT_WAIT_MS : this._wait * (0.5 + Math.random());
    this._wait = Math.min(this._wait * 2, LONGEST_WAIT_MS);
    this._timer = setTimeout(() => this._connect(), wait);
  }

  _setStatus(status) {
    if (status === this.status) return;
    this.status = status;
    for (const watcher of [...this._watchers]) watcher(status);
  }
}

export const wire = new Wire();
