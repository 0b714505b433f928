"""Looks at the image: its libraries, its size, its symbols, and the program at work as the image's user on a root that cannot be written."""

import ctypes
import fcntl
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import dockerfile
import roots

# What docs/containers.md says the files of the image take, in bytes.
SIZE_MAX = 64_000_000
# How many verdicts the bundled sample gets.
SAMPLE_VERDICTS = 25
PROGRAM = "usr/local/bin/tollgate"
# How long to wait for what has to come.
SECONDS_MAX = 120


def check(stage, symbols, place, revision, say):
    """Fails at the first thing that is not as docs/containers.md says."""
    root = stage.root
    libraries(root, say)
    apart(root / PROGRAM, symbols.root / "tollgate.debug", say)
    total, own = roots.size(root), (root / PROGRAM).stat().st_size
    assert total <= SIZE_MAX, f"the image's files take {total} bytes, and docs/containers.md says {SIZE_MAX}"
    say(f"the image's files take {total / 1e6:.1f} MB, {own / 1e6:.1f} of them the program")
    container = Container(stage)
    read_only(container, say)
    version(container, revision, say)
    sample(container, say)
    health(container, stage, say)
    authorities(container, place, say)


def libraries(root, say):
    """Every library that the program is linked with, and every one that these are linked with, is a file of the image."""
    seen, open_ = {}, [root / PROGRAM]
    while open_:
        file = open_.pop()
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", roots.output("readelf", "--dynamic", file)):
            if name in seen:
                continue
            folders = ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib"]
            found = next((root / folder / name for folder in folders if (root / folder / name).exists()), None)
            assert found, f"{file.name} is linked with {name}, which the base does not have"
            seen[name] = found
            open_.append(found)
    interpreter = re.search(r"program interpreter: (\S+)\]", roots.output("readelf", "--program-headers", root / PROGRAM)).group(1)
    assert (root / interpreter.lstrip("/")).exists(), f"the base has no {interpreter}"
    assert "libssl.so.3" in seen, "OpenSSL is the base's"
    say(f"linked with {', '.join(sorted(seen))}: all are in the base")


def apart(program, debug, say):
    """The program has no symbols, and the file beside it has, under the same build id."""
    sections = roots.output("readelf", "--section-headers", "--wide", program)
    assert ".debug_line" not in sections and ".symtab" not in sections, "the program still holds symbols"
    assert ".gnu_debuglink" in sections, "the program names no file of symbols"
    ids = [re.search(r"Build ID: (\w+)", roots.output("readelf", "--notes", file)).group(1) for file in (program, debug)]
    assert ids[0] == ids[1], f"build ids {ids}"
    functions = re.findall(r": (\w{16}) +\d+ FUNC .* \S*8tollgate\S*$", roots.output("readelf", "--symbols", "--wide", debug), re.M)
    lines = roots.output("addr2line", "-e", debug, *[f"0x{address}" for address in functions[:500]]).splitlines()
    ours = [line for line in lines if line.startswith("/src/")]
    assert ours, f"no line of the sources for any of {len(functions)} functions: {lines[:3]}"
    sizes = [file.stat().st_size / 1e6 for file in (program, debug)]
    say(f"the program has no symbols ({sizes[0]:.1f} MB); they are apart ({sizes[1]:.1f} MB) and lead to {ours[0]}")


class Container:
    """Starts programs as an engine would start the image with a read-only root: its user, its variables, no network but its own."""

    def __init__(self, stage):
        self.root = stage.root
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        for name, arguments in stage.instructions:
            if name == "ENV":
                variables |= dict(dockerfile.assignments(arguments))
        self.variables = variables
        self.user, self.group = (int(number) for number in stage.last("USER").split(":"))
        self.entrypoint = dockerfile.vector(stage.last("ENTRYPOINT"))
        assert self.user > 0 and self.group > 0, "the image's user is root"
        unshare_network()
        loopback_up()
        roots.give_devices(self.root)
        roots.call("mount", "-o", "remount,ro", self.root)

    def start(self, words, **options):
        """Starts the image's program with these arguments."""
        return self.start_bare([*self.entrypoint, *words], **options)

    def start_bare(self, words, **options):
        enter = ["chroot", f"--userspec={self.user}:{self.group}", "--groups=", str(self.root), *words]
        return subprocess.Popen(enter, env=self.variables, stdin=subprocess.DEVNULL, text=True, **options)

    def run(self, words):
        """Runs the image's program to its end, and returns its exit code, stdout and stderr."""
        process = self.start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=SECONDS_MAX)
        return process.returncode, out, err


