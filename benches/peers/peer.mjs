// A lock from npm in the closed loop of benches/workloads/load.rs: node peer.mjs NAME ORDERS
//
// Says "ready", is told on standard input when to start, in nanoseconds of the monotonic clock, and prints its log as
// one line of JSON: cpu in microseconds, and of each hold span task, acquired, releasing, token (0: there is none).

import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import Redis from "ioredis";

const LEASE_MILLIS = 30_000;

// Each: a way to acquire a key that returns the way to release it. Waiting as by default, for as long as it takes.
const peers = {
  async "redis-semaphore"(client) {
    const { Mutex } = await import("redis-semaphore");
    return async (key) => {
      const mutex = new Mutex(client, key, { lockTimeout: LEASE_MILLIS, acquireTimeout: 10 * LEASE_MILLIS });
      await mutex.acquire();
      return () => mutex.release();
    };
  },
  async redlock(client) {
    const { default: module } = await import("redlock");
    const Redlock = module.default ?? module;
    const redlock = new Redlock([client], { retryCount: -1 });
    return async (key) => {
      const lock = await redlock.acquire([key], LEASE_MILLIS);
      return () => lock.release();
    };
  },
};

const now = () => Number(process.hrtime.bigint());

const [name, orders] = process.argv.slice(2);
const { load, url } = JSON.parse(orders);
const client = new Redis(url);
const acquire = await peers[name](client);
await (await acquire(`${name}/warm-up/${process.pid}`))();

console.log("ready");
const start = await new Promise((resolve) => createInterface({ input: process.stdin }).once("line", (line) => resolve(Number(line))));
await pause(Math.max(0, (start - now()) / 1e6));

const end = start + (load.warm_up_millis + load.window_millis) * 1e6;
const spans = [];
const before = process.cpuUsage();
const run = async (task) => {
  const key = load.keys === "Own" ? `${name}/${task}` : `${name}/hot`;
  while (now() < end) {
    const release = await acquire(key);
    const acquired = now();
    if (load.hold_micros > 0) await pause(load.hold_micros / 1e3);
    const releasing = now();
    await release();
    spans.push([task, acquired, releasing, 0]);
  }
};
await Promise.all(Array.from({ length: load.tasks }, (_, task) => run(load.first_task + task)));
const { user, system } = process.cpuUsage(before);
process.stdout.write(JSON.stringify({ spans, cpu: user + system }) + "\n", () => process.exit(0));
