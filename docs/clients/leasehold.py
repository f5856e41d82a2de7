"""Locks of Leasehold, by `leasehold hold` or by the socket of `leasehold agent`. Needs Python 3.8 on Linux, and no package."""
import contextlib, json, os, select, socket, subprocess, threading, time

class Refused(Exception):
    """No lock: `answer` is the line of the server, {"busy": ...} or {"error": kind, "message": ..., "retry": ...}."""
    def __init__(self, answer):
        super().__init__(json.dumps(answer))
        self.answer = answer

now = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)  # the clock of `until`, which goes on while the machine sleeps

class Lock:
    """`with Lock("k", wait_ms=5000) as lock: write(lock.token)`. An object is for one acquisition.

    `agent` is the path of a socket; without it `command` is run. Other arguments are fields of the request. The event `lost` is
    set when the lock is lost, and `reason` says why."""
    def __init__(self, key=None, agent=None, command=("leasehold", "hold"), **request):
        self.request, self.agent, self.command = {"lock": key, **request} if key else request, agent, command
        self.lost, self.reason, self.token, self.tokens, self.until = threading.Event(), None, None, {}, float("inf")
        self.beat, self.said, self.read, self.released = request.get("deadman_ms", 3.6e6) / 3000, now(), b"", threading.Event()
    def acquire(self):  # raises Refused, also if others hold it for all of wait_ms
        if self.agent:
            self.server = socket.socket(socket.AF_UNIX)
            self.server.connect(self.agent)
            self.input = self.output = self.server.makefile("rwb", buffering=0)
        else:
            self.server = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            self.input, self.output = self.server.stdin, self.server.stdout
        try:
            self.say(self.request)
            answer = next((a for a in self.answers() if not a.keys() & {"leasehold", "waiting"}), {})
            if "held" not in answer:
                raise Refused(answer or {"error": "unavailable", "message": "the server ended", "retry": True})
            if answer["held"]["until"] and answer["held"]["now"] > now() + 0.001:  # then `until` says nothing here
                raise Refused({"error": "unsupported", "message": "another clock than the server's: a container?", "retry": False})
        except BaseException:
            self.close()
            raise
        held = answer["held"]
        self.token, self.tokens, self.until = held["token"], held["tokens"], held["until"] or self.until
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()
        return self
    def is_held(self):  # false before another can have the lock, whether or not any line came
        return not self.lost.is_set() and not self.released.is_set() and now() < self.until
    def release(self):
        self.released.set()
        self.say({"release": True})
        self.watcher.join(5)  # a server that is stopped answers nothing; the end of the connection releases, too
        self.close()
    def close(self):
        for end in self.input, self.output: end.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.server.close() if self.agent else self.server.wait(5)
    __enter__, __exit__ = acquire, lambda self, *error: self.release()
    def say(self, line):
        self.said = now()
        with contextlib.suppress(OSError):  # the server has ended: what it said before tells why
            self.input.write(json.dumps(line).encode() + b"\n")
    def answers(self):  # the lines of the server, to the end of the connection; signs of life are given meanwhile
        while now() < self.until:
            line, end, rest = self.read.partition(b"\n")
            if end:
                self.read = rest
                yield json.loads(line)
            elif select.select([self.output], [], [], max(0, min(self.said + self.beat, self.until) - now()))[0]:
                if not (piece := os.read(self.output.fileno(), 65536)): return
                self.read += piece
            if now() - self.said >= self.beat: self.say({})
    def watch(self):
        with contextlib.suppress(OSError, ValueError):
            for answer in self.answers():
                self.until, self.reason = answer.get("until", self.until), answer.get("lost")
                if self.reason: break
        # Without a word the server has died: the lock is held for as long as was told last.
        if not self.reason and self.until != float("inf"):
            self.released.wait(max(0, self.until - now()))
        if not self.released.is_set():
            self.reason = self.reason or "unreachable"
            self.lost.set()