def unshare_network():
    """Gives this process a network of its own: the ports of this machine stay free. Python before 3.12 has no call for it."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def loopback_up():
    with socket.socket() as any_socket:
        # SIOCSIFFLAGS with IFF_UP.
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))


def read_only(container, say):
    try:
        (container.root / "tmp/written").touch()
    except OSError:
        return say("the root cannot be written, /tmp included")
    raise AssertionError("the root can be written")


def version(container, revision, say):
    code, out, err = container.run(["--version"])
    assert code == 0 and re.fullmatch(r"tollgate \d+\.\d+\.\d+\n", out), (code, out, err)
    assert revision.encode() in (container.root / PROGRAM).read_bytes(), f"the program does not know its revision {revision}"
    say(f"--version: {out.strip()}, of revision {revision}")


def sample(container, say):
    code, out, err = container.run(["dev", "--sample", "--once"])
    verdicts = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(verdicts) == SAMPLE_VERDICTS, (code, len(verdicts), err)
    say(f"dev --sample: {len(verdicts)} verdicts")


def health(container, stage, say):
    """The image's own check of health says what /livez says: yes while a worker is there, and no once it is gone."""
    words = dockerfile.vector(stage.last("HEALTHCHECK"))
    port = int(stage.last("EXPOSE"))
    with tempfile.TemporaryFile("w+") as log:
        process = container.start(["dev"], stdout=subprocess.DEVNULL, stderr=log)
        deadline = time.monotonic() + SECONDS_MAX
        while not answers(port):
            assert process.poll() is None and time.monotonic() < deadline, log.seek(0) or log.read()
            time.sleep(0.05)
        assert container.start_bare(words).wait(SECONDS_MAX) == 0, "HEALTHCHECK fails beside a worker"
        status = (pathlib.Path("/proc") / str(process.pid) / "status").read_text()
        assert re.search(rf"^Uid:\s{container.user}\s", status, re.M) and re.search(r"^CapEff:\s0+$", status, re.M), status
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS_MAX) == 0, "SIGTERM does not end it"
    quiet = container.start_bare(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    _, told = quiet.communicate(timeout=SECONDS_MAX)
    assert quiet.returncode == 1, "HEALTHCHECK succeeds without a worker"
    say(f"HEALTHCHECK: healthy beside a worker, which runs as {container.user} without capabilities; else {told.strip()!r}")


def answers(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
        connection.request("GET", "/livez")
        return connection.getresponse().status == 200
    except OSError:
        return False


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def authorities(container, place, say):
    """TLS to brokers trusts the authorities in the base's file, with no setting: one that is added there is trusted, and no other."""
    keys = place / "keys"
    shutil.rmtree(keys, ignore_errors=True)
    keys.mkdir()
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost", "-keyout", keys / "key.pem", "-out", keys / "certificate.pem"]
    roots.call(*make, stderr=subprocess.DEVNULL)
    server = subprocess.Popen(
        ["openssl", "s_server", "-accept", "9093", "-key", keys / "key.pem", "-cert", keys / "certificate.pem", "-quiet"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    words = ["config", "check", "--connect", "-b", "localhost:9093", "-X", "security.protocol=ssl"]
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while not listens(9093):
            assert server.poll() is None and time.monotonic() < deadline, "openssl s_server does not listen"
            time.sleep(0.05)
        _, _, stranger = container.run(words)
        assert "none of the trusted authorities" in stranger, stranger
        bundle = container.root / "etc/ssl/certs/ca-certificates.crt"
        (keys / "bundle.crt").write_text(bundle.read_text() + (keys / "certificate.pem").read_text())
        roots.call("mount", "--bind", keys / "bundle.crt", bundle)
        _, _, known = container.run(words)
        assert "none of the trusted authorities" not in known and "certificate" not in known.lower(), known
    finally:
        server.kill()
    say("TLS trusts the authorities of the base's file without a setting, and no others")
