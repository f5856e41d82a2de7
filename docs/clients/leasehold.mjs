// Locks of Leasehold, by `leasehold hold` or by the socket of `leasehold agent`. Needs Node 18 on Linux, and no package.
import { spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { connect } from "node:net";
import { uptime } from "node:os";

/** No lock: `answer` is the line of the server, {"busy": …} or {"error": kind, "message": …, "retry": …}. */
export class Refused extends Error {
  constructor(answer) {
    super(JSON.stringify(answer)).answer = answer;
  }
}
// The clock of `until`. It goes on while the machine sleeps, and is read in hundredths of a second.
const now = () => uptime() + 0.01;

/**
 * `const lock = await acquire({ lock: "k", wait_ms: 5000 }, { agent: "/run/leasehold.sock" })`. Without `agent`, `command` is run.
 * Rejects with Refused. A lock has `token` and `tokens`, `isHeld()` and `release()`, and emits "lost" with the reason.
 */
export function acquire(request, { agent, command = ["leasehold", "hold"] } = {}) {
  return new Promise((resolve, reject) => new Lock(request, agent, command, resolve, reject));
}
class Lock extends EventEmitter {
  constructor(request, agent, command, resolve, reject) {
    super();
    Object.assign(this, { request, resolve, reject, until: Infinity, state: "waiting", read: "" });
    const server = agent ? connect(agent) : spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    const [input, output] = agent ? [server, server] : [server.stdin, server.stdout];
    this.say = (line) => input.writable && input.write(JSON.stringify(line) + "\n");
    this.close = () => input.end();
    for (const part of [server, input, output]) part.on("error", (error) => this.closed(error.message));
    output.setEncoding("utf8").on("data", (piece) => this.heard(piece)).on("close", () => this.closed());
    if (request.deadman_ms) this.beat = setInterval(() => this.say({}), request.deadman_ms / 3);
  }
  /** False before another can have the lock, whether or not any line came, or a timer ran: one stands still in a machine that sleeps. */
  isHeld() {
    return this.state === "held" && now() < this.until;
  }
  release() {
    if (this.state !== "held") return Promise.resolve();
    this.state = "releasing";
    this.say({ release: true });
    setTimeout(() => this.state === "releasing" && this.end("unreachable"), 5000).unref(); // of a server that is stopped
    return new Promise((done) => (this.done = done));
  }
  heard(piece) {
    const lines = (this.read + piece).split("\n");
    this.read = lines.pop();
    for (const line of lines) this.answer(JSON.parse(line));
  }
  answer(answer) {
    if (answer.leasehold) this.say(this.request); // not before: one that is refused at the door could not be read
    else if (answer.held?.until && answer.held.now > now()) this.end({ error: "unsupported", message: "a container's clock" });
    else if (answer.held) {
      Object.assign(this, { token: answer.held.token, tokens: answer.held.tokens, state: "held" });
      this.lasts(answer.held.until);
      this.resolve(this);
    } else if (answer.until) this.lasts(answer.until);
    else if (answer.lost) this.end(answer.lost);
    else if (this.state === "waiting" && !answer.waiting) this.end(answer);
  }
  lasts(until) {
    clearTimeout(this.timer);
    if (until) this.timer = setTimeout(() => this.end("unreachable"), ((this.until = until) - now()) * 1000).unref();
  }
  closed(why = "the server ended") {
    if (this.state === "waiting") this.end({ error: "unavailable", message: why, retry: true });
    // Without a word the server has died: the lock is held for as long as was told last.
    else if (this.state === "releasing" || this.until === Infinity) this.end("unreachable");
  }
  end(reason) {
    const before = this.state;
    this.state = "ended";
    [this.beat, this.timer].forEach(clearTimeout); // which ends an interval as well
    this.close();
    if (before === "waiting") this.reject(new Refused(reason));
    else if (before === "releasing") this.done();
    else if (before === "held") this.emit("lost", reason);
  }
}
