"""A lock from PyPI in the closed loop of benches/workloads/load.rs: python3 peer.py NAME ORDERS

Says "ready", is told on standard input when to start, in nanoseconds of the monotonic clock, and prints its log as one
line of JSON: cpu in microseconds, and of each hold span task, acquired, releasing, token (0: there is none).
"""

import asyncio
import json
import sys
import threading
import time

LEASE_SECONDS = 30


def begin():
    """Waits until it is told when, and then until it is."""
    print("ready", flush=True)
    start = int(sys.stdin.readline())
    time.sleep(max(0, (start - time.monotonic_ns()) / 1e9))
    return start


def keys(name, load):
    first, tasks = load["first_task"], load["tasks"]
    return [(task, f"{name}/{task}" if load["keys"] == "Own" else f"{name}/hot") for task in range(first, first + tasks)]


def end_of(load, start):
    return start + (load["warm_up_millis"] + load["window_millis"]) * 1_000_000


async def redis_py(load, url):
    """redis-py's Lock on asyncio, waiting as by default."""
    import redis.asyncio

    client = redis.asyncio.Redis.from_url(url)
    async with client.lock("redis-py/warm-up", timeout=LEASE_SECONDS):
        pass
    start, spans = begin(), []
    before, end = time.process_time_ns(), end_of(load, start)

    async def run(task, key):
        while time.monotonic_ns() < end:
            lock = client.lock(key, timeout=LEASE_SECONDS)
            await lock.acquire()
            acquired = time.monotonic_ns()
            if load["hold_micros"]:
                await asyncio.sleep(load["hold_micros"] / 1e6)
            releasing = time.monotonic_ns()
            await lock.release()
            spans.append((task, acquired, releasing, 0))

    await asyncio.gather(*(run(task, key) for task, key in keys("redis-py", load)))
    return spans, time.process_time_ns() - before


def pottery(load, url):
    """pottery's Redlock on one server, a thread a task."""
    from pottery import Redlock
    from redis import Redis

    client = Redis.from_url(url)
    with Redlock(key="warm-up", masters={client}, auto_release_time=LEASE_SECONDS):
        pass
    start, spans = begin(), []
    before, end = time.process_time_ns(), end_of(load, start)

    def run(task, key):
        while time.monotonic_ns() < end:
            lock = Redlock(key=key, masters={client}, auto_release_time=LEASE_SECONDS)
            lock.acquire()
            acquired = time.monotonic_ns()
            if load["hold_micros"]:
                time.sleep(load["hold_micros"] / 1e6)
            releasing = time.monotonic_ns()
            lock.release()
            spans.append((task, acquired, releasing, 0))

    threads = [threading.Thread(target=run, args=pair) for pair in keys("pottery", load)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return spans, time.process_time_ns() - before


if __name__ == "__main__":
    name, orders = sys.argv[1], json.loads(sys.argv[2])
    load, url = orders["load"], orders["url"]
    spans, cpu = asyncio.run(redis_py(load, url)) if name == "redis-py" else pottery(load, url)
    print(json.dumps({"spans": spans, "cpu": cpu // 1000}), flush=True)
