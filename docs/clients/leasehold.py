"""Takes part in Leasehold's locks on one Redis (`redis://`), beside clients in every language. Needs no package."""
import contextlib, json, pathlib, select, socket, string, time, urllib.parse, uuid

ACQUIRE, RENEW, RELEASE = (pathlib.Path(__file__).with_name(n + ".lua").read_text() for n in ("acquire", "renew", "release"))
COUNTER_LIVES_MS, PLACE_LIVES = 7 * 24 * 3600 * 1000, 3.0  # as in every other client: see docs/storage-formats.md
PLAIN = "".join(c for c in string.printable if c.isprintable() and c not in " {}%")

def now():  # seconds, on a clock that nobody sets, and that goes on while the machine sleeps
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

class Redis:  # one connection; an error of any kind means: the outcome is not known
    def __init__(self, host, port):
        self.address, self.answered = (host, port), False
    def ask(self, *words):
        words = [str(word).encode() for word in words]
        if not self.answered:  # an answer that comes late would be taken for that of the next question
            self.socket = socket.create_connection(self.address, timeout=5)
            self.file = self.socket.makefile("rb")
        self.answered = False
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.answer()
    def answer(self):
        self.answered = False
        answer = self.read()
        self.answered = True
        return answer
    def read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2].decode()
        text = self.file.read(int(rest) + 2) if kind == b"$" and rest not in ("", "-1") else line
        if kind == b"-" or text[-2:] != b"\r\n":
            raise ConnectionError(rest if kind == b"-" else "the server closed the connection")
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return rest if kind != b"$" else None if rest == "-1" else text[:-2].decode()

class Lock:
    def __init__(self, locks, names, ttl):
        self.locks, self.names, self.ttl, self.owner, self.epoch, self.deadline = locks, names, ttl, uuid.uuid4().hex, 0, 0.0
    token = property(lambda self: self.epoch << 6)  # send it with every write
    def is_held(self):  # false before the server may grant the key to another, whether or not it was renewed in time
        return now() < self.deadline
    def run(self, script, names, *arguments):  # the words of the answer; the moment before the question is kept
        self.asked = now()
        answer = self.locks.redis.ask("EVAL", script, len(names), *names, *arguments)
        words = (answer if isinstance(answer, str) else answer[0]).split(" ")
        if words[0] not in ("granted", "busy", "queued", "held", "gone"):
            raise RuntimeError(" ".join(words))
        return words
    def counts(self, held):
        self.deadline = self.asked + self.ttl * 0.99 - 0.002 if held else 0.0
        return held
    def renew(self):  # call it from a third of the ttl on, until `is_held` is false; False: another may hold the key
        return self.counts(self.run(RENEW, self.names[:1], f"{self.owner} {self.epoch} {int(self.ttl * 1000)} ")[0] == "held")
    def release(self):  # also gives up a place in the queue; False: it was lost before
        self.deadline = 0.0
        return self.run(RELEASE, self.names, self.owner)[0] == "held"

class Locks:
    def __init__(self, host="127.0.0.1", port=6379, namespace="leasehold"):
        self.head = "{" + urllib.parse.quote(namespace, safe=PLAIN.replace(":", "")) + ":"
        self.redis, self.messages, self.inbox = Redis(host, port), Redis(host, port), f"{self.head}}}:inbox:{uuid.uuid4().hex}"
        self.messages.ask("SUBSCRIBE", self.inbox)
    def acquire(self, key, ttl=30.0, wait=float("inf"), label="python"):  # None: others held it for all of `wait` seconds
        if not (0.01 <= ttl <= 24 * 3600 and 1 <= len(key.encode()) <= 255):
            raise ValueError("a lease is 10 ms to 24 h, and a key has 1 to 255 bytes")
        names = [f"{self.head}{urllib.parse.quote(key, safe=PLAIN)}}}:{part}" for part in ("lock", "fence", "queue")]
        tail, inbox = "," + json.dumps({"label": label})[1:], "!" + self.inbox if wait else ""
        until, fresh, silent, lock = now() + wait, True, False, Lock(self, names, ttl)
        try:
            while True:
                words = lock.run(ACQUIRE, names, int(ttl * 1000), COUNTER_LIVES_MS, tail, inbox, lock.owner)
                if words[0] == "granted":
                    lock.epoch = int(words[1])
                    self.messages.answered &= not silent  # no message came: the last lease ran out, or none can come any more
                    if lock.counts(True) if fresh else lock.renew():  # a lease out of the queue began before the question
                        return lock
                    fresh, lock = True, Lock(self, names, ttl)
                    continue
                pause = min(int(words[1]) / 1000 + 0.001, min(ttl, PLACE_LIVES) / 3, until - now())
                if pause <= 0:
                    lock.release()
                    return None
                fresh = silent = False
                if not self.messages.answered:  # subscribe anew, and ask again before the wait: no message came meanwhile
                    self.messages.ask("SUBSCRIBE", self.inbox)
                elif select.select([self.messages.socket], [], [], pause)[0]:
                    try:
                        self.messages.answer()  # whatever it says: ask again
                    except (OSError, ValueError):
                        time.sleep(min(pause, 0.1))  # the next connection may break as soon
                else:
                    silent = True
        except BaseException:
            with contextlib.suppress(OSError):  # then its place or its lease ends by itself
                lock.release()
            raise
